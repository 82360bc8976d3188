#pragma once
#include "ir/program.h"
#include "rulebook/policy_statistics.h"
#include "rulebook/rulebook.h"
#include "transforms/analysis/directions.h"
#include <map>
#include <optional>

namespace scalide {

/// What the program of the user says of a tensor.
struct NamedTensor {
    std::string op, scope; ///< of the node that computes it; empty for an argument
    Direction direction = Direction::none;
    Location location = {};
    Extent elements = 0;
};

/// The tensors of a program before a policy changes it, by name: arguments, and results of nodes.
std::map<std::string, NamedTensor> named_tensors(const Program &program);

/// A tensor, or its rounded form, of which statistics can be collected.
struct StatisticsSite {
    std::string tensor;  ///< its name in the user's program
    NamedTensor source;  ///< of the tensor; of a rounded form, `scope` and `location` are those of the node that reads it
    std::string use;     ///< "argument", "result", "dot_general.lhs" or the operator that reads it; empty: only computed
    Dtype format;        ///< the dtype in which it is stored or rounded
    ValueId value = -1;  ///< the tensor itself, in its own units
    ValueId data = -1;   ///< the numbers before the conversion, which is value / scale
    ValueId stored = -1; ///< the result of the conversion; the value itself if nothing is rounded
    ValueId scale = -1;  ///< a scalar; -1: none, or an array of scales
    ValueId factor = -1; ///< a scalar by which the tensor is multiplied, instead of `scale`; -1: none
    bool is_argument = false;
    bool is_data = false;                 ///< `value` is in units of `scale`, too: data of a scaled argument
    bool rounds_at_random = false;        ///< the result of the conversion depends on random bits
    bool makes_infinities_finite = false; ///< the conversion, or a limit before it, makes an infinity the largest number of the format
    bool is_stored = true; ///< a rounded form; or an argument, a result, an operand or a result of a matmul, and no rounded form is a site
};

/// The values in loops and branches of a program before a policy changes it, by name. Names that occur twice are left out.
std::map<std::string, NamedTensor> named_tensors_of_regions(const Program &program);

/// Finds the sites of a program of base operators, in the order of the program. Each pair of a tensor and a format occurs once. Values in
/// loops and branches are no sites. `source` is what named_tensors() returned.
std::vector<StatisticsSite> statistics_sites(const Program &program, const Rulebook &rulebook,
                                             const std::map<std::string, NamedTensor> &source);

/// Finds the sites in the body of a loop. The loop computes them in each step, so its arguments and results are no sites. `directions`: of
/// the whole program. `source` is what named_tensors_of_regions() returned.
std::vector<StatisticsSite> sites_in_body(const Program &body, const Directions &directions, const Rulebook &rulebook,
                                          const std::map<std::string, NamedTensor> &source);

/// Returns the row that decides for a site, or nullptr.
const StatisticsRow *deciding_row(const StatisticsSite &site, const std::vector<StatisticsRow> &rows);

} // namespace scalide

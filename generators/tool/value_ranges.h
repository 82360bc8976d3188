#pragma once
#include "ir/program.h"
#include <limits>
#include <map>

namespace scalide {

/// The numbers that the elements of a value can have. Infinities in a known range are infinities that the program itself writes.
struct ValueRange {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    bool is_known = false;
    bool is_suspect = false; ///< an operator before it can produce an infinity or a NaN, so nothing is known
    bool has_peak = false;   ///< at least one element of each reduced row is `high`, as after x - max(x)
    int infinity = -1;       ///< the node that writes an infinity into the value; -1: none

    double magnitude() const { return std::max(-low, high); }
};

/// Returns the value without the operators before it that only copy, move or convert its numbers.
ValueId copied_value(const Program &program, const std::vector<int> &producers, ValueId value);

/// The largest finite number of a float dtype, and the smallest positive one.
double largest_of(Dtype dtype);
double smallest_of(Dtype dtype);

/// An operator that can produce an infinity or a NaN from finite operands, and why.
struct Suspect {
    int node = -1;
    std::string reason;
    bool is_weak = false; ///< nothing speaks for it, but it cannot be excluded either
};

/// The ranges of values, by interval arithmetic from the largest magnitudes of some values in one step. A range is an upper limit: it
/// contains all numbers of the step, and usually more.
class ValueRanges {
public:
    /// `amax` has the largest magnitude of values that are finite in the step. It may be too large for the dtype of the value: then the
    /// rounding to this dtype makes an infinity.
    ValueRanges(const Program &program, std::map<ValueId, double> amax) : program_(program), amax_(std::move(amax)) {}

    /// Returns the operators between the finite values and `value` that can produce an infinity or a NaN, in the order of the program. Weak
    /// ones are left out if there are others.
    std::vector<Suspect> suspects(ValueId value);
    /// Returns the range of a value.
    ValueRange range(ValueId value);

private:
    void visit(ValueId value);
    ValueRange of_node(int index, Suspect &suspect) const;

    const Program &program_;
    const std::map<ValueId, double> amax_;
    const std::vector<int> producers_ = producers(program_);
    std::map<ValueId, ValueRange> ranges_;
    std::vector<Suspect> suspects_;
};

} // namespace scalide

#pragma once
#include "interpret/interpret.h"
#include "rulebook/builder.h"
#include <optional>
#include <random>

namespace scalide {

/// Random numbers that are reproducible from a seed.
class Draw {
public:
    explicit Draw(uint64_t seed) : engine_(seed) {}
    double real(double low, double high);
    int64_t integer(int64_t low, int64_t high);
    template<typename T>
    const T &pick(const std::vector<T> &choices) {
        return choices[integer(0, static_cast<int64_t>(choices.size()) - 1)];
    }

private:
    std::mt19937_64 engine_;
};

/// How the scales of the operands are drawn. Floats are f32, with `any` and `zero` also f16, bf16 and both f8.
enum class Scales {
    plain,  ///< none is scaled
    powers, ///< 2^-6 .. 2^6
    any,    ///< not powers of two
    zero,   ///< 2^-2 .. 2^2, one operand has the scale 0, when 0 is in its domain; no extent is 0
    huge,   ///< 2^100, the data being in the domain
    tiny,   ///< 2^-100
};

/// One operand of a law: data, and a scale if it is scaled.
struct LawInput {
    std::string name;
    std::string operand; ///< of the rule: of a variadic one several inputs have it
    Array data;
    bool scaled = false;
    double scale = 1;
};

/// One operator on operands: a check case with numbers for its letters.
struct LawCase {
    const Rule *rule = nullptr;
    Attributes attributes;
    std::vector<LawInput> inputs; ///< flat, in node order
    std::optional<uint64_t> seed; ///< of a drawn case
};

/// Draws extents, dtypes, values and scales. If the class of an operand permits several dtypes, floats are preferred, then i32 or bool.
LawCase draw_case(const Rule &rule, const CheckCase &check_case, Scales scales, uint64_t seed);

/// The case on arrays of a rank from 0 to 5, where the operator takes operands of any one shape; else as it is.
CheckCase with_drawn_rank(const Rule &rule, const CheckCase &check_case, uint64_t seed);

/// A vector worked by hand as a case of plain operands.
LawCase vector_case(const Rule &rule, const CheckVector &vector);

/// Returns the inputs as numbers: data * scale.
std::vector<Array> full_values(const LawCase &law_case);
/// Returns the arguments of the propagated program: data and scale of scaled inputs.
std::vector<Array> parts(const LawCase &law_case);

/// A program of this one node; scaled inputs are scaled arguments, results that are not plain are scaled when an input is.
Program program_of(const LawCase &law_case, const Rulebook &rulebook);

} // namespace scalide

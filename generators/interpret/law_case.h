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

/// How the scales of the operands are drawn. Floats are f32. With `any` and `zero` they can also be f16, bf16, f8_e4m3fn or f8_e5m2.
enum class Scales {
    plain,  ///< no operand is scaled
    powers, ///< powers of two, 2^-6 .. 2^6
    any,    ///< other numbers than powers of two
    zero,   ///< 2^-2 .. 2^2; one operand has the scale 0 if 0 is in its domain; no extent is 0
    huge,   ///< 2^100, with data in the domain
    tiny,   ///< 2^-100, with data in the domain
};

/// One operand of a law: data, and a scale if it is scaled.
struct LawInput {
    std::string name;
    std::string operand; ///< operand of the rule; several inputs can belong to a variadic operand
    Array data;
    bool scaled = false;
    double scale = 1;
};

/// One operator with its operands: a check case with numbers instead of letters.
struct LawCase {
    const Rule *rule = nullptr;
    Attributes attributes;
    std::vector<LawInput> inputs; ///< all inputs in the order of the node's operands
    std::optional<uint64_t> seed; ///< the seed of a drawn case
};

/// Draws extents, dtypes, values and scales. If the class of an operand permits several dtypes, floats are preferred, then i32 or bool.
LawCase draw_case(const Rule &rule, const CheckCase &check_case, Scales scales, uint64_t seed);

/// Returns the case with arrays of a drawn rank from 0 to 5 if the operator accepts operands of any shape. Otherwise returns it unchanged.
CheckCase with_drawn_rank(const Rule &rule, const CheckCase &check_case, uint64_t seed);

/// Returns a test vector of the rule as a case with operands without scales.
LawCase vector_case(const Rule &rule, const CheckVector &vector);

/// Returns the inputs as numbers: data * scale.
std::vector<Array> full_values(const LawCase &law_case);
/// Returns the arguments of the propagated program: data and scale of scaled inputs.
std::vector<Array> parts(const LawCase &law_case);

/// Returns a program with this one node. Scaled inputs become scaled arguments. If an input is scaled, results are scaled unless the rule
/// makes them plain.
Program program_of(const LawCase &law_case, const Rulebook &rulebook);

} // namespace scalide

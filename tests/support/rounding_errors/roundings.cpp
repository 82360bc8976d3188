#include "support/rounding_errors/roundings.h"
#include "expr/base_operators.h"
#include "ir/evaluation.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// The operands of a sum that are terms of it, or factors: floats, and not those that say which element is chosen.
bool has_terms(const Operation &operation, size_t operand) {
    return is_float(operation.operand(operand).dtype) && (operand == 0 || operation.op != "select_and_scatter_add");
}

/// In mode `real` a constant may become one of its dtype.
bool rounds(const Operation &operation) {
    const BaseOperator &op = base_operator(operation.op);
    const bool is_exact_source = op.shape == Shape::source && operation.mode == Mode::stored;
    const bool moves = op.shape == Shape::movement || is_exact_source || op.shape == Shape::sort || op.chooses;
    const bool is_one_instruction = op.shape == Shape::elementwise && op.arity == 1 && op.cost == 1; // neg, abs, floor
    const bool picks = op.fold == "max" || op.fold == "min" || op.gives_place || op.name == "select_and_gather_add" || op.name == "scatter";
    return is_float(operation.results[0].dtype) && !converts(operation) && !moves && !picks && !is_one_instruction;
}

/// Half an ulp of 1.
double unit_of(Dtype dtype) { return dtype == Dtype::f64 ? 0x1p-53 : std::ldexp(1.0, -format_of(dtype).mantissa_bits - 1); }

/// What a rounding is relative to: units become no smaller below the smallest normal number.
double rounded_magnitude(double x, Dtype dtype) {
    return x == 0 ? 0 : std::max(std::fabs(x), dtype == Dtype::f64 ? 0x1p-1022 : std::ldexp(1.0, 1 - format_of(dtype).bias));
}

FunctionErrors &function_errors() {
    static FunctionErrors errors = FunctionErrors::cpu;
    return errors;
}

/// Functions of a CPU are within 2 ulp, at most 4 units. Those of a GPU are within 6 ulp (tests/device/device_functions.cpp), and a rounded
/// form of exp or logistic rounds its argument times log2(e), of logistic beside 24. A reduced form is within 2^-13 for 8 bits, and within
/// 2^-16 for 11 bits (expr/reduced_functions.h).
double roundings_of_function(const Operation &operation, size_t element) {
    if (const auto bits = bits_of_accuracy(operation.attributes)) return *bits <= 8 ? 0x1p11 : 0x1p8;
    if (function_errors() == FunctionErrors::cpu) return 4;
    const bool has_rounded_form = operation.op == "exp" || operation.op == "logistic";
    if (function_errors() == FunctionErrors::device_rounded && operation.op == "tanh") return 0x1p14; // tanh.approx
    if (function_errors() == FunctionErrors::device || !has_rounded_form) return 12;
    return 24 + std::fabs(operation.operand(0).data[element]);
}

/// Terms that are added one after the other, at most. Reductions sum blocks of 4096 elements in eight lanes or more
/// (lower/rows/totals.cpp), products and convolutions blocks of 1024 (lower/rows/blocked_sum.h). Scans and scatters add all in one chain.
double longest_chain(Shape shape) {
    if (shape == Shape::reduce) return 512;
    return shape == Shape::contract || shape == Shape::window ? 1024 : std::numeric_limits<double>::infinity();
}

double line_length(const Operation &operation) {
    return double(operation.operand(0).shape[size_t(operation.attributes.at("axis").integer.value())]);
}

/// Terms of each element; of products a bound.
std::vector<double> terms_of(const Operation &operation, size_t elements) {
    const BaseOperator &op = base_operator(operation.op);
    if (op.fold != "mul") return sum_of(operation, [](const Array &, size_t) { return 1.0; });
    const auto size = [](const Array *operand) { return double(operand->data.size()); };
    return std::vector(elements,
                       op.shape == Shape::scan ? line_length(operation) : size(*std::ranges::max_element(operation.operands, {}, size)));
}

/// Roundings of n additions follow the partial sums. Those of terms x of one sign are k * x: where roundings are to either side that is
/// u * x * n^(3/2) / 3, u * sqrt(n) / 3 of the sum, 8 u of it for a chain of 512; terms of both signs leave less. Where terms are equal
/// roundings may all be to one side, each of at most u times the power of two below its partial sum: a sum s of n such terms with
/// f = s / 2^floor(log2 s) is wrong by n * (f - 2/3) / f^2 * u * s, at most 3/8 * n * u * s (f = 4/3).
double roundings_of_sum(double chain, double magnitudes, double sum) {
    return std::max(8.0, std::sqrt(chain) / 3) * magnitudes + 3.0 / 8 * chain * sum;
}

/// What a contraction loses where it adds pairs of bf16 products: vdpbf16ps takes subnormal numbers for zero, operands and sums. An operand
/// a that is lost takes |a b| along, at most the smallest normal number times |b|.
std::vector<double> lost_subnormals(const Operation &operation, const std::vector<double> &terms, const std::vector<double> &magnitudes) {
    constexpr double smallest_normal = 0x1p-126;
    std::vector<double> lost(terms.size());
    std::ranges::transform(terms, lost.begin(), [](double count) { return count * smallest_normal; });
    const auto is_subnormal = [](double x) { return x != 0 && std::fabs(x) < smallest_normal; };
    const auto has_subnormals = [&](const Array *operand) { return std::ranges::any_of(operand->data, is_subnormal); };
    if (std::ranges::none_of(operation.operands, has_subnormals)) return lost;
    const std::vector<double> more =
        sum_of(operation, [](const Array &array, size_t i) { return std::fabs(array.data[i]) + smallest_normal; });
    for (size_t i = 0; i < lost.size(); i++) lost[i] += more[i] - magnitudes[i];
    return lost;
}

/// A GPU may round each f32 operand to 11 significant bits: 2^-11 of each factor, and the product of both errors.
constexpr double tf32_error = 0x1p-10 + 0x1p-22;

bool is_tf32(const Operation &operation) {
    const auto precision = operation.attributes.find("precision");
    const auto is_f32 = [](const Array *operand) { return operand->dtype == Dtype::f32; };
    return precision != operation.attributes.end() && precision->second.word == "tf32" && std::ranges::all_of(operation.operands, is_f32);
}

/// In units of what it computes in.
std::vector<double> roundings_of_sums(const Operation &operation, const std::vector<double> &exact, Dtype computed) {
    const std::vector<double> magnitudes = sum_of(operation, [](const Array &array, size_t i) { return std::fabs(array.data[i]); });
    std::vector<double> roundings = terms_of(operation, exact.size());
    const double longest = longest_chain(base_operator(operation.op).shape);
    const bool may_lose = operation.op == "dot_general" && computed == Dtype::f32;
    const std::vector<double> lost = may_lose ? lost_subnormals(operation, roundings, magnitudes) : std::vector<double>(exact.size());
    for (size_t i = 0; i < exact.size(); i++) {
        const double chain = std::min(roundings[i], longest);
        roundings[i] = roundings_of_sum(chain, rounded_magnitude(magnitudes[i], computed), rounded_magnitude(exact[i], computed));
        if (magnitudes[i] > 0) roundings[i] += lost[i] / unit_of(computed);
        if (is_tf32(operation)) roundings[i] += tf32_error * magnitudes[i] / unit_of(computed);
    }
    return roundings;
}

/// Relative errors of the sum under the logarithm are absolute ones of it.
double roundings_of_logarithm(const Operation &operation, double exact) {
    const double sum = 1 + std::fabs(exact);
    return roundings_of_sum(line_length(operation), sum, sum);
}

} // namespace

void set_function_errors(FunctionErrors errors) { function_errors() = errors; }

bool converts(const Operation &operation) {
    return operation.op == "convert_element_type" || operation.op == "bitcast_convert_type" || operation.op == "reduce_precision";
}

bool sums_floats(const Operation &operation) {
    const BaseOperator &op = base_operator(operation.op);
    return rounds(operation) && (op.sums_products || op.fold == "add" || op.fold == "mul");
}

std::vector<double> run_on(const Operation &operation, std::vector<const Array *> operands) {
    Operation other{operation.op, operation.attributes, std::move(operands), {}, converts(operation) ? operation.mode : Mode::real};
    for (const Array &result : operation.results) other.results.push_back({result.dtype, result.shape, {}});
    find_run(other.op)(other);
    return std::move(other.result().data);
}

std::vector<double> sum_of(const Operation &operation, const std::function<double(const Array &, size_t)> &term) {
    std::vector<Array> arrays;
    arrays.reserve(operation.operands.size());
    std::vector<const Array *> operands = operation.operands;
    for (size_t i = 0; i < operands.size(); i++) {
        if (!has_terms(operation, i)) continue;
        Array &array = arrays.emplace_back(*operands[i]);
        for (size_t j = 0; j < array.data.size(); j++) array.data[j] = term(*operands[i], j);
        operands[i] = &array;
    }
    return run_on(operation, operands);
}

std::vector<double> own_roundings(const Operation &operation, const std::vector<double> &exact) {
    std::vector<double> error(exact.size());
    if (!rounds(operation)) return error;
    const Dtype dtype = operation.results[0].dtype, computed = dtype == Dtype::f64 ? dtype : Dtype::f32;
    const Dtype kept = operation.mode == Mode::stored ? computed : dtype;
    const double unit = unit_of(kept), unit_of_sums = unit_of(computed);
    const std::vector<double> sums =
        sums_floats(operation) ? roundings_of_sums(operation, exact, computed) : std::vector<double>(exact.size());
    for (size_t i = 0; i < exact.size(); i++) {
        if (!std::isfinite(exact[i])) continue;
        const double own = operation.op == "cumlogsumexp" ? roundings_of_logarithm(operation, exact[i]) : sums[i];
        error[i] = unit_of_sums * own + unit * roundings_of_function(operation, i) * rounded_magnitude(exact[i], kept);
    }
    return error;
}

} // namespace scalide

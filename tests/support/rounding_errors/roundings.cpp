#include "support/rounding_errors/roundings.h"
#include "expr/base_operators.h"
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

/// Functions are within 2 ulp, at most 4 units.
constexpr double roundings_of_function = 4;

/// Terms that a chain of additions has at most: kernels sum blocks of 4096 elements in eight lanes or more (lower/rows/totals.cpp).
constexpr double longest_chain = 512;

/// Roundings of n additions follow the partial sums. Those of terms x of one sign are k * x: where roundings are to either side that is
/// u * x * n^(3/2) / 3, u * sqrt(n) / 3 of the sum, 8 u of it for the longest chain; terms of both signs leave less. Where terms are equal
/// roundings may all be to one side, half of u and half of the sum on average: n / 4 * u of the sum.
double roundings_of_sum(double terms, double magnitudes, double sum) {
    return 8 * magnitudes + std::min(terms, longest_chain) / 4 * std::fabs(sum);
}

/// In units of what it computes in.
std::vector<double> roundings_of_sums(const Operation &operation, const std::vector<double> &exact) {
    const std::vector<double> magnitudes = sum_of(operation, [](const Array &array, size_t i) { return std::fabs(array.data[i]); });
    std::vector<double> terms(exact.size(), double(operation.operand(0).data.size()));
    if (base_operator(operation.op).fold != "mul") terms = sum_of(operation, [](const Array &, size_t) { return 1.0; });
    std::vector<double> roundings;
    for (size_t i = 0; i < exact.size(); i++) roundings.push_back(roundings_of_sum(terms[i], magnitudes[i], exact[i]));
    return roundings;
}

/// Relative errors of the sum under the logarithm are absolute ones of it.
double roundings_of_logarithm(const Operation &operation, double exact) {
    const double sum = 1 + std::fabs(exact);
    return roundings_of_sum(double(operation.operand(0).data.size()), sum, sum);
}

} // namespace

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
    const double unit = unit_of(operation.mode == Mode::stored ? computed : dtype), unit_of_sums = unit_of(computed);
    const std::vector<double> sums = sums_floats(operation) ? roundings_of_sums(operation, exact) : std::vector<double>(exact.size());
    for (size_t i = 0; i < exact.size(); i++) {
        if (!std::isfinite(exact[i])) continue;
        const double own = operation.op == "cumlogsumexp" ? roundings_of_logarithm(operation, exact[i]) : sums[i];
        error[i] = unit_of_sums * own + unit * roundings_of_function * std::fabs(exact[i]);
    }
    return error;
}

} // namespace scalide

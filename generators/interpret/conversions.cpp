#include "interpret/operation.h"

namespace scalide {

namespace {

/// Converts to an integer dtype. Floats saturate, integers wrap around.
double to_integer(Dtype dtype, Dtype from, double value) {
    return is_float(from) ? saturate_integer(dtype, value) : wrap_integer(dtype, value);
}

} // namespace

void run_convert(Operation &operation) {
    Array &result = operation.result();
    result.data = operation.operand(0).data;
    if (result.dtype == Dtype::boolean) {
        for (double &value : result.data) value = value != 0;
    } else if (is_integer(result.dtype)) {
        for (double &value : result.data) value = to_integer(result.dtype, operation.operand(0).dtype, value);
    } else if (operation.mode == Mode::stored) {
        const Overflow overflow = overflow_of(operation.attributes);
        for (double &value : result.data) value = round_to(result.dtype, value, overflow);
    }
}

void run_bitcast(Operation &operation) {
    const Array &operand = operation.operand(0);
    Array &result = operation.result();
    for (double value : operand.data) result.data.push_back(value_of(result.dtype, code_of(operand.dtype, value)));
}

void run_reduce_precision(Operation &operation) {
    const auto exponent_bits = static_cast<int>(to_number(operation.attributes.at("exponent_bits")));
    const auto mantissa_bits = static_cast<int>(to_number(operation.attributes.at("mantissa_bits")));
    Array &result = operation.result();
    result.data = operation.operand(0).data;
    for (double &value : result.data) value = reduce_precision(value, exponent_bits, mantissa_bits);
}

} // namespace scalide

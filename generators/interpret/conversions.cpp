#include "interpret/operation.h"

namespace scalide {

namespace {

/// Converts to an integer dtype. Floats saturate, integers wrap around. Throws UserError for a float that becomes the largest i64, because
/// f64 cannot represent it.
double to_integer(Dtype dtype, Dtype from, double value) {
    if (dtype == Dtype::i64 && value >= 0x1p63)
        throw UserError({{}, "convert_element_type", "the interpreter needs i64 values below 2^63", std::to_string(value), ""});
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

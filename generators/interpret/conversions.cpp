#include "interpret/operation.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace scalide {

namespace {

/// Towards zero, saturating; NaN is 0.
double to_i32(double value) {
    if (std::isnan(value)) return 0;
    return std::clamp<double>(std::trunc(value), std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
}

Overflow overflow_of(const Operation &operation) {
    const auto found = operation.attributes.find("overflow");
    return found != operation.attributes.end() && found->second.word == "format" ? Overflow::format : Overflow::saturate;
}

} // namespace

void run_convert(Operation &operation) {
    Array &result = operation.result();
    result.data = operation.operand(0).data;
    if (result.dtype == Dtype::boolean) {
        for (double &value : result.data) value = value != 0;
    } else if (result.dtype == Dtype::i32) {
        for (double &value : result.data) value = to_i32(value);
    } else if (operation.mode == Mode::stored) {
        const Overflow overflow = overflow_of(operation);
        for (double &value : result.data) value = round_to(result.dtype, value, overflow);
    }
}

void run_reduce_precision(Operation &operation) {
    const auto exponent_bits = static_cast<int>(to_number(operation.attributes.at("exponent_bits")));
    const auto mantissa_bits = static_cast<int>(to_number(operation.attributes.at("mantissa_bits")));
    Array &result = operation.result();
    result.data = operation.operand(0).data;
    for (double &value : result.data) value = reduce_precision(value, exponent_bits, mantissa_bits);
}

} // namespace scalide

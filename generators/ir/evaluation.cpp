#include "ir/evaluation.h"
#include <cmath>
#include <cstdint>

namespace scalide {

Evaluation::Evaluation(const BaseOperator &row, Dtype operands, const Attributes &attributes)
    : evaluate_(is_integer(operands) && row.evaluate_integer != nullptr ? row.evaluate_integer : row.evaluate) {
    if (!row.parameter.empty()) further_.push_back(to_number(attributes.at(std::string(row.parameter))));
    if (row.takes_width) further_.push_back(bits_of(operands));
}

double fold_start(Dtype dtype, double value) {
    if (dtype == Dtype::boolean) return std::isinf(value) ? value > 0 : value != 0;
    if (!is_integer(dtype)) return value;
    return wrap_integer(dtype, value);
}

Attribute constant_number(Dtype dtype, double value) {
    if (is_float(dtype)) return Attribute(value);
    const double whole = fold_start(dtype, value);
    return whole >= 0x1p63 ? Attribute(INT64_MAX) : Attribute(static_cast<int64_t>(whole));
}

} // namespace scalide

#include "ir/evaluation.h"
#include <cmath>
#include <cstdint>

namespace scalide {

std::optional<int> bits_of_accuracy(const Attributes &attributes) {
    const auto found = attributes.find(accuracy_attribute);
    if (found == attributes.end()) return {};
    return format_of(parse_dtype(found->second.word).value()).mantissa_bits + 1;
}

Evaluation::Evaluation(const BaseOperator &row, Dtype operands, const Attributes &attributes, bool is_exact)
    : evaluate_(is_integer(operands) && row.evaluate_integer != nullptr ? row.evaluate_integer : row.evaluate) {
    if (const std::optional<int> bits = bits_of_accuracy(attributes); bits && !is_exact) {
        evaluate_ = row.evaluate_reduced;
        further_.push_back(*bits);
    }
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

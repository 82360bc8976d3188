#include "ir/evaluation.h"
#include <cmath>

namespace scalide {

Evaluation::Evaluation(const BaseOperator &row, Dtype operands, const Attributes &attributes)
    : evaluate_(is_integer(operands) && row.evaluate_integer != nullptr ? row.evaluate_integer : row.evaluate) {
    if (!row.parameter.empty()) further_.push_back(to_number(attributes.at(std::string(row.parameter))));
    if (row.takes_width) further_.push_back(8 * size_of(operands));
}

double fold_start(Dtype dtype, double value) {
    if (dtype == Dtype::boolean) return std::isinf(value) ? value > 0 : value != 0;
    if (!is_integer(dtype)) return value;
    return std::isinf(value) ? saturate_integer(dtype, value) : wrap_integer(dtype, value);
}

} // namespace scalide

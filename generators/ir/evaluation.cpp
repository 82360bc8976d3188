#include "ir/evaluation.h"

namespace scalide {

Evaluation::Evaluation(const BaseOperator &row, Dtype operands, const Attributes &attributes)
    : evaluate_(is_integer(operands) && row.evaluate_integer != nullptr ? row.evaluate_integer : row.evaluate) {
    if (!row.parameter.empty()) further_.push_back(to_number(attributes.at(std::string(row.parameter))));
    if (row.takes_width) further_.push_back(8 * size_of(operands));
}

} // namespace scalide

#include "expr/base_operators.h"
#include "interpret/operation.h"

namespace scalide {

namespace {

/// The operands of one element side by side, with the parameter behind them. A rank-0 operand (`which` of select_n) stays in place.
class Row {
public:
    Row(const Operation &operation, std::string_view parameter) : operation_(operation), values_(operation.operands.size()) {
        if (!parameter.empty()) values_.push_back(to_number(operation.attributes.at(std::string(parameter))));
        for (const Array *operand : operation.operands) steps_.push_back(operand->shape.empty() ? 0 : 1);
    }
    std::span<const double> at(size_t element) {
        for (size_t i = 0; i < steps_.size(); i++) values_[i] = operation_.operands[i]->data[element * steps_[i]];
        return values_;
    }

private:
    const Operation &operation_;
    std::vector<double> values_;
    std::vector<size_t> steps_;
};

} // namespace

void run_elementwise(Operation &operation) {
    const BaseOperator &row = *find_base_operator(operation.op);
    const bool integers = operation.operand(0).dtype == Dtype::i32 && row.evaluate_integer != nullptr;
    const Evaluate evaluate = integers ? row.evaluate_integer : row.evaluate;
    Row operands(operation, row.parameter);
    std::vector<double> &data = operation.result().data;
    data.resize(element_count(operation.result().shape));
    for (size_t i = 0; i < data.size(); i++) data[i] = evaluate(operands.at(i));
    store(operation.result(), operation.mode);
}

} // namespace scalide

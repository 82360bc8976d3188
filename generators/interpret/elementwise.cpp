#include "interpret/operation.h"
#include "ir/evaluation.h"

namespace scalide {

namespace {

/// Collects the operands of one element, followed by further arguments. A scalar operand (`which` of select_n) is the same for every
/// element.
class Row {
public:
    Row(const Operation &operation, const std::vector<double> &further) : operation_(operation), values_(operation.operands.size()) {
        values_.insert(values_.end(), further.begin(), further.end());
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
    const Evaluation evaluate(base_operator(operation.op), operation.operands.back()->dtype, operation.attributes,
                              operation.mode == Mode::real);
    Row operands(operation, evaluate.further_arguments());
    std::vector<double> &data = operation.result().data;
    data.resize(element_count(operation.result().shape));
    for (size_t i = 0; i < data.size(); i++) data[i] = evaluate(operands.at(i));
    store(operation.result(), operation.mode);
}

} // namespace scalide

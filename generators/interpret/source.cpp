#include "interpret/operation.h"

namespace scalide {

namespace {

void run_number(Operation &operation, const std::string &attribute) {
    operation.result().data = {to_number(operation.attributes.at(attribute))};
    store(operation.result(), operation.mode);
}

} // namespace

void run_constant(Operation &operation) { run_number(operation, "value"); }

void run_size(Operation &operation) { run_number(operation, "extent"); }

void run_iota(Operation &operation) {
    Array &result = operation.result();
    const auto axis = static_cast<size_t>(to_number(operation.attributes.at("dimension")));
    int64_t inner = 1;
    for (size_t i = axis + 1; i < result.shape.size(); i++) inner *= result.shape[i];
    result.data.resize(element_count(result.shape));
    for (size_t i = 0; i < result.data.size(); i++)
        result.data[i] = static_cast<double>(static_cast<int64_t>(i) / inner % result.shape[axis]);
    store(result, operation.mode);
}

} // namespace scalide

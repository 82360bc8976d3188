#include "interpret/operation.h"
#include "interpret/strided.h"
#include <algorithm>

namespace scalide {

namespace {

/// Computes result[i] = operand[view(i)].
void read(Operation &operation, const View &view) {
    Array &result = operation.result();
    result.data.resize(element_count(result.shape));
    copy(result.shape, operation.operand(0).data.data(), view, result.data.data(), dense(result.shape));
}

/// Returns the entries of a list attribute by axis, or `fill` for all axes if the list is absent or empty.
std::vector<int64_t> by_axis(const Operation &operation, const std::string &attribute, int64_t fill) {
    std::vector<int64_t> values = operation.integers(attribute);
    if (values.empty()) values.assign(operation.operand(0).shape.size(), fill);
    return values;
}

} // namespace

void run_broadcast(Operation &operation) {
    const Array &operand = operation.operand(0);
    const std::vector<int64_t> dims = operation.integers("dims");
    const View from = dense(operand.shape);
    View view{0, std::vector<int64_t>(operation.result().shape.size(), 0)};
    for (size_t axis = 0; axis < dims.size(); axis++)
        if (operand.shape[axis] != 1) view.strides[dims[axis]] = from.strides[axis];
    read(operation, view);
}

void run_reshape(Operation &operation) { operation.result().data = operation.operand(0).data; }

void run_transpose(Operation &operation) {
    read(operation, {0, pick(dense(operation.operand(0).shape).strides, operation.integers("permutation"))});
}

void run_rev(Operation &operation) {
    const std::vector<int64_t> &shape = operation.operand(0).shape;
    View view = dense(shape);
    for (int64_t axis : operation.integers("dimensions")) {
        view.offset += (shape[axis] - 1) * view.strides[axis];
        view.strides[axis] = -view.strides[axis];
    }
    read(operation, view);
}

void run_slice(Operation &operation) {
    const std::vector<int64_t> start = by_axis(operation, "start", 0), steps = by_axis(operation, "strides", 1);
    const std::vector<int64_t> limit = by_axis(operation, "limit", 0);
    View view = dense(operation.operand(0).shape);
    for (size_t axis = 0; axis < view.strides.size(); axis++) {
        if (const int64_t extent = operation.operand(0).shape[axis]; extent < limit[axis])
            throw UserError({{},
                             "slice.limit",
                             "the axis must have at least " + std::to_string(limit[axis]) + " elements",
                             std::to_string(extent),
                             ""});
        view.offset += start[axis] * view.strides[axis];
        view.strides[axis] *= steps[axis];
    }
    read(operation, view);
}

// Element i of the operand moves to index low + i * (interior + 1), if this index is within the result.
void run_pad(Operation &operation) {
    const Array &operand = operation.operand(0);
    Array &result = operation.result();
    const std::vector<int64_t> low = by_axis(operation, "low", 0), interior = by_axis(operation, "interior", 0);
    View from = dense(operand.shape), to = dense(result.shape);
    std::vector<int64_t> kept(operand.shape.size());
    for (size_t axis = 0; axis < kept.size(); axis++) {
        const int64_t step = interior[axis] + 1;
        const int64_t first = low[axis] >= 0 ? 0 : (-low[axis] + step - 1) / step;
        const int64_t room = result.shape[axis] - 1 - low[axis];
        const int64_t last = room < 0 ? -1 : std::min(operand.shape[axis] - 1, room / step);
        kept[axis] = std::max<int64_t>(0, last - first + 1);
        from.offset += first * from.strides[axis];
        to.offset += (low[axis] + first * step) * to.strides[axis];
        to.strides[axis] *= step;
    }
    result.data.assign(element_count(result.shape), operation.operand(1).data[0]);
    copy(kept, operand.data.data(), from, result.data.data(), to);
}

void run_concatenate(Operation &operation) {
    Array &result = operation.result();
    result.data.resize(element_count(result.shape));
    const auto axis = static_cast<size_t>(to_number(operation.attributes.at("dimension")));
    View to = dense(result.shape);
    for (const Array *part : operation.operands) {
        copy(part->shape, part->data.data(), dense(part->shape), result.data.data(), to);
        to.offset += part->shape[axis] * to.strides[axis];
    }
}

} // namespace scalide

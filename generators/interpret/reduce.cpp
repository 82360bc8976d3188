#include "interpret/fold.h"
#include "interpret/operation.h"
#include "interpret/strided.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// The positions of the elements of a reduction. Element j of row i is at rows[i] + elements[j].
struct Layout {
    std::vector<int64_t> rows, elements;
};

Layout layout_of(const std::vector<int64_t> &shape, const std::vector<int64_t> &axes) {
    const std::vector<int64_t> strides = dense(shape).strides, kept = other_axes(static_cast<int64_t>(shape.size()), axes);
    return {places(pick(shape, kept), {0, pick(strides, kept)}), places(pick(shape, axes), {0, pick(strides, axes)})};
}

} // namespace

// Reduces in f64, one element after the other in row-major order.
void run_reduce(Operation &operation) {
    const Array &operand = operation.operand(0);
    const Fold fold(base_operator(operation.op).fold, operand.dtype);
    std::vector<int64_t> axes = operation.integers("axes");
    std::ranges::sort(axes);
    const Layout layout = layout_of(operand.shape, axes);
    for (int64_t row : layout.rows) {
        double sum = fold.start();
        for (int64_t element : layout.elements) sum = fold(sum, operand.data[row + element]);
        operation.result().data.push_back(sum);
    }
    store(operation.result(), operation.mode);
}

// Returns the index of the first extreme element. If there is a NaN, returns the index of the first NaN.
void run_arg_reduce(Operation &operation) {
    const double sign = base_operator(operation.op).fold == "max" ? 1 : -1;
    const Array &operand = operation.operand(0);
    const Layout layout = layout_of(operand.shape, {static_cast<int64_t>(to_number(operation.attributes.at("axis")))});
    if (layout.elements.empty())
        throw UserError({Location(), std::string(operation.op) + ".axis", "the axis must have at least 1 element", "0", ""});
    for (int64_t row : layout.rows) {
        size_t winner = 0;
        for (size_t j = 1; j < layout.elements.size(); j++) {
            const double best = sign * operand.data[row + layout.elements[winner]], value = sign * operand.data[row + layout.elements[j]];
            if (value > best || (std::isnan(value) && !std::isnan(best))) winner = j;
        }
        operation.result().data.push_back(static_cast<double>(winner));
    }
    store(operation.result(), operation.mode);
}

} // namespace scalide

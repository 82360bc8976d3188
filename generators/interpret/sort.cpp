#include "interpret/operation.h"
#include "interpret/strided.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace scalide {

namespace {

/// NaN is ordered after all numbers. -0 and +0 are equal.
bool is_before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

} // namespace

// The first key that differs determines the order. The sort is stable.
void run_argsort(Operation &operation) {
    const std::vector<int64_t> &shape = operation.operand(0).shape;
    const auto axis = static_cast<size_t>(to_number(operation.attributes.at("dimension")));
    const bool descending = operation.attributes.at("descending").word == "true";
    std::vector<int64_t> lines = shape;
    lines[axis] = std::min<int64_t>(lines[axis], 1);
    const View view = dense(shape);
    std::vector<int64_t> order(shape[axis]);
    operation.result().data.resize(element_count(shape));
    for (const int64_t first : places(lines, view)) {
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
            if (descending) std::swap(a, b);
            for (const Array *key : operation.operands) {
                const double x = key->data[first + a * view.strides[axis]], y = key->data[first + b * view.strides[axis]];
                if (is_before(x, y) || is_before(y, x)) return is_before(x, y);
            }
            return false;
        });
        for (size_t i = 0; i < order.size(); i++)
            operation.result().data[first + static_cast<int64_t>(i) * view.strides[axis]] = static_cast<double>(order[i]);
    }
}

} // namespace scalide

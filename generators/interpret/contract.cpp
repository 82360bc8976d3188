#include "interpret/operation.h"
#include "interpret/strided.h"

namespace scalide {

namespace {

/// The axes of one operand by their role in the matmul.
struct Axes {
    std::vector<int64_t> batch, free, contract;
};

Axes axes_of(const Operation &operation, size_t side) {
    Axes axes;
    const auto batch = operation.attributes.find("batch");
    if (batch != operation.attributes.end() && !batch->second.list.empty()) axes.batch = to_integers(batch->second.list[side]);
    axes.contract = to_integers(operation.attributes.at("contract").list[side]);
    std::vector<int64_t> named = axes.batch;
    named.insert(named.end(), axes.contract.begin(), axes.contract.end());
    axes.free = other_axes(static_cast<int64_t>(operation.operand(side).shape.size()), named);
    return axes;
}

std::vector<int64_t> joined(const std::vector<int64_t> &a, const std::vector<int64_t> &b, const std::vector<int64_t> &c) {
    std::vector<int64_t> all = a;
    all.insert(all.end(), b.begin(), b.end());
    all.insert(all.end(), c.begin(), c.end());
    return all;
}

/// Returns the elements as a dense array with the axes in this order. Integers become uint32_t, whose products and sums wrap around.
template<typename T>
std::vector<T> pack(const Array &array, const std::vector<int64_t> &order) {
    std::vector<T> packed;
    for (int64_t place : places(pick(array.shape, order), {0, pick(dense(array.shape).strides, order)})) {
        if constexpr (std::is_integral_v<T>) {
            packed.push_back(static_cast<T>(static_cast<int64_t>(array.data[place])));
        } else {
            packed.push_back(array.data[place]);
        }
    }
    return packed;
}

struct Sizes {
    int64_t batch, rows, columns, terms;
};

/// Computes out[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, k, j], with k ascending. A sum of one term is the term: it stays -0.
template<typename T>
std::vector<T> multiply(const Sizes &sizes, const std::vector<T> &lhs, const std::vector<T> &rhs) {
    std::vector<T> out(sizes.batch * sizes.rows * sizes.columns);
    for (int64_t b = 0; b < sizes.batch; b++)
        for (int64_t i = 0; i < sizes.rows; i++) {
            T *row = out.data() + (b * sizes.rows + i) * sizes.columns;
            for (int64_t k = 0; k < sizes.terms; k++) {
                const T factor = lhs[(b * sizes.rows + i) * sizes.terms + k];
                const T *other = rhs.data() + (b * sizes.terms + k) * sizes.columns;
                for (int64_t j = 0; j < sizes.columns; j++) row[j] = sizes.terms == 1 ? factor * other[j] : row[j] + factor * other[j];
            }
        }
    return out;
}

template<typename T>
void run(Operation &operation) {
    const Axes lhs = axes_of(operation, 0), rhs = axes_of(operation, 1);
    const Array &a = operation.operand(0), &b = operation.operand(1);
    const Sizes sizes{element_count(pick(a.shape, lhs.batch)), element_count(pick(a.shape, lhs.free)),
                      element_count(pick(b.shape, rhs.free)), element_count(pick(a.shape, lhs.contract))};
    const std::vector<T> out =
        multiply<T>(sizes, pack<T>(a, joined(lhs.batch, lhs.free, lhs.contract)), pack<T>(b, joined(rhs.batch, rhs.contract, rhs.free)));
    operation.result().data.assign(out.begin(), out.end());
    store(operation.result(), operation.mode);
}

} // namespace

void run_dot_general(Operation &operation) { is_integer(operation.operand(0).dtype) ? run<uint32_t>(operation) : run<double>(operation); }

} // namespace scalide

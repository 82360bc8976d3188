#include "interpret/operation.h"
#include "interpret/strided.h"
#include "interpret/window.h"

namespace scalide {

namespace {

/// One operand or the result, with its axes named by their role in the convolution.
struct Side {
    int64_t first, second;        ///< strides of batch and feature (of rhs: output feature, input feature)
    std::vector<int64_t> strides; ///< of the spatial axes
    std::vector<int64_t> extents; ///< of the spatial axes
    int64_t first_extent = 0, second_extent = 0;

    Side(const Array &array, const std::vector<int64_t> &spec) {
        const std::vector<int64_t> all = pick(dense(array.shape).strides, spec), sizes = pick(array.shape, spec);
        first = all[0], second = all[1];
        first_extent = sizes[0], second_extent = sizes[1];
        strides.assign(all.begin() + 2, all.end());
        extents.assign(sizes.begin() + 2, sizes.end());
    }

    int64_t place(const std::vector<int64_t> &spatial) const {
        int64_t sum = 0;
        for (size_t i = 0; i < spatial.size(); i++) sum += spatial[i] * strides[i];
        return sum;
    }
};

Extents to_extents(const std::vector<int64_t> &shape) { return {shape.begin(), shape.end()}; }

/// Integers are computed as uint32_t, whose products and sums wrap around.
template<typename T>
class Product {
public:
    explicit Product(Operation &operation)
        : operation_(operation), convolution_(convolution(operation.attributes, to_extents(operation.operand(1).shape))),
          lhs_(operation.operand(0), convolution_.lhs_spec), rhs_(operation.operand(1), convolution_.rhs_spec),
          out_(operation.result(), convolution_.out_spec), sums_(element_count(operation.result().shape)) {
        for (size_t i = 0; i < convolution_.spatial.size(); i++)
            walks_.emplace_back(convolution_.spatial[i], lhs_.extents[i], out_.extents[i]);
    }

    void run() {
        std::vector<int64_t> from(walks_.size());
        each_index(out_.extents, [&](const std::vector<int64_t> &o) {
            each_index(rhs_.extents, [&](const std::vector<int64_t> &k) {
                for (size_t i = 0; i < from.size(); i++)
                    if ((from[i] = walks_[i].element(o[i], k[i])) < 0) return;
                add(out_.place(o), lhs_.place(from), rhs_.place(k));
            });
        });
        operation_.result().data.assign(sums_.begin(), sums_.end());
        store(operation_.result(), operation_.mode);
    }

private:
    /// Adds the products of one window position, for all images and features.
    void add(int64_t out, int64_t lhs, int64_t rhs) {
        const int64_t features_of_group = rhs_.first_extent / (convolution_.feature_groups * convolution_.batch_groups);
        for (int64_t b = 0; b < out_.first_extent; b++)
            for (int64_t f = 0; f < out_.second_extent; f++) {
                const int64_t group = f / features_of_group;
                const int64_t image = convolution_.batch_groups > 1 ? group * out_.first_extent + b : b;
                const int64_t feature = convolution_.feature_groups > 1 ? group * rhs_.second_extent : 0;
                T &sum = sums_[out + b * out_.first + f * out_.second];
                const int64_t a = lhs + image * lhs_.first + feature * lhs_.second, w = rhs + f * rhs_.first;
                for (int64_t c = 0; c < rhs_.second_extent; c++) sum += element(0, a + c * lhs_.second) * element(1, w + c * rhs_.second);
            }
    }

    T element(size_t operand, int64_t place) const {
        const double value = operation_.operand(operand).data[place];
        if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<int64_t>(value));
        return static_cast<T>(value);
    }

    Operation &operation_;
    const Convolution convolution_;
    const Side lhs_, rhs_, out_;
    std::vector<WindowWalk> walks_;
    std::vector<T> sums_;
};

} // namespace

void run_convolution(Operation &operation) {
    is_integer(operation.operand(0).dtype) ? Product<uint32_t>(operation).run() : Product<double>(operation).run();
}

} // namespace scalide

#pragma once
#include "frontend/generator.h"
#include "frontend/initializers.h"

namespace scalide {

/// The last axes of the result of a Dense: `10`, `width`, `{16, 4}`. Each extent must be positive.
struct Features {
    template<std::convertible_to<Dimension> T>
    Features(const T &one) : extents{Dimension(one).extent} {}
    Features(std::initializer_list<Dimension> several) {
        for (const Dimension &dimension : several) extents.push_back(dimension.extent);
    }
    Extents extents;
};

/// Options of a Dense: `Dense("out", 10, {.bias = false, .activation = "relu"})`.
struct DenseOptions {
    int64_t axes = 1;                              ///< how many of the last axes of x are contracted (Flax: axis=(-2, -1) is 2)
    int64_t batch_axes = 0;                        ///< for each position on the first axes of x there is another kernel
    bool bias = true;                              ///< adds a bias
    std::string activation = "";                   ///< an operator of one operand, such as "gelu", applied to the result
    Dtype dtype = Dtype::f32;                      ///< the dtype of kernel and bias; the layer computes in the dtype of x
    Initializer kernel_init = {};                  ///< left out: lecun_normal(batch_axes)
    Initializer bias_init = initializers::zeros(); ///< the first value of the bias
};

/// A dense layer: it contracts the last axes of x with its kernel, adds its bias and applies its activation (flax.linen.DenseGeneral). The
/// result has the other axes of x, then the features: x of [4, 8, 8, 16] with axes 2 and features {16, 4} gives [4, 8, 16, 4]. Declare a
/// layer as a member or in generate(), and call it: `y = Dense("out", 10)(h)`. A layer that is called several times uses one kernel.
class Dense {
public:
    /// Describes a layer. The first call declares the states `name.kernel` and `name.bias`.
    Dense(std::string name, Features features, DenseOptions options = {})
        : name_(std::move(name)), features_(std::move(features.extents)), options_(std::move(options)) {}

    /// Applies the layer in the scope of its name. Throws UserError if x has too few axes, or extents that do not fit the kernel.
    Tensor operator()(const Tensor &x, const std::source_location &where = std::source_location::current());

    /// Returns the kernel, [batch axes..., product of the contracted axes, product of the features]. Throws UserError before the first
    /// call of the layer.
    State<Tensor> &kernel(const std::source_location &where = std::source_location::current()) const;
    /// Returns the bias, [batch axes..., product of the features]. Throws UserError before the first call, or if the layer has no bias.
    State<Tensor> &bias(const std::source_location &where = std::source_location::current()) const;

private:
    void declare(const Type &kernel, const std::source_location &where);

    std::string name_;
    Extents features_;
    DenseOptions options_;
    Type kernel_type_;
    State<Tensor> *kernel_ = nullptr, *bias_ = nullptr;
};

} // namespace scalide

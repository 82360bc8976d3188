#include "frontend/dense.h"
#include "frontend/tracer.h"
#include <algorithm>
#include <numeric>

namespace scalide {

namespace {

std::vector<int64_t> first_axes(int64_t count) {
    std::vector<int64_t> axes(count);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
}

Tensor reshaped(const Tensor &x, const Extents &shape) {
    return x.shape() == shape ? x : apply("reshape", {x}, {{"shape", to_attribute(shape)}});
}

Tensor converted(const Tensor &x, Dtype dtype) {
    return x.dtype() == dtype ? x : apply("convert_element_type", {x}, {{"dtype", std::string(to_string(dtype))}});
}

void check_axes(const std::string &name, const Extents &shape, const Extents &features, const DenseOptions &options) {
    const auto refuse = [&](const std::string &requirement, const std::string &got, const std::string &way_out) {
        throw UserError({{}, name, requirement, got, way_out});
    };
    if (options.axes < 1) refuse("axes must be at least 1", std::to_string(options.axes), "");
    if (options.batch_axes < 0) refuse("batch_axes must not be negative", std::to_string(options.batch_axes), "");
    if (options.batch_axes + options.axes > static_cast<int64_t>(shape.size()))
        refuse("x must have " + std::to_string(options.batch_axes) + " batch axes and " + std::to_string(options.axes) + " contracted axes",
               to_string(shape), "Reduce axes or batch_axes");
    if (!std::ranges::all_of(features, [](const Extent &extent) { return !extent.is_static() || extent.value() > 0; }))
        refuse("features must be positive", to_string(features), "");
}

State<Tensor> &declared(State<Tensor> *state, const std::string &name, const std::source_location &where) {
    if (!state)
        throw UserError(statement(location_of(where), "state '" + name + "' is not declared", "Call the layer first, with this state"));
    return *state;
}

} // namespace

void Dense::declare(const Type &kernel, const std::source_location &where) {
    if (kernel_) {
        if (!(kernel == kernel_type_))
            throw UserError({{}, name_, "x must fit the kernel " + to_string(kernel_type_), to_string(kernel), "Declare another layer"});
        return;
    }
    kernel_type_ = kernel;
    const auto dimensions = [](const Extents &shape) { return Dimensions(shape.begin(), shape.end()); };
    const Initializer first = options_.kernel_init ? options_.kernel_init : initializers::lecun_normal(options_.batch_axes);
    kernel_ = &add_state(name_ + ".kernel", kernel.dtype, dimensions(kernel.shape), first, where);
    if (!options_.bias) return;
    Extents shape = kernel.shape;
    shape.erase(shape.end() - 2);
    bias_ = &add_state(name_ + ".bias", kernel.dtype, dimensions(shape), options_.bias_init, where);
}

Tensor Dense::operator()(const Tensor &x, const std::source_location &where) {
    return at(where, [&] {
        const Scope scope(name_);
        const Extents shape = x.shape();
        check_axes(name_, shape, features_, options_);
        const auto kept = static_cast<int64_t>(shape.size()) - options_.axes;
        const Extent columns = element_count(features_), rows = element_count({shape.begin() + kept, shape.end()});
        Extents kernel_shape(shape.begin(), shape.begin() + options_.batch_axes), result(shape.begin(), shape.begin() + kept);
        kernel_shape.insert(kernel_shape.end(), {rows, columns});
        declare({options_.dtype, kernel_shape}, where);

        Extents flat = result;
        flat.push_back(rows);
        const std::vector<int64_t> batch = first_axes(options_.batch_axes);
        Tensor y =
            apply("dot_general", {reshaped(x, flat), converted(*kernel_, x.dtype())},
                  {{"contract", to_attribute(AxisPairs({kept}, {options_.batch_axes}))}, {"batch", to_attribute(AxisPairs(batch, batch))}});
        if (bias_) {
            std::vector<int64_t> dims = batch;
            dims.push_back(kept);
            const Attributes spread{{"shape", to_attribute(y.shape())}, {"dims", to_attribute(dims)}};
            y = y + apply("broadcast_in_dim", {converted(*bias_, x.dtype())}, spread);
        }
        if (!options_.activation.empty()) y = apply(options_.activation, {y});
        result.insert(result.end(), features_.begin(), features_.end());
        return reshaped(y, result);
    });
}

State<Tensor> &Dense::kernel(const std::source_location &where) const { return declared(kernel_, name_ + ".kernel", where); }
State<Tensor> &Dense::bias(const std::source_location &where) const { return declared(bias_, name_ + ".bias", where); }

} // namespace scalide

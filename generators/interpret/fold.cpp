#include "interpret/fold.h"
#include <array>

namespace scalide {

Fold::Fold(std::string_view step, Dtype dtype)
    : start_(fold_start(dtype, base_operator(step).fold_start.value())), dtype_(dtype), step_(base_operator(step), dtype, {}) {}

double Fold::operator()(double a, double b) const {
    const double value = step_(std::array{a, b});
    return is_integer(dtype_) ? wrap_integer(dtype_, value) : value;
}

} // namespace scalide

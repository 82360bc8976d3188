#include "lower/windows/window_places.h"
#include "lower/values/movement.h"

namespace scalide {
using Halide::Expr;

namespace {

void add(WindowPlaces::Place &place, const PaddedAxis &axis, const Expr &extent) {
    place.index.push_back(axis.index);
    place.inside = place.inside.defined() ? place.inside && axis.inside : axis.inside;
    place.extents.push_back(extent);
}

} // namespace

bool has_elements_only(const WindowAxis &axis) {
    const bool known = axis.low.is_static() && axis.high.is_static();
    return known && axis.low.value() <= 0 && axis.high.value() <= 0 && axis.base_dilation == 1;
}

Expr WindowPlaces::Place::choose(const Expr &value, const Expr &fill) const {
    return inside.defined() ? select_inside(inside, value, fill, extents) : value;
}

WindowPlaces::WindowPlaces(const Values &values, std::vector<WindowAxis> axes, const Extents &elements, const Extents &windows)
    : axes_(std::move(axes)) {
    for (size_t i = 0; i < axes_.size(); i++) {
        exprs_.push_back({values.extent(axes_[i].low), values.extent(elements[i]), values.extent(windows[i])});
    }
}

WindowPlaces::Place WindowPlaces::element(const Index &o, const Index &k) const {
    Place place;
    for (size_t i = 0; i < axes_.size(); i++) {
        const WindowAxis &axis = axes_[i];
        Expr at = Halide::Internal::simplify(o[i] * int(axis.stride) + k[i] * int(axis.window_dilation));
        if (has_elements_only(axis)) {
            place.index.push_back(Halide::Internal::simplify(at - exprs_[i].low));
        } else {
            add(place, unpad(at, exprs_[i].low, int(axis.base_dilation), exprs_[i].elements), exprs_[i].elements);
        }
    }
    return place;
}

WindowPlaces::Place WindowPlaces::window(const Index &i, const Index &k) const {
    Place place;
    for (size_t axis = 0; axis < axes_.size(); axis++) {
        const WindowAxis &a = axes_[axis];
        if (a.is_trivial()) {
            place.index.push_back(i[axis]);
            continue;
        }
        Expr at = Halide::Internal::simplify(i[axis] * int(a.base_dilation) - k[axis] * int(a.window_dilation) + exprs_[axis].low);
        add(place, unpad(at, 0, int(a.stride), exprs_[axis].windows), exprs_[axis].windows);
    }
    return place;
}

Extents WindowPlaces::extents() const {
    Extents extents;
    for (const WindowAxis &axis : axes_) {
        extents.push_back(axis.window);
    }
    return extents;
}

} // namespace scalide

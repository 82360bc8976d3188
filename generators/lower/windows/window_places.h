#pragma once
#include "ir/window.h"
#include "lower/values/values.h"

namespace scalide {

/// True if there is no padding and no dilation of the array. Then every position of every window has an element.
bool has_elements_only(const WindowAxis &axis);

/// Maps positions between the elements of an array and the windows of a window operator, as Exprs.
class WindowPlaces {
public:
    struct Place {
        Index index;         ///< index within the array
        Halide::Expr inside; ///< whether there is an element; undefined: always
        Index extents;       ///< extents of the array along axes where elements may be missing

        /// Returns `value` if there is an element, otherwise `fill`.
        Halide::Expr choose(const Halide::Expr &value, const Halide::Expr &fill) const;
    };

    /// `elements` and `windows`: the extents of the array and the number of windows, for each axis.
    WindowPlaces(const Values &values, std::vector<WindowAxis> axes, const Extents &elements, const Extents &windows);

    /// Returns the element at position k of window o.
    Place element(const Index &o, const Index &k) const;
    /// Returns the window in which element i has position k.
    Place window(const Index &i, const Index &k) const;

    const std::vector<WindowAxis> &axes() const { return axes_; }
    /// Returns the extents of a window.
    Extents extents() const;

private:
    struct Axis {
        Halide::Expr low, elements, windows;
    };

    std::vector<WindowAxis> axes_;
    std::vector<Axis> exprs_;
};

} // namespace scalide

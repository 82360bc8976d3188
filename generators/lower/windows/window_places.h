#pragma once
#include "ir/window.h"
#include "lower/values.h"

namespace scalide {

/// No padding adds places, and no gaps lie between elements: every place of every window has an element.
bool has_elements_only(const WindowAxis &axis);

/// Where elements and windows of a window operator meet, as Exprs.
class WindowPlaces {
public:
    struct Place {
        Index index;         ///< within the array
        Halide::Expr inside; ///< whether there is an element; undefined: always
        Index extents;       ///< of the array along the axes where there may be none

        /// `value` where there is an element, else `fill`.
        Halide::Expr choose(const Halide::Expr &value, const Halide::Expr &fill) const;
    };

    /// `elements` and `windows` are the extents of the array and the numbers of windows, by axis.
    WindowPlaces(const Values &values, std::vector<WindowAxis> axes, const Extents &elements, const Extents &windows);

    /// The element at place k of window o.
    Place element(const Index &o, const Index &k) const;
    /// The window of which element i is place k.
    Place window(const Index &i, const Index &k) const;

    const std::vector<WindowAxis> &axes() const { return axes_; }
    /// The extents of a window.
    Extents extents() const;

private:
    struct Axis {
        Halide::Expr low, elements, windows;
    };

    std::vector<WindowAxis> axes_;
    std::vector<Axis> exprs_;
};

} // namespace scalide

#pragma once
#include "interpret/interpret.h"
#include "ir/program.h"

namespace scalide {

/// Returns an array of zeros of this type; the symbols have these values.
inline Array zeros(const Type &type, const Extent::Bindings &symbols) {
    Array array{type.dtype, {}, {}};
    for (const Extent &extent : type.shape) array.shape.push_back(extent.evaluate(symbols));
    array.data.resize(static_cast<size_t>(element_count(type.shape).evaluate(symbols)));
    return array;
}

} // namespace scalide

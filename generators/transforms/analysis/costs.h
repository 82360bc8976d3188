#pragma once
#include "expr/base_operators.h"
#include "ir/program.h"

namespace scalide {

/// Returns the iteration pattern of a node of base operators.
Shape shape_of(const Node &node);

/// Returns the cost of one result element, in units of one addition: a division costs 4, an exponential 10. Movement and sources are free.
/// Fusion decides by this cost. Reports count it too, so it is part of the table of operators.
int cost_of(const Node &node);

/// True if computing an element twice costs more than storing and reading it: transcendental functions and others of similar cost.
bool is_expensive(const Node &node);

/// True for a conversion to a low-precision float. Its result is stored, never recomputed.
bool is_rounding(const Program &program, const Node &node);
/// True for a conversion from a narrower float to f32 or f64. It is exact, and cheaper to recompute than to store.
bool is_decoding(const Program &program, const Node &node);

/// True for a `reshape` to the operand's own shape.
bool is_copy(const Program &program, const Node &node);

/// Estimates the elements and bytes of arrays. Each symbol counts as 128, or as the nearest value that its range and multiple allow.
class NominalSizes {
public:
    explicit NominalSizes(const Program &program);
    double elements(const Extents &shape) const;
    double bytes(const Type &type) const { return elements(type.shape) * size_of(type.dtype); }

private:
    Extent::Bindings bindings_;
};

} // namespace scalide

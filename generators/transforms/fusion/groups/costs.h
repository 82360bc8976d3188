#pragma once
#include "expr/base_operators.h"
#include "ir/program.h"

namespace scalide {

/// How a node of base operators moves over indices.
Shape shape_of(const Node &node);

/// Arithmetic of one result element of an operator, in units of an addition: a division 4, an exponential 10 ... Movement and sources are
/// free. For decisions; reports count it too, so that it stands in one table.
int cost_of(const Node &node);

/// True where computing an element twice costs more than storing and reading it: transcendental functions and what has their price.
bool is_expensive(const Node &node);

/// A convert to fewer than 32 bits of float: what it makes is stored, never recomputed.
bool is_rounding(const Program &program, const Node &node);
/// A convert from a narrower float to f32 or f64: it is exact, and cheaper to repeat than to store.
bool is_decoding(const Program &program, const Node &node);

/// A `reshape` to the operand's own shape.
bool is_copy(const Program &program, const Node &node);

/// Elements and bytes of arrays when each symbol has a usual value (128, or the nearest that its range and multiple allow).
class NominalSizes {
public:
    explicit NominalSizes(const Program &program);
    double elements(const Extents &shape) const;
    double bytes(const Type &type) const { return elements(type.shape) * size_of(type.dtype); }

private:
    Extent::Bindings bindings_;
};

} // namespace scalide

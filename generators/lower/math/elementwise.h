#pragma once
#include "ir/attribute.h"
#include "ir/dtype.h"
#include <Halide.h>
#include <span>
#include <string_view>

namespace scalide {

/// A value in a kernel. f32, f64 and integers have their own type, bool is Bool(), and a low-precision float is its bit pattern.
struct ElementwiseOperand {
    Halide::Expr value;
    Dtype dtype;
};

/// How f32 functions are computed.
enum class Arithmetic {
    exact,   ///< the same bits on every target
    device,  ///< by the instructions of a CUDA GPU, see lower/math/device.cpp
    rounded, ///< the same, for a value that is used only after it is rounded to at most 11 bits
    stored,  ///< the same, for a value that is only converted to formats with at most 8 bits
};

/// One elementwise operation. Only convert_element_type accepts low-precision floats; other operators accept f32, f64, integers and bool.
struct ElementwiseCall {
    std::span<const ElementwiseOperand> operands;
    const Attributes &attributes;
    Dtype result;
    Arithmetic arithmetic = Arithmetic::exact;

    const Halide::Expr &value(size_t operand) const { return operands[operand].value; }
};

/// Lowers an elementwise base operator to an Expr of the result's dtype. All operations are strict; math.h explains why.
struct ElementwiseLowering {
    std::string_view name;
    Halide::Expr (*lower)(const ElementwiseCall &call);
};

/// Returns one row for each elementwise base operator.
std::span<const ElementwiseLowering> elementwise_lowerings();

/// Returns the Expr of an elementwise base operator. Throws InternalError for other operators and for dtypes that the operator does not
/// accept. Transcendental functions accept f32 only. f64, which is used for scales, has arithmetic, comparisons, roots and powers of two.
Halide::Expr lower_elementwise(std::string_view op, std::span<const ElementwiseOperand> operands, const Attributes &attributes,
                               Dtype result, Arithmetic arithmetic = Arithmetic::exact);

/// Converts a value to another dtype with one rounding. A float becomes an integer by truncation and saturation; NaN becomes 0, as in XLA.
/// An integer becomes a narrower integer by its low bits. A bool is x != 0.
Halide::Expr convert(const ElementwiseOperand &operand, Dtype result, Overflow overflow = Overflow::saturate);

} // namespace scalide

#pragma once
#include "ir/attribute.h"
#include "ir/dtype.h"
#include <Halide.h>
#include <span>
#include <string_view>

namespace scalide {

/// A value in a kernel: f32, f64 and integers are themselves, bool is Bool(), a narrow float is its storage code.
struct ElementwiseOperand {
    Halide::Expr value;
    Dtype dtype;
};

/// One elementwise operation. Operators other than convert_element_type get f32, f64, integers and bool only.
struct ElementwiseCall {
    std::span<const ElementwiseOperand> operands;
    const Attributes &attributes;
    Dtype result;

    const Halide::Expr &value(size_t operand) const { return operands[operand].value; }
};

/// How an elementwise base operator becomes an Expr of the result's dtype. Strict throughout (math.h says why).
struct ElementwiseLowering {
    std::string_view name;
    Halide::Expr (*lower)(const ElementwiseCall &call);
};

/// One row for each elementwise base operator.
std::span<const ElementwiseLowering> elementwise_lowerings();

/// The Expr of an elementwise base operator. Throws InternalError for another operator or a dtype that it does not take: transcendental
/// functions are f32 only; f64 (scales) has arithmetic, comparisons, roots and powers of two.
Halide::Expr lower_elementwise(std::string_view op, std::span<const ElementwiseOperand> operands, const Attributes &attributes,
                               Dtype result);

/// A value in another dtype, rounded once; floats become integers towards zero, saturating, NaN as 0 (XLA), integers
/// narrower ones by their low bits; bool is x != 0.
Halide::Expr convert(const ElementwiseOperand &operand, Dtype result, Overflow overflow = Overflow::saturate);

} // namespace scalide

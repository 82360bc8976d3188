#pragma once
#include "kinds/panel_layout.h"
#include "lower/kernel/budgets.h"
#include "lower/values/values.h"

namespace scalide {

/// Returns the shape of the panels that the right operand of a kernel is read from; nothing if the kernel packs the operand itself.
std::optional<Extents> panels_of(const Program &kernel);

/// True if the argument is the panels of the right operand of a matmul. Panels are dense, because the library packs them itself.
bool holds_panels(const Program &kernel, int argument);

/// Returns an element of the panels, at an index of panels_of(). `operand`: the right operand, which the kernel computes from its panels.
/// The element has the type of Values::at.
Halide::Expr element_of_panels(Values &values, ValueId operand, const Index &index);

// The layout in which a kernel of a class packs its right operand; nothing if it packs none (products/contract_operands.cpp,
// windows/window_convolution.cpp).
std::optional<PanelLayout> contract_panels(const Program &kernel, const Halide::Target &target, const Budgets &budgets);
std::optional<PanelLayout> convolution_panels(const Program &kernel, const Halide::Target &target, const Budgets &budgets);

} // namespace scalide

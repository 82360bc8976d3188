#pragma once
#include "emit/library.h"
#include "tool/kernel_list.h"

namespace scalide {

/// Returns the program of a kernel, `<library>_<kernel>`. With `grad`, a second program `<library>_<kernel>_grad` follows: its arguments
/// are the operands and the gradient `d_<result>` of each float result, its results are the gradients `d_<operand>`. Operands of
/// elementwise operators broadcast. Throws UserError at the kernel if its operands or attributes do not fit the rules.
std::vector<LibraryProgram> kernel_programs(const Rulebook &rulebook, const LibraryKernel &kernel, const std::string &library);

/// Returns the kernels for the name of an operator, or for every operator ("all"). Their names are `<kernel>_<dtype>`. If the rule has
/// scales, there is also `<kernel>_<dtype>_scaled`. An operator without float operands has a single kernel, `<kernel>`. Shapes come from
/// default_kernels.yaml. Elementwise operators have operands [n]; other operators without defaults have the shapes of their first check
/// case. Throws UserError for an unknown operator.
std::vector<LibraryKernel> default_kernels(const Rulebook &rulebook, const std::string &op, const std::vector<Dtype> &dtypes);

} // namespace scalide

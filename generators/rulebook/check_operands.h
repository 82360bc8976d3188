#pragma once
#include "ir/type.h"
#include "rulebook/rule.h"

namespace scalide {

/// One operand of an operator that is to be tried out.
struct CheckOperand {
    const OperandSpec *spec = nullptr;
    std::string name; ///< of the operand; `cases.0` for an array of a variadic one
    Type type;
};

/// The operands of a check case in node order; the letters in its shapes are symbols. Dtypes are those of choose_dtypes.
std::vector<CheckOperand> check_operands(const Rule &rule, const CheckCase &check_case, Dtype wanted);

/// Sets the dtypes: the first combination, by letter (or operand), that the rule takes with these shapes. Where a class leaves a choice it
/// is `wanted`, else i32 or bool. When the rule takes none, the first combination: building the program then says what is wrong.
void choose_dtypes(const Rule &rule, std::vector<CheckOperand> &operands, const Attributes &attributes, Dtype wanted);

} // namespace scalide

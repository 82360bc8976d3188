#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// One operand of an operator that is to be tried out.
struct CheckOperand {
    const OperandSpec *spec = nullptr;
    std::string name; ///< of the operand; `cases.0` for an array of a variadic one
    Type type;
};

enum class Scaled { no, yes };

/// The operands of a check case in node order; the letters in its shapes are symbols. Dtypes are those of choose_dtypes.
std::vector<CheckOperand> check_operands(const Rule &rule, const CheckCase &check_case, Dtype wanted);

/// The attributes of a check case, the letters in extents being symbols.
Attributes check_attributes(const Rule &rule, const CheckCase &check_case);

/// True when every letter of the attributes is one of a shape: a binding of the operands then gives all extents.
bool is_bound(const Rule &rule, const CheckCase &check_case);

/// Adds the sub-programs that attributes of a check case name: each makes what it takes, one array of this type.
void add_sub_programs(Program &program, const Rule &rule, const Attributes &attributes, const Type &type);

/// A program of one node, the operator of the rule, on the operands of a check case. With `scaled` arguments and results are scaled where
/// they are floats and the rule does not make them plain.
Program check_program(const Rulebook &rulebook, const Rule &rule, const CheckCase &check_case, Dtype wanted, Scaled scaled);

/// Sets the dtypes: the first combination, by letter (or operand), that the rule takes with these shapes. Where a class leaves a choice it
/// is `wanted`, else f32, i32 or bool. When the rule takes none, the first combination: building the program then says what is wrong.
void choose_dtypes(const Rule &rule, std::vector<CheckOperand> &operands, const Attributes &attributes, Dtype wanted);

} // namespace scalide

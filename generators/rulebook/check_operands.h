#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// One operand of a check case.
struct CheckOperand {
    const OperandSpec *spec = nullptr;
    std::string name; ///< name of the operand; `cases.0` for an array of a variadic operand
    Type type;
};

enum class Scaled { no, yes };

/// Returns the operands of a check case in node order. The letters in shapes are symbols. choose_dtypes() sets the dtypes.
std::vector<CheckOperand> check_operands(const Rule &rule, const CheckCase &check_case, Dtype wanted);

/// Returns the attributes of a check case. Letters in extents are symbols.
Attributes check_attributes(const Rule &rule, const CheckCase &check_case);

/// Returns true if each letter in the attributes also occurs in a shape, so that the operands determine all extents.
bool is_bound(const Rule &rule, const CheckCase &check_case);

/// Adds the sub-programs that attributes of a check case name. Each is the identity for one array of this type.
void add_sub_programs(Program &program, const Rule &rule, const Attributes &attributes, const Type &type);

/// Returns a program with one node, the operator of the rule, for the operands of a check case. With Scaled::yes, float arguments and
/// results are scaled unless the rule makes them plain.
Program check_program(const Rulebook &rulebook, const Rule &rule, const CheckCase &check_case, Dtype wanted, Scaled scaled);

/// Chooses the dtypes: the first combination that the rule accepts for these shapes. If a class allows it, the dtype is `wanted`, otherwise
/// f32, i32 or bool. If the rule accepts no combination, it takes the first one, and building the program reports the error.
void choose_dtypes(const Rule &rule, std::vector<CheckOperand> &operands, const Attributes &attributes, Dtype wanted);

} // namespace scalide

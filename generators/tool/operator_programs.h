#pragma once
#include "emit/library.h"

namespace scalide {

/// What a library of operators holds: each operator in each dtype, plain and scaled.
struct OperatorSelection {
    std::vector<std::string> operators; ///< LAX names; "all": every rule
    std::vector<Dtype> dtypes;          ///< of the operands that take floats
};

/// A program of one node for each operator and dtype, `<operator>_<dtype>`, and `<operator>_<dtype>_scaled` where scales have a rule.
/// Shapes and attributes are those of the first check case, its letters the symbols; results are stored in the dtype of the operands.
/// Operators whose operands take no floats come once, under their own name. Throws UserError for an unknown operator.
std::vector<LibraryProgram> operator_programs(const Rulebook &rulebook, const OperatorSelection &selection);

} // namespace scalide

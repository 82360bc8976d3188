#pragma once
#include "emit/library.h"

namespace scalide {

/// What a library of operators holds: each operator in each dtype, plain and scaled.
struct OperatorSelection {
    std::vector<std::string> operators; ///< LAX names; "all": every rule
    std::vector<Dtype> dtypes;          ///< of the operands that take floats
    std::string library;                ///< what the names of its programs begin with
};

/// A program of one node for each operator and dtype, `<library>_<operator>_<dtype>`, and `<library>_<operator>_<dtype>_scaled` where
/// scales have a rule: an application may link several libraries of operators. Shapes and attributes are those of the first check case, its
/// letters the symbols; results are stored in the dtype of the operands. Operators whose operands take no floats come once, as
/// `<library>_<operator>`. Throws UserError for an unknown operator.
std::vector<LibraryProgram> operator_programs(const Rulebook &rulebook, const OperatorSelection &selection);

} // namespace scalide

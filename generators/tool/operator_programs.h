#pragma once
#include "emit/library.h"

namespace scalide {

/// The content of an operator library: each operator in each dtype, with and without scales.
struct OperatorSelection {
    std::vector<std::string> operators; ///< LAX names; "all" selects every rule
    std::vector<Dtype> dtypes;          ///< dtypes of the operands that accept floats
    std::string library;                ///< prefix of the names of its programs
};

/// Returns a program of one node for each operator and dtype, `<library>_<operator>_<dtype>`. If the rule has scales, there is also
/// `<library>_<operator>_<dtype>_scaled`. Names have the prefix, so an application can link several operator libraries. Shapes and
/// attributes come from the first check case, whose letters become symbols. Results are stored in the dtype of the operands. An operator
/// without float operands has a single program, `<library>_<operator>`. Throws UserError for an unknown operator.
std::vector<LibraryProgram> operator_programs(const Rulebook &rulebook, const OperatorSelection &selection);

} // namespace scalide

#pragma once
#include "ir/dtype.h"
#include <string>
#include <vector>

namespace scalide {

/// A product of matrices that a library of the target computes (a row of schedules/dispatch.yaml).
struct LibraryProduct {
    std::string library; ///< "cublaslt"
    Dtype lhs, rhs;
    std::vector<Dtype> results;
    bool k_contiguous = false; ///< both operands must be contiguous along the contracting axis
};

} // namespace scalide

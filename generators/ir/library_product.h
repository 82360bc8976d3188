#pragma once
#include "ir/dtype.h"
#include <string>
#include <vector>

namespace scalide {

/// What a library may store of a product, and what it may add before.
struct LibraryResult {
    Dtype dtype;
    Overflow overflow = Overflow::format; ///< what its conversion from f32 does at the end of the format
    std::vector<Dtype> bias = {};         ///< dtypes of a vector that is added to each row; none: nothing is added
    std::vector<Dtype> addend = {};       ///< dtypes of a matrix that is added
    bool is_scaled = false; ///< it may be multiplied by a rank-0 f32 before it is stored, its largest magnitude taken before that
};

/// A product of matrices that a library of the target computes (a row of schedules/dispatch.yaml).
struct LibraryProduct {
    std::string library; ///< "cublaslt"
    Dtype lhs, rhs;
    std::vector<LibraryResult> results;
    bool k_contiguous = false; ///< both operands must be contiguous along the contracting axis
    int64_t multiple = 1;      ///< of which m, n and k must be multiples
};

} // namespace scalide

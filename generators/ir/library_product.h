#pragma once
#include "ir/dtype.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scalide {

/// The layout of the scales of a matmul operand. scalide_scales in runtime/include/scalide/plan.h has the same numbers.
enum class ScaleLayout : uint8_t {
    none,        ///< no scale, or one scale for the operand
    outer_vec,   ///< one f32 for each row
    vec128,      ///< one f32 for 128 elements along k; the scales of rows are contiguous
    blk128x128,  ///< one f32 for 128 rows and 128 elements along k; rows of scales are padded to multiples of 4
    vec32_ue8m0, ///< one e8m0 for 32 elements along k (MXFP8), in tiles of 128 rows x 4
};
std::string_view to_string(ScaleLayout layout);
std::optional<ScaleLayout> parse_scale_layout(std::string_view name);

struct ScaleLayouts {
    ScaleLayout lhs = ScaleLayout::none, rhs = ScaleLayout::none;
    bool operator==(const ScaleLayouts &other) const = default;
};

/// A result that a library can store for a matmul, and what it can add before.
struct LibraryResult {
    Dtype dtype;
    Overflow overflow = Overflow::format; ///< how its conversion from f32 treats values that are too large
    std::vector<Dtype> bias = {};         ///< dtypes of a vector that it can add to each row; empty: none
    std::vector<Dtype> addend = {};       ///< dtypes of a matrix that it can add
    bool is_scaled = false;               ///< it can compute the largest magnitude, then multiply by an f32 scalar, then store
};

/// A matmul that a library of the target can compute (an entry of schedules/dispatch.yaml).
struct LibraryProduct {
    std::string library; ///< "cublaslt"
    Dtype lhs, rhs;
    std::vector<LibraryResult> results;
    bool k_contiguous = false;               ///< both operands must be contiguous along the contracted axis
    int64_t multiple = 1;                    ///< m, n and k must be multiples of this number
    std::vector<ScaleLayouts> scales = {{}}; ///< supported layouts of the scales
    std::vector<int> cards = {};             ///< compute capabilities that support it; empty: all
    std::optional<Dtype> through = {};       ///< the dtype to which operands are converted first, exactly
};

} // namespace scalide

#pragma once
#include "ir/dtype.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scalide {

/// How a library reads the scales of a product's operand; scalide_scales in runtime/include/scalide/plan.h has the same numbers.
enum class ScaleLayout : uint8_t {
    none,        ///< 1, or one number for the operand
    outer_vec,   ///< an f32 a row
    vec128,      ///< an f32 for 128 elements along k; rows side by side
    blk128x128,  ///< an f32 for 128 rows of 128 elements along k; rows of scales begin at multiples of four
    vec32_ue8m0, ///< an e8m0 for 32 elements along k (MXFP8), in tiles of 128 rows x 4
};
std::string_view to_string(ScaleLayout layout);
std::optional<ScaleLayout> parse_scale_layout(std::string_view name);

struct ScaleLayouts {
    ScaleLayout lhs = ScaleLayout::none, rhs = ScaleLayout::none;
    bool operator==(const ScaleLayouts &other) const = default;
};

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
    bool k_contiguous = false;               ///< both operands must be contiguous along the contracting axis
    int64_t multiple = 1;                    ///< of which m, n and k must be multiples
    std::vector<ScaleLayouts> scales = {{}}; ///< of the operands
    std::vector<int> cards = {};             ///< that compute it, by compute capability; empty: all
    std::optional<Dtype> through = {};       ///< what operands of another dtype become first, exactly; the library multiplies these
};

} // namespace scalide

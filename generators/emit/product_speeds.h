#pragma once
#include "emit/built_form.h"
#include "lower/contract_form.h"
#include "schedules/tables/tiles.h"

namespace scalide {

/// The matmuls or convolutions of a program that a CPU computes in one form.
struct ProductSpeed {
    std::string kind; ///< kernel class: contract (matmuls) or window (convolutions)
    ProductForm form;
    std::optional<Rate> rate; ///< nothing if it is unknown, or if elements are multiplied as stored
    size_t count = 0;         ///< steps of the program
    double operations = 0;    ///< multiply-adds of one run; symbols have nominal sizes (transforms/analysis/costs.h)

    /// True if elements have 8 or 16 bits, and the form is not known to be faster than f32.
    bool is_no_gain() const;
};

/// Returns the forms of a program's matmuls and convolutions, those with most operations first. Empty on GPUs.
std::vector<ProductSpeed> product_speeds(const BuiltForm &built);

/// Returns the forms of large matmuls, or of convolutions, of two operands of one number format on a CPU: f32, bf16, f16, f8, i8.
std::vector<ProductSpeed> format_speeds(const std::string &kind, const Halide::Target &target);

} // namespace scalide

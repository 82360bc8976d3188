#pragma once
#include "ir/program.h"
#include "lower/kernel/budgets.h"
#include <Halide.h>
#include <optional>

namespace scalide {

/// The elements that the instructions of a matmul or convolution multiply on a CPU.
enum class MultiplyBy {
    own,        ///< elements as they are stored: f32, f64, wide integers
    f32,        ///< elements that are decoded to f32
    bf16_pairs, ///< vdpbf16ps
    i16_pairs,  ///< vpmaddwd
    byte_quads, ///< vpdpbusd
    tiles,      ///< AMX
};

/// How a kernel for CPUs computes its matmul or convolution.
struct ProductForm {
    std::string format; ///< of the wider operand as it is stored: "f8", "f16", "bf16", "f32", "i8"
    MultiplyBy by = MultiplyBy::own;
    bool sums_floats = true; ///< the sum is f32 or f64, not i32
    Extents terms;           ///< their product is the number of multiply-adds
};

/// Returns the form of a kernel of class contract or window for a CPU. Nothing if it has neither a matmul nor a convolution.
std::optional<ProductForm> product_form(const Program &kernel, const Halide::Target &target, const Budgets &budgets);

/// Returns the name of a form's rate in schedules/tiles.yaml: "f8_pairs", "f16_decoded". Empty for elements that are multiplied as stored.
std::string rate_name(const ProductForm &form);

/// Returns the instructions of a form: "vdpbf16ps", "decoded to f32, FMA".
std::string instructions_of(const ProductForm &form, const Halide::Target &target);

} // namespace scalide

#pragma once
#include "ir/text.h"
#include "kernels/compiled_kernel.h"
#ifdef SCALIDE_TEST_OPENCL
#include "gpu/opencl_kernel.h"
#endif
#include <random>

namespace scalide::contract_test {

using Doubles = std::vector<double>;

/// The cases run on the CPU, and in tests/gpu once more on OpenCL.
#ifdef SCALIDE_TEST_OPENCL
using Kernel = OpenclKernel;
#else
using Kernel = CompiledKernel;
#endif

/// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], row-major. An operand may be stored transposed.
struct Product {
    int64_t batch = 1, m = 1, n = 1, k = 1;
    bool lhs_transposed = false, rhs_transposed = false; ///< A is [b, k, m]; B is [b, n, k]
};
Doubles multiply(const Product &product, const Doubles &a, const Doubles &b);

/// "f32[b, m, k]" or the transposed shape; no batch: "f32[m, k]".
struct Form {
    bool lhs_transposed = false, rhs_transposed = false, batched = false;
    std::string lhs_dtype = "f32", rhs_dtype = "f32", result_dtype = "f32"; ///< all integers, or result f32
    std::string m = "m", n = "n", k = "k", batch = "b";                     ///< extents: symbols or numbers

    std::string name() const; ///< "NN", "TN" ...
    std::string lhs_type() const;
    std::string rhs_type() const;
    std::string result_type() const;
    /// Returns the lines that define `z`, the matmul of the arguments x and y. Low-precision floats are widened first.
    std::string lines() const;
    /// Returns a whole kernel with the result z.
    std::string text() const;
};

/// Returns integers from -limit to limit, so that products and sums are exact in every format and order.
Doubles random_integers(size_t count, int limit, std::mt19937 &random);
Words to_words(const Doubles &values, Dtype dtype);
Doubles to_doubles(const Words &words, Dtype dtype);
Dtype dtype_named(const std::string &name);

/// The target of a CPU that multiplies pairs of bf16 faster than f32.
Halide::Target pairs_target();

/// Runs the kernel of `form.text()` on small integers. Every element of the result must be exact.
void expect_product(const Kernel &kernel, const Form &form, const Product &product, const Extent::Bindings &symbols);

} // namespace scalide::contract_test

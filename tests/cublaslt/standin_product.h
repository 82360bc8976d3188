#pragma once
#include "cublaslt/cublaslt_abi.h"
#include <map>
#include <string>

namespace scalide::test {

/// What an opaque object of cuBLASLt holds in this emulation.
struct StandinObject {
    std::string head; ///< how it was created
    int32_t type;     ///< of a layout; below too
    uint64_t rows, columns;
    int64_t leading;
    std::map<int, std::string> attributes; ///< values by number, as bytes

    template<typename T>
    T get(int number, T otherwise) const {
        const auto found = attributes.find(number);
        if (found == attributes.end()) return otherwise;
        found->second.copy(reinterpret_cast<char *>(&otherwise), sizeof(T));
        return otherwise;
    }
};

struct StandinMatrix {
    const StandinObject &layout;
    void *memory;
};

/// Computes in host memory what NVIDIA's manual says of cublasLtMatmul. Its section "Narrow Precision Data Types Usage" gives the layouts
/// of scales. Sums are in f64 and rounded once. f8 saturates, and f16 and bf16 become infinite. Epilogues are default, bias, relu and both.
/// Returns false for a product that this emulation does not have.
bool multiply_as_cublaslt(const StandinObject &operation, float alpha, const StandinMatrix &a, const StandinMatrix &b, float beta,
                          const StandinMatrix &c, const StandinMatrix &d);

} // namespace scalide::test

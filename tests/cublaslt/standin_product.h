#pragma once
#include "cublaslt/cublaslt_abi.h"
#include <map>
#include <string>

namespace scalide::test {

/// What cuBLASLt's opaque objects hold here.
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

/// What cublasLtMatmul computes by NVIDIA's manual (cublasLtMatmul; "Narrow Precision Data Types Usage" has the layouts of scales), in
/// memory of the host: sums in f64, rounded once; f8 saturates, f16 and bf16 become infinite. Epilogues default, bias, relu and both. False
/// where it has no such product.
bool multiply_as_cublaslt(const StandinObject &operation, float alpha, const StandinMatrix &a, const StandinMatrix &b, float beta,
                          const StandinMatrix &c, const StandinMatrix &d);

} // namespace scalide::test

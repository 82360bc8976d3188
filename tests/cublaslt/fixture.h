#pragma once
#include "descs.h"
#include "standin.h"
#include <gtest/gtest.h>

namespace scalide {

/// The emulated cuBLASLt, loaded as the runtime loads it, and pointers that are never dereferenced.
class cublaslt_test : public testing::Test {
protected:
    cublaslt_test();
    ~cublaslt_test() override;

    StandinState state() const { return read_(); }
    void reset(int failing = -1, int candidates = 2, int broken = 0) const { reset_(failing, candidates, broken); }
    MatmulStream stream();
    /// Addresses 0x1000, 0x2000 ... for the operands that the descriptor has.
    static MatmulPointers pointers_of(const MatmulDesc &desc);
    /// Prepares the matmul and chooses an algorithm. Returns "" or the reason of the failure.
    std::string make_ready(Matmul &matmul, const MatmulDesc &desc, MatmulSearch search = MatmulSearch::heuristic,
                           const char *folder = nullptr);

    std::string factors_of(const MatmulDesc &desc);

    const CublasLt *library_ = nullptr;
    bool healthy_ = true; ///< the result of synchronise

private:
    StandinRead read_ = nullptr;
    StandinReset reset_ = nullptr;
    cublaslt::Handle handle_ = nullptr;
};

} // namespace scalide

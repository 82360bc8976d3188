#pragma once
#include "cublaslt.h"

namespace scalide {

/// cuBLASLt on one CUDA device, for the bindings of a context. Loaded and opened for the first product; the device's context is current
/// in every call.
class CudaMatmuls {
public:
    /// What is known of the device; `folder` (NULL: none) keeps algorithms between processes.
    struct Setup {
        int32_t capability; ///< 90: sm_90
        const char *name;   ///< lives as long as this
        const char *folder; ///< likewise
        MatmulSearch search;
    };

    void set_up(const Setup &setup) { setup_ = setup; }
    /// 32 MiB from sm_90 on, 4 MiB before: NVIDIA's recommendation.
    uint64_t workspace_bytes() const { return uint64_t(setup_.capability >= 90 ? 32 : 4) << 20; }

    /// False, and why, when the library is not there or a rule is broken.
    bool accepts(const MatmulDesc &desc, Text &why);
    /// The call for these arrays, or NULL and why. `where` needs no handle.
    Matmul *make(const MatmulDesc &desc, const MatmulPointers &pointers, MatmulStream where, Text &why);
    static void destroy(Matmul *matmul);
    cublaslt::Status run(const Matmul &matmul, void *stream) const { return matmul.run(handle_, stream); }
    void close();

private:
    bool open(Text &why);

    Setup setup_;
    const CublasLt *library_;
    cublaslt::Handle handle_;
};

} // namespace scalide

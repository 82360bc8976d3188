#pragma once
#include "cublaslt.h"

namespace scalide {

/// cuBLASLt on one CUDA device, for the bindings of a context. It is loaded and opened for the first matmul. The device's context must be
/// current in every call.
class CudaMatmuls {
public:
    /// The properties of the device. `folder` (NULL: none) stores algorithms between processes.
    struct Setup {
        int32_t capability; ///< 90: sm_90
        const char *name;   ///< must live as long as this object
        const char *folder; ///< must live as long as this object
        MatmulSearch search;
    };

    void set_up(const Setup &setup) { setup_ = setup; }
    /// NVIDIA recommends 32 MiB from sm_90 on, and 4 MiB for older GPUs.
    uint64_t workspace_bytes() const { return uint64_t(setup_.capability >= 90 ? 32 : 4) << 20; }

    /// Returns false and the reason if cuBLASLt is missing or a requirement is not met.
    bool accepts(const MatmulDesc &desc, Text &why);
    /// Creates the call for these arrays, or returns NULL and the reason. `where` needs no handle.
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

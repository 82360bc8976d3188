#pragma once
#include "cublaslt_abi.h"
#include "matmul_desc.h"

namespace scalide {

/// cuBLASLt, loaded at run time, so that programs without matmuls on a GPU do not need it.
using CublasLt = cublaslt::Calls;

/// The library that is loaded for the whole process: that which the environment's SCALIDE_CUBLASLT names, else libcublasLt.so.13 or .12.
/// NULL (and why, in words) when there is none.
const CublasLt *load_cublaslt(Text &why);

/// Device memory of a call. A pointer is NULL if MatmulDesc has no such operand.
struct MatmulPointers {
    const void *a, *b, *c;
    void *d;
    const void *scale_a, *scale_b; ///< f32 (or what the ScaleMode says)
    const void *scale_d;           ///< f32, what D is multiplied by before it is stored: 1 / D.scale
    void *amax;                    ///< f32
    const void *bias;
    const void *factor, *addend_factor; ///< f32, where MatmulDesc has them
    const void *zero, *one;             ///< f32 0 and 1 in device memory: for what has no factor beside what has one
    void *workspace;                    ///< MatmulDesc::workspace_bytes of them, 256-byte aligned
    bool overwrites;                    ///< D or amax hold what a run reads: to find an algorithm they are elsewhere
};

/// Where a call runs.
struct MatmulStream {
    cublaslt::Handle handle;
    void *stream; ///< CUstream
    void *user;
    bool (*synchronise)(void *user); ///< false: something that ran has failed
};

/// How an algorithm is chosen among those that cuBLASLt proposes.
enum class MatmulSearch : uint8_t {
    heuristic, ///< the first that runs
    timing,    ///< the fastest
};

/// One matmul of a plan: made at bind, run without allocation, copy or synchronisation. In cuBLASLt's column-major words D^T = B A^T: its
/// A is our b, its rows are our n.
class Matmul {
public:
    explicit Matmul(const CublasLt &library) : library_(library) {}
    ~Matmul();
    Matmul(const Matmul &) = delete;
    Matmul &operator=(const Matmul &) = delete;

    /// Makes descriptors. False, with words, where a rule is broken or the library refuses.
    bool prepare(const MatmulDesc &desc, const MatmulDevice &device, const MatmulPointers &pointers, Text &why);
    /// Finds an algorithm: from `folder` (NULL: none) where an earlier process left it, else by search; each is run twice before it is
    /// trusted (the second run is timed), which writes D. `device_name` is a part of the key.
    bool choose(const MatmulStream &where, MatmulSearch search, const char *folder, const char *device_name, Text &why);
    cublaslt::Status run(cublaslt::Handle handle, void *stream) const;
    const char *name_of(cublaslt::Status status) const { return library_.status_name(status); }
    /// Other arrays of the same alignment.
    bool set_pointers(const MatmulPointers &pointers, Text &why);

private:
    bool make(cublaslt::Status status, const char *what, Text &why) const;
    bool make_operation(Text &why);
    bool make_layouts(Text &why);
    bool find(const MatmulStream &where, cublaslt::HeuristicResult *found, int *count, Text &why) const;
    bool works(const MatmulStream &where, double *seconds) const;

    const CublasLt &library_;
    MatmulDesc desc_;
    MatmulDevice device_;
    MatmulPointers pointers_ = {};
    cublaslt::Operation operation_ = nullptr;
    cublaslt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr; ///< cuBLASLt's A is our b
    cublaslt::Algorithm algorithm_ = {};
};

/// The name under which an algorithm is kept: everything that its choice depends on.
void describe_key(const MatmulDesc &desc, const MatmulDevice &device, const char *device_name, MatmulSearch search, Text &key);
/// Algorithms on disk, a file a key. Reading gives false where there is none or the file is another key's; writing is atomic and may fail
/// in silence, as a cache may.
bool read_algorithm(const char *folder, const char *key, cublaslt::Algorithm *algorithm);
void write_algorithm(const char *folder, const char *key, const cublaslt::Algorithm &algorithm);

} // namespace scalide

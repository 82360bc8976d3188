#pragma once
#include "cublaslt_abi.h"
#include "matmul_desc.h"

namespace scalide {

/// cuBLASLt, loaded at run time, so that programs without matmuls on a GPU do not need it.
using CublasLt = cublaslt::Calls;

/// Returns the library, which is loaded once per process. Its name comes from the environment variable SCALIDE_CUBLASLT, or is
/// libcublasLt.so.13 or .12. Returns NULL and the reason if there is none.
const CublasLt *load_cublaslt(Text &why);

/// Device memory of a call. A pointer is NULL if MatmulDesc has no such operand.
struct MatmulPointers {
    const void *a, *b, *c;
    void *d;
    const void *scale_a, *scale_b; ///< f32, or the type of the ScaleMode
    const void *scale_d;           ///< f32; D is multiplied by it before it is stored: 1 / D.scale
    void *amax;                    ///< f32
    const void *bias;
    const void *factor, *addend_factor; ///< f32, if MatmulDesc has them
    const void *zero, *one;             ///< f32 numbers 0 and 1 in device memory, used if only one of the two factors exists
    void *workspace;                    ///< has MatmulDesc::workspace_bytes bytes, 256-byte aligned
    bool overwrites;                    ///< D or amax overwrite data that a run reads, so the search for an algorithm uses other memory
};

/// The stream in which a call runs.
struct MatmulStream {
    cublaslt::Handle handle;
    void *stream; ///< CUstream
    void *user;
    bool (*synchronise)(void *user); ///< returns false if something that ran has failed
};

/// The choice of an algorithm among those that cuBLASLt proposes.
enum class MatmulSearch : uint8_t {
    heuristic, ///< the first algorithm that runs
    timing,    ///< the fastest algorithm
};

/// One matmul of a plan. It is created at bind and runs without allocation, copy or synchronisation. cuBLASLt is column-major and computes
/// D^T = B A^T: its A is our b, and its rows are our n.
class Matmul {
public:
    explicit Matmul(const CublasLt &library) : library_(library) {}
    ~Matmul();
    Matmul(const Matmul &) = delete;
    Matmul &operator=(const Matmul &) = delete;

    /// Creates descriptors. Returns false and a message if a requirement is not met or cuBLASLt refuses.
    bool prepare(const MatmulDesc &desc, const MatmulDevice &device, const MatmulPointers &pointers, Text &why);
    /// Chooses an algorithm: from `folder` (NULL: none) if an earlier process stored it, otherwise by search. An algorithm runs once before
    /// it is accepted; a search by time runs it again and measures this second run. These runs write D. `device_name` is part of the key.
    bool choose(const MatmulStream &where, MatmulSearch search, const char *folder, const char *device_name, Text &why);
    cublaslt::Status run(cublaslt::Handle handle, void *stream) const;
    const char *name_of(cublaslt::Status status) const { return library_.status_name(status); }
    /// Replaces the arrays by others of the same alignment.
    bool set_pointers(const MatmulPointers &pointers, Text &why);

private:
    bool make(cublaslt::Status status, const char *what, Text &why) const;
    bool make_operation(Text &why);
    bool make_layouts(Text &why);
    bool find(const MatmulStream &where, cublaslt::HeuristicResult *found, int *count, Text &why) const;
    bool works(const MatmulStream &where, double *seconds) const; ///< `seconds`: NULL, or set to the time of a second run

    const CublasLt &library_;
    MatmulDesc desc_;
    MatmulDevice device_;
    MatmulPointers pointers_ = {};
    cublaslt::Operation operation_ = nullptr;
    cublaslt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr; ///< cuBLASLt's A is our b
    cublaslt::Algorithm algorithm_ = {};
};

/// Describes the key of a stored algorithm: everything that its choice depends on.
void describe_key(const MatmulDesc &desc, const MatmulDevice &device, const char *device_name, MatmulSearch search, Text &key);
/// These functions store one algorithm per key in a file. Reading returns false if there is no file or the file has another key. Writing is
/// atomic. It may fail silently, because this is a cache.
bool read_algorithm(const char *folder, const char *key, cublaslt::Algorithm *algorithm);
void write_algorithm(const char *folder, const char *key, const cublaslt::Algorithm &algorithm);

} // namespace scalide

#include "cuda_matmuls.h"
#include "base/memory.h"
#include <new>

namespace scalide {

bool CudaMatmuls::open(Text &why) {
    if (handle_) return true;
    if (!library_) library_ = load_cublaslt(why);
    if (!library_) return false;
    const cublaslt::Status status = library_->create(&handle_);
    if (status == 0) return true;
    why << "cublasLtCreate failed: " << library_->status_name(status) << '.';
    handle_ = nullptr;
    return false;
}

bool CudaMatmuls::accepts(const MatmulDesc &desc, Text &why) {
    if (!open(why)) return false;
    const MatmulDevice device{setup_.capability, library_->version()};
    const MatmulRule *rule = broken_rule(desc, device);
    if (rule) explain(*rule, desc, device, why);
    return rule == nullptr;
}

Matmul *CudaMatmuls::make(const MatmulDesc &desc, const MatmulPointers &pointers, MatmulStream where, Text &why) {
    if (!open(why)) return nullptr;
    void *memory = allocate(sizeof(Matmul));
    if (!memory) {
        why << "out of memory: cannot allocate a cuBLASLt matmul.";
        return nullptr;
    }
    auto *matmul = new (memory) Matmul(*library_);
    where.handle = handle_;
    if (matmul->prepare(desc, {setup_.capability, library_->version()}, pointers, why) &&
        matmul->choose(where, setup_.search, setup_.folder, setup_.name, why))
        return matmul;
    destroy(matmul);
    return nullptr;
}

void CudaMatmuls::destroy(Matmul *matmul) {
    matmul->~Matmul();
    release(matmul);
}

void CudaMatmuls::close() {
    if (handle_) library_->destroy(handle_);
}

} // namespace scalide

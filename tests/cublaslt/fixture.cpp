#include "fixture.h"
#include <cstdlib>
#include <dlfcn.h>

namespace scalide {

cublaslt_test::cublaslt_test() {
    setenv("SCALIDE_CUBLASLT", SCALIDE_STANDIN_CUBLASLT, 1);
    char memory[512] = "";
    Text why(memory, sizeof(memory));
    library_ = load_cublaslt(why);
    if (!library_) throw std::runtime_error(memory);
    void *standin = dlopen(SCALIDE_STANDIN_CUBLASLT, RTLD_NOW);
    read_ = reinterpret_cast<StandinRead>(dlsym(standin, "standin_read"));
    reset_ = reinterpret_cast<StandinReset>(dlsym(standin, "standin_reset"));
    reset();
    library_->create(&handle_);
    reset();
}

cublaslt_test::~cublaslt_test() { library_->destroy(handle_); }

MatmulStream cublaslt_test::stream() {
    const auto synchronise = [](void *test) { return static_cast<cublaslt_test *>(test)->healthy_; };
    return {handle_, reinterpret_cast<void *>(0x77), this, synchronise};
}

MatmulPointers cublaslt_test::pointers_of(const MatmulDesc &desc) {
    uintptr_t next = 0;
    const auto pointer = [&](bool is_there) { return reinterpret_cast<void *>((next += 0x1000) * is_there); };
    MatmulPointers made = {};
    made.a = pointer(true), made.b = pointer(true), made.c = pointer(desc.c.dtype != no_dtype), made.d = pointer(true);
    made.scale_a = pointer(desc.a.scale != ScaleMode::none), made.scale_b = pointer(desc.b.scale != ScaleMode::none);
    made.scale_d = pointer(desc.d.scale != ScaleMode::none), made.amax = pointer(desc.amax);
    made.bias = pointer(desc.bias_dtype != no_dtype), made.workspace = pointer(true);
    return made;
}

std::string cublaslt_test::make_ready(Matmul &matmul, const MatmulDesc &desc, MatmulSearch search, const char *folder) {
    char memory[512] = "";
    Text why(memory, sizeof(memory));
    const bool is_ready =
        matmul.prepare(desc, hopper(), pointers_of(desc), why) && matmul.choose(stream(), search, folder, "NVIDIA H200", why);
    return is_ready ? "" : memory;
}

} // namespace scalide

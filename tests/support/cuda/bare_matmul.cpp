#include "support/cuda/bare_matmul.h"
#include <scalide/scalide.h>
#include <stdexcept>
#include <string>

namespace scalide {

using namespace cublaslt;

int32_t cublaslt_type(int32_t dtype) {
    switch (dtype) {
    case SCALIDE_F16: return r_16f;
    case SCALIDE_BF16: return r_16bf;
    case SCALIDE_F8_E4M3FN: return r_8f_e4m3;
    case SCALIDE_F8_E5M2: return r_8f_e5m2;
    default: return r_32f;
    }
}

void BareMatmul::check(Status status, const char *call) const {
    if (status != 0) throw std::runtime_error(std::string(call) + " gave " + library_.status_name(status));
}

BareMatmul::BareMatmul(const Calls &library, const BarePointers &pointers, bool d_is_f8)
    : library_(library), pointers_(pointers), d_is_f8_(d_is_f8) {}

// What is made is destroyed even when the rest cannot be: the delegated constructor is done.
BareMatmul::BareMatmul(const Calls &library, const BareDesc &desc, const BarePointers &pointers)
    : BareMatmul(library, pointers, desc.d == r_8f_e4m3 || desc.d == r_8f_e5m2) {
    check(library.create(&handle_), "cublasLtCreate");
    check(library.create_operation(&operation_, desc.tf32 ? compute_32f_fast_tf32 : compute_32f, r_32f), "cublasLtMatmulDescCreate");
    const auto set = [&](int32_t attribute, const auto &value) {
        check(library.set_operation(operation_, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
    };
    set(transa, int32_t(desc.a_k_contiguous ? op_t : op_n));
    set(transb, int32_t(desc.b_k_contiguous ? op_n : op_t));
    set(epilogue, desc.epilogue);
    if (desc.fast_accumulation) set(fast_accum, int8_t(1));
    if (desc.epilogue & epilogue_bias) set(bias_data_type, desc.bias);
    if (desc.a_scale_mode != scalar_32f) set(a_scale_mode, desc.a_scale_mode);
    if (desc.b_scale_mode != scalar_32f) set(b_scale_mode, desc.b_scale_mode);
    if (pointers.scale_a) set(a_scale_pointer, pointers.scale_a);
    if (pointers.scale_b) set(b_scale_pointer, pointers.scale_b);
    if (pointers.scale_d) set(d_scale_pointer, pointers.scale_d);
    if (pointers.amax) set(amax_d_pointer, pointers.amax);
    if (pointers.bias) set(bias_pointer, pointers.bias);
    const auto layout = [&](Layout *made, int32_t type, int64_t rows, int64_t columns) {
        check(library.create_layout(made, type, uint64_t(rows), uint64_t(columns), rows), "cublasLtMatrixLayoutCreate");
    };
    layout(&a_, desc.a, desc.a_k_contiguous ? desc.k : desc.m, desc.a_k_contiguous ? desc.m : desc.k);
    layout(&b_, desc.b, desc.b_k_contiguous ? desc.k : desc.n, desc.b_k_contiguous ? desc.n : desc.k);
    layout(&c_, d_is_f8_ ? desc.bias : desc.d, desc.m, desc.n);
    layout(&d_, desc.d, desc.m, desc.n);
}

BareMatmul::~BareMatmul() {
    for (const Layout layout : {a_, b_, c_, d_})
        if (layout) library_.destroy_layout(layout);
    if (operation_) library_.destroy_operation(operation_);
    if (handle_) library_.destroy(handle_);
}

std::vector<HeuristicResult> BareMatmul::candidates(int most) const {
    Preference preference = nullptr;
    check(library_.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    const uint64_t workspace = pointers_.workspace ? bare_workspace : 0;
    library_.set_preference(preference, max_workspace_bytes, &workspace, sizeof(workspace));
    library_.set_preference(preference, reduction_scheme_mask, &reduction_compute_type, sizeof(reduction_compute_type));
    std::vector<HeuristicResult> found(static_cast<size_t>(most));
    int count = 0;
    const Status status = library_.find_algorithms(handle_, operation_, a_, b_, c_, d_, preference, most, found.data(), &count);
    library_.destroy_preference(preference);
    found.resize(status == 0 ? static_cast<size_t>(count) : 0);
    return found;
}

Status BareMatmul::run(const Algorithm &algorithm, void *stream) const {
    constexpr float one = 1, zero = 0;
    return library_.matmul(handle_, operation_, &one, pointers_.a, a_, pointers_.b, b_, &zero, d_is_f8_ ? nullptr : pointers_.d, c_,
                           pointers_.d, d_, &algorithm, pointers_.workspace, pointers_.workspace ? bare_workspace : 0, stream);
}

} // namespace scalide

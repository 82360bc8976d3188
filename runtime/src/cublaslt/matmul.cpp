#include "cublaslt.h"
#include <ctime>
#include <initializer_list>

namespace scalide {

namespace {

using namespace cublaslt;

#define SCALIDE_TYPE(id, name, text, number, kind, bits, safetensors, xla, cuda) cuda,
constexpr int32_t data_types[] = {SCALIDE_DTYPES(SCALIDE_TYPE)};
#undef SCALIDE_TYPE
static_assert(data_types[SCALIDE_F32] == r_32f && data_types[SCALIDE_F16] == r_16f && data_types[SCALIDE_BF16] == r_16bf &&
                  data_types[SCALIDE_F8_E4M3FN] == r_8f_e4m3 && data_types[SCALIDE_F8_E5M2] == r_8f_e5m2,
              "the numbers of library_types.h");

/// The check `types.pair` (matmul_rules.cpp) ensures that only dtypes of this table arrive here.
int32_t data_type(int32_t dtype) { return data_types[dtype]; }

int32_t scale_mode(ScaleMode mode) {
    switch (mode) {
    case ScaleMode::outer_vec: return outer_vec_32f;
    case ScaleMode::vec128: return vec128_32f;
    case ScaleMode::blk128x128: return blk128x128_32f;
    case ScaleMode::vec32_ue8m0: return cublaslt::vec32_ue8m0;
    default: return scalar_32f;
    }
}

uint32_t epilogue_of(MatmulEpilogue epilogue) {
    constexpr uint32_t codes[] = {epilogue_default, epilogue_bias, epilogue_relu, epilogue_relu | epilogue_bias};
    return codes[static_cast<size_t>(epilogue)];
}

/// C has the layout of D if there is no addend. If D is FP8, C has the type that an addend would have.
int32_t addend_type(const MatmulDesc &desc) {
    if (desc.c.dtype != no_dtype) return data_type(desc.c.dtype);
    return is_f8(desc.d.dtype) ? int32_t(desc.bias_dtype == SCALIDE_F16 ? r_16f : r_16bf) : data_type(desc.d.dtype);
}

/// Either all factors are in device memory or none is.
bool reads_factors(const MatmulDesc &desc) { return desc.has_factor || desc.has_addend_factor; }

constexpr float zero = 0, one = 1;
/// cuBLASLt is asked for at most this many algorithms. The first is nearly always as fast as the best of 8.
constexpr int most_candidates = 8;

} // namespace

Matmul::~Matmul() {
    for (const Layout layout : {a_, b_, c_, d_})
        if (layout) library_.destroy_layout(layout);
    if (operation_) library_.destroy_operation(operation_);
}

bool Matmul::make(Status status, const char *what, Text &why) const {
    if (status != 0) why << what << " failed: " << library_.status_name(status) << '.';
    return status == 0;
}

bool Matmul::make_operation(Text &why) {
    if (!make(library_.create_operation(&operation_, desc_.tf32 ? compute_32f_fast_tf32 : compute_32f, r_32f), "cublasLtMatmulDescCreate",
              why))
        return false;
    bool good = true;
    const auto set = [&](int32_t attribute, const auto &value) {
        good = good && make(library_.set_operation(operation_, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute", why);
    };
    set(transa, int32_t(desc_.b.k_contiguous ? op_t : op_n));
    set(transb, int32_t(desc_.a.k_contiguous ? op_n : op_t));
    set(cublaslt::epilogue, epilogue_of(desc_.epilogue));
    if (reads_factors(desc_)) set(pointer_mode, pointer_mode_device);
    if (desc_.fast_accumulation) set(fast_accum, int8_t(1));
    if (desc_.bias_dtype != no_dtype) set(bias_data_type, data_type(desc_.bias_dtype));
    // These attributes exist since CUDA 12.8. An older cuBLASLt supports only one scale per tensor.
    if (desc_.b.scale > ScaleMode::tensor) set(a_scale_mode, scale_mode(desc_.b.scale));
    if (desc_.a.scale > ScaleMode::tensor) set(b_scale_mode, scale_mode(desc_.a.scale));
    return good;
}

bool Matmul::make_layouts(Text &why) {
    bool good = true;
    const auto layout = [&](Layout *made, int32_t type, int64_t rows, int64_t columns, const MatmulMatrix &matrix) {
        good = good && make(library_.create_layout(made, type, uint64_t(rows), uint64_t(columns), matrix.leading),
                            "cublasLtMatrixLayoutCreate", why);
        if (!good || desc_.batch == 1) return;
        const int32_t count = int32_t(desc_.batch);
        good = make(library_.set_layout(*made, batch_count, &count, sizeof(count)), "cublasLtMatrixLayoutSetAttribute", why) &&
               make(library_.set_layout(*made, strided_batch_offset, &matrix.batch_stride, sizeof(int64_t)),
                    "cublasLtMatrixLayoutSetAttribute", why);
    };
    const int64_t m = desc_.m, n = desc_.n, k = desc_.k;
    layout(&a_, data_type(desc_.b.dtype), desc_.b.k_contiguous ? k : n, desc_.b.k_contiguous ? n : k, desc_.b);
    layout(&b_, data_type(desc_.a.dtype), desc_.a.k_contiguous ? k : m, desc_.a.k_contiguous ? m : k, desc_.a);
    layout(&c_, addend_type(desc_), n, m, desc_.c.dtype == no_dtype ? desc_.d : desc_.c);
    layout(&d_, data_type(desc_.d.dtype), n, m, desc_.d);
    return good;
}

bool Matmul::prepare(const MatmulDesc &desc, const MatmulDevice &device, const MatmulPointers &pointers, Text &why) {
    desc_ = desc;
    device_ = device;
    if (const MatmulRule *rule = broken_rule(desc, device)) {
        explain(*rule, desc, device, why);
        return false;
    }
    return make_operation(why) && make_layouts(why) && set_pointers(pointers, why);
}

bool Matmul::set_pointers(const MatmulPointers &pointers, Text &why) {
    pointers_ = pointers;
    const struct {
        int32_t attribute;
        const void *pointer;
    } rows[] = {{a_scale_pointer, pointers.scale_b},
                {b_scale_pointer, pointers.scale_a},
                {d_scale_pointer, pointers.scale_d},
                {amax_d_pointer, pointers.amax},
                {bias_pointer, pointers.bias}};
    for (const auto &row : rows)
        if (row.pointer && !make(library_.set_operation(operation_, row.attribute, &row.pointer, sizeof(row.pointer)),
                                 "cublasLtMatmulDescSetAttribute", why))
            return false;
    return true;
}

bool Matmul::find(const MatmulStream &where, HeuristicResult *found, int *count, Text &why) const {
    Preference preference = nullptr;
    if (!make(library_.create_preference(&preference), "cublasLtMatmulPreferenceCreate", why)) return false;
    bool good = true;
    const auto set = [&](int32_t attribute, const auto &value) {
        good = good &&
               make(library_.set_preference(preference, attribute, &value, sizeof(value)), "cublasLtMatmulPreferenceSetAttribute", why);
    };
    set(max_workspace_bytes, desc_.workspace_bytes);
    set(reduction_scheme_mask, reduction_compute_type); // partial sums in BF16 lose bits (TransformerEngine#3440)
    const MatmulMatrix &addend = desc_.c.dtype == no_dtype ? desc_.d : desc_.c;
    set(min_alignment_a, uint32_t(desc_.b.alignment));
    set(min_alignment_b, uint32_t(desc_.a.alignment));
    set(min_alignment_c, uint32_t(addend.alignment));
    set(min_alignment_d, uint32_t(desc_.d.alignment));
    good = good && make(library_.find_algorithms(where.handle, operation_, a_, b_, c_, d_, preference, most_candidates, found, count),
                        "cublasLtMatmulAlgoGetHeuristic", why);
    library_.destroy_preference(preference);
    if (good && *count == 0) why << "cuBLASLt has no algorithm for this matmul.";
    return good && *count > 0;
}

Status Matmul::run(Handle handle, void *stream) const {
    const bool adds = desc_.c.dtype != no_dtype;
    const void *addend = adds ? pointers_.c : is_f8(desc_.d.dtype) ? nullptr : pointers_.d; // has D's type, or is null
    const bool on_device = reads_factors(desc_);
    const void *ones = on_device ? pointers_.one : &one, *zeros = on_device ? pointers_.zero : &zero;
    const void *alpha = desc_.has_factor ? pointers_.factor : ones;
    const void *beta = desc_.has_addend_factor ? pointers_.addend_factor : adds ? ones : zeros;
    return library_.matmul(handle, operation_, alpha, pointers_.b, a_, pointers_.a, b_, beta, addend, c_, pointers_.d, d_, &algorithm_,
                           pointers_.workspace, desc_.workspace_bytes, stream);
}

// Returns seconds. The clock of <chrono> is in the C++ library, which C applications do not link.
static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool Matmul::works(const MatmulStream &where, double *seconds) const {
    if (run(where.handle, where.stream) != 0 || !where.synchronise(where.user)) return false;
    if (!seconds) return true;
    const double start = now();
    if (run(where.handle, where.stream) != 0 || !where.synchronise(where.user)) return false;
    *seconds = now() - start;
    return true;
}

bool Matmul::choose(const MatmulStream &where, MatmulSearch search, const char *folder, const char *device_name, Text &why) {
    char memory[512];
    Text key(memory, sizeof(memory));
    describe_key(desc_, device_, device_name, search, key);
    if (folder && read_algorithm(folder, memory, &algorithm_) && works(where, nullptr)) return true;
    HeuristicResult found[most_candidates];
    int count = 0;
    if (!find(where, found, &count, why)) return false;
    const bool is_timed = search == MatmulSearch::timing;
    const HeuristicResult *best = nullptr;
    double seconds = 0, fastest = 0;
    for (int i = 0; i < count && (is_timed || !best); ++i) {
        algorithm_ = found[i].algorithm;
        if (found[i].state != 0 || found[i].workspace > desc_.workspace_bytes || !works(where, is_timed ? &seconds : nullptr)) continue;
        if (!best || seconds < fastest) best = &found[i], fastest = seconds;
    }
    if (!best) {
        why << "cuBLASLt offers " << int32_t(count) << " algorithms for this matmul, but none of them runs.";
        return false;
    }
    algorithm_ = best->algorithm;
    if (folder) write_algorithm(folder, memory, algorithm_);
    return true;
}

} // namespace scalide

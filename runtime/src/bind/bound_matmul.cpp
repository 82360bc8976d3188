#include "bind/bound_matmul.h"
#include "bind/extent.h"
#include <algorithm>

namespace scalide {

namespace {

enum Extent { batch, m, n, k, lhs_leading, lhs_batch_stride, rhs_leading, rhs_batch_stride };

// The buffers of the arena start at multiples of 64 bytes. The alignment of a caller's array is the largest power of two that divides its
// address. It is limited to 256, beyond which no algorithm needs more.
uint64_t alignment_of(const scalide_binding &binding, int32_t buffer) {
    const scalide_buffer &row = binding.program->buffers[buffer];
    if (row.storage != SCALIDE_STORAGE_DATA) return memory_alignment;
    const auto address = reinterpret_cast<uintptr_t>(binding.arrays[row.index].data) | 256;
    return address & -address;
}

MatmulMatrix matrix_of(const scalide_binding &binding, int32_t buffer, int64_t leading, int64_t batch_stride) {
    MatmulMatrix matrix;
    matrix.dtype = binding.program->buffers[buffer].dtype;
    matrix.leading = leading;
    matrix.batch_stride = batch_stride;
    matrix.alignment = alignment_of(binding, buffer);
    return matrix;
}

ScaleMode mode_of(int32_t layout) {
    switch (layout) {
    case SCALIDE_SCALES_OUTER_VEC: return ScaleMode::outer_vec;
    case SCALIDE_SCALES_VEC128: return ScaleMode::vec128;
    case SCALIDE_SCALES_BLK128X128: return ScaleMode::blk128x128;
    case SCALIDE_SCALES_VEC32_UE8M0: return ScaleMode::vec32_ue8m0;
    default: return ScaleMode::none;
    }
}

void scale(const scalide_binding &binding, int32_t buffer, int32_t layout, MatmulMatrix &matrix) {
    if (buffer < 0) return;
    matrix.scale = mode_of(layout);
    matrix.scale_alignment = alignment_of(binding, buffer);
}

/// Describes the matmul with the extents of the binding. Returns false if an extent is out of range.
bool describe_matmul(const scalide_binding &binding, const scalide_matmul &matmul, MatmulDesc *desc) {
    int64_t extents[SCALIDE_MATMUL_EXTENTS];
    for (int i = 0; i < SCALIDE_MATMUL_EXTENTS; ++i)
        if (!evaluate(matmul.extents[i], binding.symbols, &extents[i])) return false;
    *desc = {};
    desc->batch = extents[batch], desc->m = extents[m], desc->n = extents[n], desc->k = extents[k];
    desc->a = matrix_of(binding, matmul.lhs, extents[lhs_leading], extents[lhs_batch_stride]);
    desc->b = matrix_of(binding, matmul.rhs, extents[rhs_leading], extents[rhs_batch_stride]);
    desc->d = matrix_of(binding, matmul.result, desc->n, desc->m * desc->n);
    desc->a.k_contiguous = matmul.lhs_k_contiguous != 0;
    desc->b.k_contiguous = matmul.rhs_k_contiguous != 0;
    if (matmul.factor >= 0 && is_f8(desc->a.dtype)) desc->a.scale = ScaleMode::tensor;
    scale(binding, matmul.lhs_scales, matmul.lhs_scale_layout, desc->a);
    scale(binding, matmul.rhs_scales, matmul.rhs_scale_layout, desc->b);
    desc->has_factor = matmul.factor >= 0 && !is_f8(desc->a.dtype);
    if (matmul.addend >= 0) desc->c = matrix_of(binding, matmul.addend, desc->n, desc->m * desc->n);
    desc->has_addend_factor = matmul.addend_factor >= 0;
    if (matmul.bias >= 0) desc->epilogue = MatmulEpilogue::bias, desc->bias_dtype = binding.program->buffers[matmul.bias].dtype;
    if (matmul.result_factor >= 0) desc->d.scale = ScaleMode::tensor;
    desc->amax = matmul.amax >= 0;
    // Permitted for this matmul, and possible only with FP8 operands that have no scales of blocks.
    desc->fast_accumulation =
        matmul.fast_accumulation != 0 && is_f8(desc->a.dtype) && !is_blocks(desc->a.scale) && !is_blocks(desc->b.scale);
    desc->tf32 = matmul.tf32 != 0 && desc->a.dtype == SCALIDE_F32 && desc->b.dtype == SCALIDE_F32;
    return true;
}

/// A cuBLASLt call is tried once before it is used. Returns true if the trial would overwrite data that a run reads.
bool is_overwritten(const scalide_binding &binding, int32_t buffer) {
    if (buffer < 0) return false;
    const scalide_buffer &row = binding.program->buffers[buffer];
    const bool is_argument = row.storage == SCALIDE_STORAGE_DATA || row.storage == SCALIDE_STORAGE_SCALE;
    return is_argument && binding.program->arguments[row.index].role != SCALIDE_OUTPUT;
}

/// Returns the addresses of the matmul's arrays. The workspace is the binding's scratch memory.
MatmulPointers find_pointers(const scalide_binding &binding, const scalide_matmul &matmul, const MatmulDesc &desc) {
    const auto memory = [&](int32_t buffer) { return buffer >= 0 ? binding.memory[buffer] : nullptr; };
    MatmulPointers pointers = {};
    pointers.a = memory(matmul.lhs), pointers.b = memory(matmul.rhs), pointers.d = memory(matmul.result);
    (desc.has_factor ? pointers.factor : pointers.scale_a) = memory(matmul.factor);
    if (matmul.lhs_scales >= 0) pointers.scale_a = memory(matmul.lhs_scales), pointers.scale_b = memory(matmul.rhs_scales);
    pointers.c = memory(matmul.addend), pointers.addend_factor = memory(matmul.addend_factor), pointers.bias = memory(matmul.bias);
    pointers.scale_d = memory(matmul.result_factor), pointers.amax = memory(matmul.amax);
    pointers.workspace = binding.launches.scratch;
    pointers.overwrites = is_overwritten(binding, matmul.result) || is_overwritten(binding, matmul.amax);
    return pointers;
}

uint64_t least_alignment(const MatmulDesc &desc) {
    return std::min({desc.a.alignment, desc.b.alignment, desc.c.alignment, desc.d.alignment});
}

/// Describes the call to cuBLASLt. Returns false and the reason if cuBLASLt cannot compute the matmul.
bool describe(scalide_binding &binding, const scalide_matmul &plan, MatmulDesc *desc, Text &reason) {
    Device &device = *binding.context->device;
    if (!describe_matmul(binding, plan, desc)) {
        reason << "an extent is out of range";
        return false;
    }
    desc->workspace_bytes = device.matmul_workspace;
    if (device.driver->accepts_matmul(device, *desc)) return true;
    reason << device.failure;
    return false;
}

void choose(scalide_binding &binding, const scalide_matmul &plan, BoundMatmul &matmul) {
    MatmulDesc desc;
    Text reason(matmul.reason, sizeof(matmul.reason));
    describe(binding, plan, &desc, reason);
}

void forget(scalide_binding &binding, BoundMatmul &matmul) {
    Device &device = *binding.context->device;
    if (matmul.call) device.driver->forget_matmul(device, matmul.call);
    matmul.call = nullptr;
}

/// Creates the call of a matmul, or gives it other arrays. If their alignment is lower, its algorithm may be invalid, so the call is
/// created again.
scalide_status point(scalide_binding &binding, BoundMatmul &matmul, bool *changed) {
    Device &device = *binding.context->device;
    const scalide_matmul &plan = *binding.program->steps[matmul.step].matmul;
    Text reason(matmul.reason, sizeof(matmul.reason));
    MatmulDesc desc;
    const bool accepted = describe(binding, plan, &desc, reason);
    if (!accepted || least_alignment(desc) < matmul.alignment) forget(binding, matmul);
    *changed |= !accepted;
    if (!accepted) return SCALIDE_OK;
    if (!matmul.call) matmul.alignment = least_alignment(desc);
    const scalide_status status = device.driver->prepare_matmul(device, desc, find_pointers(binding, plan, desc), &matmul.call);
    if (status != SCALIDE_UNSUPPORTED) return status;
    reason << device.failure;
    *changed = true;
    return SCALIDE_OK;
}

int32_t count_matmuls(const scalide_program &program) {
    int32_t count = 0;
    for (int32_t step = 0; step < program.step_count; ++step) count += program.steps[step].matmul != nullptr;
    return count;
}

} // namespace

BoundMatmul *find_matmul(const scalide_binding &binding, int32_t step) {
    if (!binding.launches.matmuls || !binding.program->steps[step].matmul) return nullptr;
    BoundMatmul *matmul = binding.launches.matmuls;
    while (matmul->step != step) ++matmul;
    return matmul;
}

scalide_status choose_matmuls(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    Device &device = *binding.context->device;
    const auto count = static_cast<uint64_t>(count_matmuls(program));
    if (count == 0 || !device.driver->accepts_matmul) return SCALIDE_OK;
    auto *matmul = static_cast<BoundMatmul *>(allocate(binding.context->allocator, count * sizeof(BoundMatmul)));
    if (!matmul) {
        start_message(binding.context) << program.name << ": out of memory: cannot allocate the table of matmuls.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    binding.launches.matmuls = matmul;
    for (int32_t step = 0; step < program.step_count; ++step) {
        if (!program.steps[step].matmul) continue;
        *matmul = {step, nullptr, 0, ""};
        choose(binding, *program.steps[step].matmul, *matmul);
        ++matmul;
    }
    return SCALIDE_OK;
}

scalide_status point_matmuls(scalide_binding &binding, bool *changed) {
    const int32_t count = binding.launches.matmuls ? count_matmuls(*binding.program) : 0;
    scalide_status status = SCALIDE_OK;
    *changed = false;
    for (int32_t i = 0; i < count && status == SCALIDE_OK; ++i)
        if (!binding.launches.matmuls[i].reason[0]) status = point(binding, binding.launches.matmuls[i], changed);
    return status;
}

void release_matmuls(scalide_binding &binding) {
    const int32_t count = binding.launches.matmuls ? count_matmuls(*binding.program) : 0;
    for (int32_t i = 0; i < count; ++i) forget(binding, binding.launches.matmuls[i]);
    release(binding.context->allocator, binding.launches.matmuls);
    binding.launches.matmuls = nullptr;
}

} // namespace scalide

#include "bind/bound_matmul.h"
#include "bind/extent.h"
#include <algorithm>
#include <cstring>

namespace scalide {

namespace {

enum Extent { batch, m, n, k, lhs_leading, lhs_batch_stride, rhs_leading, rhs_batch_stride };

/// Returns the largest power of two that divides the address. It is limited to 256, beyond which no algorithm needs more.
uint64_t alignment_of(const void *memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory) | 256;
    return address & -address;
}

// The arena has no address before the first pass over the launches is complete. Its buffers start at multiples of 64 bytes.
// Spare memory of a loop takes turns with arrays of the caller.
uint64_t alignment_of(const scalide_binding &binding, int32_t buffer) {
    const scalide_buffer &row = binding.program->buffers[buffer];
    if (binding.layout->buffers[buffer].is_moved_once) {
        uint64_t least = memory_alignment;
        for (int32_t i = 0; i < binding.program->argument_count; ++i)
            least = std::min(least, std::min(alignment_of(binding.arrays[i].data), alignment_of(binding.arrays[i].scale)));
        return least;
    }
    switch (row.storage) {
    case SCALIDE_STORAGE_DATA:
        return binding.data[row.index].access == Access::copied ? memory_alignment : alignment_of(binding.arrays[row.index].data);
    case SCALIDE_STORAGE_SCALE: return alignment_of(binding.arrays[row.index].scale);
    case SCALIDE_STORAGE_SCALAR: return alignof(ScalarSlot);
    default: return memory_alignment;
    }
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

void scale(const scalide_binding &binding, int32_t buffer, ScaleMode mode, MatmulMatrix &matrix) {
    if (buffer < 0) return;
    matrix.scale = mode;
    matrix.scale_alignment = alignment_of(binding, buffer);
}

/// Describes the matmul with the extents of the binding. Returns false if an extent is out of range.
bool describe_matmul(const scalide_binding &binding, const scalide_matmul &matmul, MatmulDesc *desc) {
    int64_t extents[SCALIDE_MATMUL_EXTENTS];
    for (int i = 0; i < SCALIDE_MATMUL_EXTENTS; ++i)
        if (!evaluate(matmul.extents[i], binding.symbols, &extents[i])) return false;
    *desc = {};
    desc->workspace_bytes = binding.context->device->matmul_workspace;
    desc->batch = extents[batch], desc->m = extents[m], desc->n = extents[n], desc->k = extents[k];
    desc->a = matrix_of(binding, matmul.lhs, extents[lhs_leading], extents[lhs_batch_stride]);
    desc->b = matrix_of(binding, matmul.rhs, extents[rhs_leading], extents[rhs_batch_stride]);
    desc->d = matrix_of(binding, matmul.result, desc->n, desc->m * desc->n);
    desc->a.k_contiguous = matmul.lhs_k_contiguous != 0;
    desc->b.k_contiguous = matmul.rhs_k_contiguous != 0;
    if (is_f8(desc->a.dtype)) scale(binding, matmul.factor, ScaleMode::tensor, desc->a);
    scale(binding, matmul.lhs_scales, mode_of(matmul.lhs_scale_layout), desc->a);
    scale(binding, matmul.rhs_scales, mode_of(matmul.rhs_scale_layout), desc->b);
    scale(binding, matmul.result_factor, ScaleMode::tensor, desc->d);
    desc->has_factor = matmul.factor >= 0 && !is_f8(desc->a.dtype);
    if (matmul.addend >= 0) desc->c = matrix_of(binding, matmul.addend, desc->n, desc->m * desc->n);
    desc->has_addend_factor = matmul.addend_factor >= 0;
    if (matmul.bias >= 0) desc->epilogue = MatmulEpilogue::bias, desc->bias_dtype = binding.program->buffers[matmul.bias].dtype;
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

/// Describes the matmul as the plan does. Returns false and the reason if cuBLASLt cannot compute it.
bool describe(scalide_binding &binding, const scalide_matmul &plan, MatmulDesc *desc, Text &reason) {
    Device &device = *binding.context->device;
    if (!describe_matmul(binding, plan, desc)) {
        reason << "an extent is out of range.";
        return false;
    }
    if (device.driver->accepts_matmul(device, *desc)) return true;
    reason << device.failure;
    return false;
}

const scalide_matmul &plan_of(const scalide_binding &binding, const BoundMatmul &matmul) {
    return *binding.program->steps[matmul.step].matmul;
}

void forget(scalide_binding &binding, BoundMatmul &matmul) {
    Device &device = *binding.context->device;
    if (matmul.call) device.driver->forget_matmul(device, matmul.call);
    matmul.call = nullptr;
}

void use_next_form(scalide_binding &binding, BoundMatmul &matmul) {
    forget(binding, matmul);
    matmul.form = static_cast<MatmulForm>(static_cast<int>(matmul.form) + 1);
}

/// Creates the call of a matmul, or gives it other arrays. If their alignment is lower, its algorithm may be invalid, so the call is
/// created again.
scalide_status prepare(scalide_binding &binding, BoundMatmul &matmul, const MatmulDesc &desc, const MatmulPointers &pointers) {
    Device &device = *binding.context->device;
    if (least_alignment(desc) < matmul.alignment) forget(binding, matmul);
    if (!matmul.call) matmul.alignment = least_alignment(desc);
    return device.driver->prepare_matmul(device, desc, pointers, &matmul.call);
}

scalide_status point_asked(scalide_binding &binding, BoundMatmul &matmul) {
    const scalide_matmul &plan = plan_of(binding, matmul);
    Text reason(matmul.reason, sizeof(matmul.reason));
    MatmulDesc desc;
    scalide_status status = SCALIDE_UNSUPPORTED;
    if (describe(binding, plan, &desc, reason)) {
        status = prepare(binding, matmul, desc, find_pointers(binding, plan, desc));
        if (status == SCALIDE_UNSUPPORTED) reason << binding.context->device->failure;
    }
    if (status != SCALIDE_UNSUPPORTED) return status;
    use_next_form(binding, matmul);
    return SCALIDE_OK;
}

bool is_widened(const BoundMatmul &matmul) { return matmul.form != MatmulForm::asked && matmul.form != MatmulForm::kernel; }

/// Describes a widened matmul with its addresses. Returns false if there is no such form.
bool describe_widened(scalide_binding &binding, BoundMatmul &matmul, MatmulForm form) {
    const scalide_matmul &plan = plan_of(binding, matmul);
    MatmulDesc asked;
    if (!describe_matmul(binding, plan, &asked)) return false;
    return widen(asked, find_pointers(binding, plan, asked), form, binding.launches.widened, matmul.widened);
}

/// Goes to the next form that meets the requirements of cuBLASLt. Returns the memory that it needs.
uint64_t find_form(scalide_binding &binding, BoundMatmul &matmul) {
    Device &device = *binding.context->device;
    for (; is_widened(matmul); use_next_form(binding, matmul))
        if (describe_widened(binding, matmul, matmul.form) && device.driver->accepts_matmul(device, matmul.widened.desc))
            return matmul.widened.bytes;
    return 0;
}

/// Allocates the memory for converted operands, which all widened matmuls of the binding share. Earlier runs may use the old memory.
bool reserve_widened(scalide_binding &binding, uint64_t bytes) {
    Launches &launches = binding.launches;
    Device &device = *binding.context->device;
    if (bytes <= launches.widened_bytes) return true;
    void *memory = nullptr;
    if (device.driver->allocate(device, bytes, &memory) != SCALIDE_OK) return false;
    if (launches.widened) {
        device.driver->synchronise(device);
        device.driver->release(device, launches.widened);
    }
    launches.widened = memory;
    launches.widened_bytes = bytes;
    return true;
}

/// Creates the calls of the matmuls that cuBLASLt refused, in the first form that it takes.
scalide_status point_widened(scalide_binding &binding, BoundMatmul *matmuls, int32_t count) {
    for (bool is_refused = true; is_refused;) {
        uint64_t bytes = 0;
        for (int32_t i = 0; i < count; ++i) bytes = std::max(bytes, find_form(binding, matmuls[i]));
        is_refused = false;
        const bool has_memory = reserve_widened(binding, bytes);
        for (int32_t i = 0; i < count; ++i) {
            BoundMatmul &matmul = matmuls[i];
            if (is_widened(matmul) && !has_memory) {
                const size_t length = std::strlen(matmul.reason);
                Text(matmul.reason + length, sizeof(matmul.reason) - length) << " There is no memory for 16-bit operands.";
                while (is_widened(matmul)) use_next_form(binding, matmul);
            }
            if (!is_widened(matmul) || !describe_widened(binding, matmul, matmul.form)) continue;
            const scalide_status status = prepare(binding, matmul, matmul.widened.desc, matmul.widened.pointers);
            if (status != SCALIDE_OK && status != SCALIDE_UNSUPPORTED) return status;
            if (status == SCALIDE_OK) continue;
            use_next_form(binding, matmul);
            is_refused = true;
        }
    }
    return SCALIDE_OK;
}

/// Prints `cuBLASLt refuses the matmul of y (net.scl:4): <reason>`.
Text &print_refusal(Text &text, const scalide_binding &binding, const BoundMatmul &matmul) {
    const scalide_buffer &result = binding.program->buffers[plan_of(binding, matmul).result];
    text << "cuBLASLt refuses the matmul of ";
    text.name(result.tensor ? result.tensor : result.name);
    if (result.location) text << " (" << result.location << ')';
    return text << ": " << matmul.reason;
}

/// Writes and logs the notice: `step: cuBLASLt refuses the matmul of y (net.scl:4): <reason> It multiplies bf16 operands instead, which is
/// slower.`
void tell(const scalide_binding &binding, BoundMatmul &matmul) {
    const scalide_program &program = *binding.program;
    Text text(matmul.notice, sizeof(matmul.notice), Text::Use::message);
    print_refusal(text << program.name << ": ", binding, matmul);
    switch (matmul.form) {
    case MatmulForm::widened:
        text << " It multiplies " << scalide_dtype_name(matmul.widened.desc.a.dtype) << " operands instead, which is slower.";
        break;
    case MatmulForm::widened_result:
        text << " It multiplies " << scalide_dtype_name(matmul.widened.desc.a.dtype)
             << " operands to f32 instead, which a kernel converts. This is slower.";
        break;
    default: text << " The generated kernel " << program.steps[matmul.step].name << " computes it instead, which is slower.";
    }
    if (binding.context->log) binding.context->log(binding.context->log_user, matmul.notice);
}

/// An empty matmul needs no library.
bool is_empty(const scalide_binding &binding, const BoundMatmul &matmul) {
    MatmulDesc desc;
    return describe_matmul(binding, plan_of(binding, matmul), &desc) && desc.batch * desc.m * desc.n * desc.k == 0;
}

/// Where libraries are required, a matmul that is not computed as asked is an error.
scalide_status check_required(const scalide_binding &binding, const BoundMatmul &matmul) {
    const scalide_context &context = *binding.context;
    if (!context.require_libraries && !binding.program->require_libraries) return SCALIDE_OK;
    Text failure = start_failure(*context.device);
    print_refusal(failure, binding, matmul) << (context.require_libraries ? " The context" : " The program") << " requires libraries";
    return SCALIDE_UNSUPPORTED;
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
        *matmul = {};
        matmul->step = step;
        MatmulDesc desc;
        Text reason(matmul->reason, sizeof(matmul->reason));
        if (!describe(binding, *program.steps[step].matmul, &desc, reason)) use_next_form(binding, *matmul);
        ++matmul;
    }
    return SCALIDE_OK;
}

scalide_status point_matmuls(scalide_binding &binding, bool *changed) {
    BoundMatmul *matmuls = binding.launches.matmuls;
    const int32_t count = matmuls ? count_matmuls(*binding.program) : 0;
    scalide_status status = SCALIDE_OK;
    for (int32_t i = 0; i < count && status == SCALIDE_OK; ++i)
        if (matmuls[i].form == MatmulForm::asked) status = point_asked(binding, matmuls[i]);
    if (status == SCALIDE_OK) status = point_widened(binding, matmuls, count);
    *changed = false;
    for (int32_t i = 0; i < count && status == SCALIDE_OK; ++i) {
        if (matmuls[i].form == matmuls[i].told) continue;
        matmuls[i].told = matmuls[i].form;
        *changed = true;
        if (is_empty(binding, matmuls[i])) continue;
        tell(binding, matmuls[i]);
        status = check_required(binding, matmuls[i]);
    }
    return status;
}

scalide_status point_matmul_again(scalide_binding &binding, int32_t step) {
    BoundMatmul *matmul = find_matmul(binding, step);
    if (!matmul || matmul->form == MatmulForm::kernel) return SCALIDE_OK;
    const scalide_matmul &plan = plan_of(binding, *matmul);
    MatmulDesc desc;
    if (is_widened(*matmul)) {
        describe_widened(binding, *matmul, matmul->form);
        return prepare(binding, *matmul, matmul->widened.desc, matmul->widened.pointers);
    }
    describe_matmul(binding, plan, &desc);
    return prepare(binding, *matmul, desc, find_pointers(binding, plan, desc));
}

void release_matmuls(scalide_binding &binding) {
    const int32_t count = binding.launches.matmuls ? count_matmuls(*binding.program) : 0;
    for (int32_t i = 0; i < count; ++i) forget(binding, binding.launches.matmuls[i]);
    release(binding.context->allocator, binding.launches.matmuls);
    binding.launches.matmuls = nullptr;
    if (binding.launches.widened) binding.context->device->driver->release(*binding.context->device, binding.launches.widened);
    binding.launches.widened = nullptr;
}

} // namespace scalide

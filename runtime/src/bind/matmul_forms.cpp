#include "bind/matmul_forms.h"
#include "base/memory.h"
#include "devices/convert_kernels.h"

namespace scalide {

namespace {

/// Returns the number of elements from the first to the last one, with the gaps between rows and between matrices.
uint64_t span_of(const MatmulMatrix &matrix, int64_t batch, int64_t rows, int64_t row) {
    return static_cast<uint64_t>((batch - 1) * matrix.batch_stride + (rows - 1) * matrix.leading + row);
}

uint64_t operand_span(const MatmulMatrix &matrix, int64_t batch, int64_t outer, int64_t k) {
    return matrix.k_contiguous ? span_of(matrix, batch, outer, k) : span_of(matrix, batch, k, outer);
}

class Widening {
public:
    Widening(const MatmulDesc &asked, const MatmulPointers &pointers, void *memory, WidenedMatmul &result)
        : carver_(memory), result_(result) {
        result_ = {};
        result_.desc = asked;
        result_.pointers = pointers;
    }

    /// Converts the operands. The scale becomes the factor of the product.
    void widen_operands(int32_t dtype) {
        MatmulDesc &desc = result_.desc;
        MatmulPointers &pointers = result_.pointers;
        const int64_t batch = desc.batch;
        pointers.a = convert(pointers.a, desc.a.dtype, dtype, operand_span(desc.a, batch, desc.m, desc.k));
        pointers.b = convert(pointers.b, desc.b.dtype, dtype, operand_span(desc.b, batch, desc.n, desc.k));
        desc.a.dtype = desc.b.dtype = dtype;
        desc.a.alignment = desc.b.alignment = memory_alignment;
        desc.has_factor = desc.a.scale == ScaleMode::tensor;
        if (desc.has_factor) pointers.factor = pointers.scale_a;
        pointers.scale_a = nullptr;
        desc.a.scale = ScaleMode::none;
        desc.fast_accumulation = false;
    }

    /// Makes D an f32 array, which a conversion reads after the call. The addend is converted into D, in its place.
    void widen_result() {
        MatmulDesc &desc = result_.desc;
        MatmulPointers &pointers = result_.pointers;
        const uint64_t count = span_of(desc.d, desc.batch, desc.m, desc.n);
        float *sums = carver_.take<float>(count);
        result_.after = {narrowing_kernel(desc.d.dtype), sums, pointers.d, static_cast<uint32_t>(count), pointers.scale_d, pointers.amax};
        desc.d.dtype = SCALIDE_F32;
        desc.d.alignment = memory_alignment;
        desc.d.scale = ScaleMode::none;
        desc.amax = false;
        if (desc.c.dtype != no_dtype) {
            const MatmulMatrix addend = desc.c;
            desc.c = desc.d;
            add_conversion(pointers.c, sums, addend.dtype, SCALIDE_F32, count);
            pointers.c = sums;
        }
        pointers.d = sums;
        pointers.scale_d = nullptr;
        pointers.amax = nullptr;
        pointers.overwrites = false;
    }

    /// The bias of 16-bit operands has the type of D.
    void widen_bias() {
        MatmulDesc &desc = result_.desc;
        if (desc.bias_dtype == no_dtype || desc.bias_dtype == desc.d.dtype) return;
        result_.pointers.bias = convert(result_.pointers.bias, desc.bias_dtype, desc.d.dtype, static_cast<uint64_t>(desc.n));
        desc.bias_dtype = desc.d.dtype;
    }

    uint64_t bytes() const { return carver_.bytes(); }

private:
    const void *convert(const void *from, int32_t dtype, int32_t to, uint64_t count) {
        void *converted = to == SCALIDE_F32 ? static_cast<void *>(carver_.take<float>(count)) : carver_.take<uint16_t>(count);
        add_conversion(from, converted, dtype, to, count);
        return converted;
    }

    void add_conversion(const void *from, void *to, int32_t from_dtype, int32_t to_dtype, uint64_t count) {
        result_.before[result_.before_count++] = {widening_kernel(from_dtype, to_dtype), from,    to,
                                                  static_cast<uint32_t>(count),          nullptr, nullptr};
    }

    Carver carver_;
    WidenedMatmul &result_;
};

bool can_be_widened(const MatmulDesc &asked) {
    return is_f8(asked.a.dtype) && is_f8(asked.b.dtype) && asked.a.scale <= ScaleMode::tensor && asked.b.scale == ScaleMode::none;
}

} // namespace

bool widen(const MatmulDesc &asked, const MatmulPointers &pointers, MatmulForm form, void *memory, WidenedMatmul &widened) {
    const bool stores_result = form == MatmulForm::widened, is_f16 = stores_result && asked.d.dtype == SCALIDE_F16;
    if (!can_be_widened(asked) || (stores_result ? is_f8(asked.d.dtype) : asked.d.dtype == SCALIDE_F32)) return false;
    Widening widening(asked, pointers, memory, widened);
    widening.widen_operands(is_f16 ? SCALIDE_F16 : SCALIDE_BF16);
    if (!stores_result) widening.widen_result();
    widening.widen_bias();
    widened.bytes = widening.bytes();
    return true;
}

} // namespace scalide

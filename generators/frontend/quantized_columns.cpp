#include "frontend/quantized_columns.h"
#include "frontend/fragments.h"
#include "frontend/tracer.h"
#include "ir/words.h"

namespace scalide {

namespace {

using namespace fragments;

double largest_integer(Dtype dtype) {
    if (dtype == Dtype::i8) return 127;
    if (dtype == Dtype::i16) return 32767;
    throw UserError({{}, "quantize_columns", "the dtype must be i8 or i16", std::string(to_string(dtype)), ""});
}

} // namespace

QuantizedColumns quantize_columns(const Tensor &x, Dtype dtype, bool extract_diagonal, const std::source_location &where) {
    return at(where, [&] {
        const double largest = largest_integer(dtype);
        const Extents shape = x.shape();
        if (shape.empty()) throw UserError({{}, "quantize_columns", "x must have an axis", to_string(shape), ""});
        QuantizedColumns quantized;
        Tensor rest = to(x, Dtype::f32);
        if (extract_diagonal) {
            if (shape.size() != 2 || !(shape[0] == shape[1]))
                throw UserError(
                    {{}, "quantize_columns", "a diagonal needs a square matrix", to_string(shape), "Set extract_diagonal to false"});
            const Tensor mask = identity_mask(shape[0]);
            quantized.diagonal = reduce("reduce_sum", fragments::where(mask, rest, 0), {0});
            rest = fragments::where(mask, 0, rest);
        }
        quantized.bucket_size = reduce("reduce_max", abs(rest), {0}) / largest;
        const Tensor divisor = fragments::where(quantized.bucket_size > 0, quantized.bucket_size, 1);
        quantized.values = to(apply("round", {rest / expand(divisor, 0)}), dtype);
        return quantized;
    });
}

Tensor dequantize_columns(const QuantizedColumns &quantized, const std::source_location &where) {
    return at(where, [&] {
        const Tensor rest = to(quantized.values, Dtype::f32) * expand(quantized.bucket_size, 0);
        if (!quantized.diagonal.is_assigned()) return rest;
        return rest + fragments::where(identity_mask(rest.shape()[0]), expand(quantized.diagonal, 0), 0);
    });
}

} // namespace scalide

#include "standin_product.h"
#include "ir/dtype.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

namespace scalide::test {

namespace {

using namespace cublaslt;

std::optional<Dtype> dtype_of(int32_t type) {
    switch (type) {
    case r_32f: return Dtype::f32;
    case r_16f: return Dtype::f16;
    case r_16bf: return Dtype::bf16;
    case r_8f_e4m3: return Dtype::f8_e4m3fn;
    case r_8f_e5m2: return Dtype::f8_e5m2;
    default: return std::nullopt;
    }
}

/// Column-major elements of one matrix of a batch, in memory.
class Elements {
public:
    Elements(const StandinMatrix &matrix, Dtype dtype, int64_t batch)
        : dtype_(dtype), width_(size_of(dtype)), leading_(matrix.layout.leading),
          first_(static_cast<char *>(matrix.memory) + batch * matrix.layout.get<int64_t>(strided_batch_offset, 0) * width_) {}

    double at(int64_t row, int64_t column) const {
        uint32_t code = 0;
        std::memcpy(&code, place(row, column), static_cast<size_t>(width_));
        return value_of(dtype_, code);
    }
    void set(int64_t row, int64_t column, double value) {
        const uint32_t code = encode(format_of(dtype_), value, width_ == 1 ? Overflow::clip : Overflow::format);
        std::memcpy(place(row, column), &code, static_cast<size_t>(width_));
    }

private:
    char *place(int64_t row, int64_t column) const { return first_ + (row + column * leading_) * width_; }

    Dtype dtype_;
    int64_t width_, leading_;
    char *first_;
};

/// The scale of an operand's element: `outer` counts along m or n.
class Scales {
public:
    Scales(int32_t mode, const void *memory, int64_t extent, int64_t depth)
        : mode_(memory ? mode : int32_t(scalar_32f)), memory_(memory), extent_(extent), depth_(depth) {}

    double at(int64_t outer, int64_t k) const {
        if (!memory_) return 1;
        const auto *floats = static_cast<const float *>(memory_);
        const auto round_up = [](int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; };
        switch (mode_) {
        case outer_vec_32f: return floats[outer];
        case vec128_32f: return floats[outer + (k / 128) * extent_];
        case blk128x128_32f: return floats[outer / 128 * round_up((depth_ + 127) / 128, 4) + k / 128];
        case vec32_ue8m0: {
            // Tiles of 128 rows and four scales, 512 bytes each, along k first.
            const int64_t block = k / 32, tile = outer / 128 * (round_up((depth_ + 31) / 32, 4) / 4) + block / 4;
            const int64_t within = outer % 128 % 32 * 16 + outer % 128 / 32 * 4 + block % 4;
            return value_of(Dtype::f8_e8m0fnu, static_cast<const unsigned char *>(memory_)[tile * 512 + within]);
        }
        default: return *floats;
        }
    }

private:
    int32_t mode_;
    const void *memory_;
    int64_t extent_, depth_;
};

/// A TF32 matmul rounds f32 operands to 11 significant bits, to nearest, as an H100 with cuBLASLt 13.1 does (2026-11-26).
double tf32_of(double value) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

/// The values of an operand, scaled: `outer` lines of `depth`.
std::vector<double> lines_of(const Elements &elements, const Scales &scales, int64_t outer, int64_t depth, bool depth_is_row,
                             bool is_tf32) {
    std::vector<double> values;
    values.reserve(static_cast<size_t>(outer * depth));
    for (int64_t line = 0; line < outer; line++)
        for (int64_t k = 0; k < depth; k++)
            values.push_back((depth_is_row ? elements.at(k, line) : elements.at(line, k)) * scales.at(line, k));
    if (is_tf32) std::ranges::transform(values, values.begin(), tf32_of);
    return values;
}

/// What the sums become: factors, C, bias, relu, amax, the scale of D.
class Ending {
public:
    Ending(const StandinObject &operation, float alpha, float beta)
        : alpha_(alpha), beta_(beta), epilogue_(operation.get<uint32_t>(epilogue, epilogue_default)),
          bias_(operation.get<const unsigned char *>(bias_pointer, nullptr)),
          bias_dtype_(dtype_of(operation.get<int32_t>(bias_data_type, r_32f)).value_or(Dtype::f32)),
          scale_(operation.get<const float *>(d_scale_pointer, nullptr)), amax_(operation.get<float *>(amax_d_pointer, nullptr)) {
        if (amax_) *amax_ = 0;
    }

    double value(double sum, double addend, int64_t row) {
        double value = alpha_ * sum + (beta_ == 0 ? 0 : beta_ * addend);
        if (epilogue_ & epilogue_bias) value += bias(row);
        if ((epilogue_ & epilogue_relu) && value < 0) value = 0;
        if (amax_) *amax_ = std::max(*amax_, static_cast<float>(std::fabs(value)));
        return scale_ ? value * *scale_ : value;
    }

private:
    double bias(int64_t row) const {
        uint32_t code = 0;
        std::memcpy(&code, bias_ + row * size_of(bias_dtype_), static_cast<size_t>(size_of(bias_dtype_)));
        return value_of(bias_dtype_, code);
    }

    float alpha_, beta_;
    uint32_t epilogue_;
    const unsigned char *bias_;
    Dtype bias_dtype_;
    const float *scale_;
    float *amax_;
};

} // namespace

bool multiply_as_cublaslt(const StandinObject &operation, float alpha, const StandinMatrix &a, const StandinMatrix &b, float beta,
                          const StandinMatrix &c, const StandinMatrix &d) {
    const std::optional<Dtype> types[] = {dtype_of(a.layout.type), dtype_of(b.layout.type), dtype_of(c.layout.type),
                                          dtype_of(d.layout.type)};
    if (!std::ranges::all_of(types, [](const auto &type) { return type.has_value(); })) return false;
    const bool a_is_turned = operation.get<int32_t>(transa, op_n) == op_t, b_is_turned = operation.get<int32_t>(transb, op_n) == op_t;
    const auto m = int64_t(d.layout.rows), n = int64_t(d.layout.columns), depth = int64_t(a_is_turned ? a.layout.rows : a.layout.columns);
    const Scales a_scales(operation.get<int32_t>(a_scale_mode, scalar_32f), operation.get<const void *>(a_scale_pointer, nullptr), m,
                          depth);
    const Scales b_scales(operation.get<int32_t>(b_scale_mode, scalar_32f), operation.get<const void *>(b_scale_pointer, nullptr), n,
                          depth);
    Ending ending(operation, alpha, beta);
    const bool is_tf32 = operation.head.starts_with("operation compute=" + std::to_string(compute_32f_fast_tf32));
    for (int64_t batch = 0; batch < d.layout.get<int32_t>(batch_count, 1); batch++) {
        const std::vector<double> left = lines_of(Elements(a, *types[0], batch), a_scales, m, depth, a_is_turned, is_tf32);
        const std::vector<double> right = lines_of(Elements(b, *types[1], batch), b_scales, n, depth, !b_is_turned, is_tf32);
        const Elements addend(c, *types[2], batch);
        Elements out(d, *types[3], batch);
        for (int64_t column = 0; column < n; column++) {
            for (int64_t row = 0; row < m; row++) {
                const double sum =
                    std::inner_product(left.data() + row * depth, left.data() + (row + 1) * depth, right.data() + column * depth, 0.0);
                out.set(row, column, ending.value(sum, beta == 0 ? 0 : addend.at(row, column), row));
            }
        }
    }
    return true;
}

} // namespace scalide::test

#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <scalide/scalide.h>

// Helpers of the programs that time generated libraries.
namespace scalide::measuring {

using Clock = std::chrono::steady_clock;

inline double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Returns the encoded value of a random number of about 2^-4 with either sign (f32: 2^-5). For i32: 0 to 9. For other dtypes: 0.
inline uint32_t random_code(int32_t dtype, uint32_t draw) {
    switch (dtype) {
    case SCALIDE_F32: return 0x3d000000u + (draw & 0x807fffffu);
    case SCALIDE_F16: return 0x2800u + (draw & 0x83ffu);
    case SCALIDE_BF16: return 0x3d00u + (draw & 0x807fu);
    case SCALIDE_F8_E4M3FN: return 0x18u + (draw & 0x87u);
    case SCALIDE_F8_E5M2: return 0x2cu + (draw & 0x83u);
    case SCALIDE_I32: return draw % 10;
    default: return 0;
    }
}

/// Writes `count` random elements.
inline void fill(void *data, int32_t dtype, size_t count, std::mt19937 &random) {
    const size_t width = scalide_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = random_code(dtype, static_cast<uint32_t>(random()));
        std::memcpy(static_cast<char *>(data) + i * width, &code, std::min(width, sizeof code));
    }
}

} // namespace scalide::measuring

#pragma once
#include <cstdint>
#include <scalide/scalide.h>

namespace scalide {

/// The storage code of a random number of about 2^-4 with either sign (f32: 2^-5), i32: 0 to 9; other dtypes: 0.
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

} // namespace scalide

// The tables that have a row for each dtype.
#include "bind/binding.h"
#include <gtest/gtest.h>
#include <string>

// Kernels see the storage words: unsigned ones of all formats but f32, f64 and signed integers.
TEST(runtime, views_have_the_type_of_the_storage_words) {
    for (int32_t dtype = 0; dtype < SCALIDE_DTYPE_COUNT; ++dtype) {
        const std::string name = scalide_dtype_name(dtype);
        const scalide::HalideType type = scalide::halide_type_of(dtype);
        EXPECT_EQ(type.bits, 8 * scalide_dtype_size(dtype)) << name;
        EXPECT_EQ(type.lanes, 1) << name;
        EXPECT_EQ(type.code, name == "f32" || name == "f64" ? 2 : name[0] == 'i' ? 0 : 1) << name;
    }
}

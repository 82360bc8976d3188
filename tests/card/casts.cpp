#include "card/card.h"
#include <cstring>
#include <gtest/gtest.h>

// card.casts.*: conversions on the GPU and on the CPU give the same bits for all 2^32 arguments. unit.exhaustive.* compares the CPU with
// the definition of each format.

namespace scalide {

namespace {

/// Arguments at once: 64 MiB of f32.
constexpr uint32_t chunk = 1u << 24;

/// The f32 numbers whose bits are first, first + 1 ...
HostArray floats_from(uint32_t first) {
    HostArray x{"x", Dtype::f32, {chunk}, {}, false, 1};
    x.data.resize(size_t{4} * chunk);
    for (uint32_t i = 0; i < chunk; i++) {
        const uint32_t bits = first + i;
        std::memcpy(x.data.data() + size_t{4} * i, &bits, 4);
    }
    return x;
}

HostArray all_codes(Dtype dtype) {
    const uint32_t count = 1u << (8 * size_of(dtype));
    HostArray x{"x", dtype, {count}, {}, false, 1};
    for (uint32_t code = 0; code < count; code++)
        for (int byte = 0; byte < size_of(dtype); byte++) x.data.push_back(static_cast<unsigned char>(code >> (8 * byte)));
    return x;
}

std::vector<Dtype> narrow_floats() {
    std::vector<Dtype> dtypes;
    for (const Dtype dtype : all_dtypes())
        if (is_float(dtype) && size_of(dtype) < 4) dtypes.push_back(dtype);
    return dtypes;
}

std::string conversion(const std::string &from, const std::string &to, const std::string &further = "") {
    return "program casts(x: " + from + "[n]) -> (y: " + to + "[n]) {\n y = convert_element_type(x) {dtype: " + to + further + "}\n}\n";
}

class casts : public testing::TestWithParam<Dtype> {
protected:
    void SetUp() override {
        if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    }
    const std::string name = std::string(to_string(GetParam()));
};

std::string name_of(const testing::TestParamInfo<Dtype> &info) { return std::string(to_string(info.param)); }

} // namespace

TEST_P(casts, of_all_f32) {
    for (const char *overflow : {"saturate", "format"}) {
        const OnBoth program(conversion("f32", name, std::string(", overflow: ") + overflow));
        uint32_t first = 0;
        do {
            ASSERT_EQ(program.first_difference({floats_from(first)}), "") << overflow << ", element 0 is f32 of the bits " << first;
            first += chunk;
        } while (first != 0);
    }
}

TEST_P(casts, of_all_codes) { EXPECT_EQ(OnBoth(conversion(name, "f32")).first_difference({all_codes(GetParam())}), ""); }

INSTANTIATE_TEST_SUITE_P(, casts, testing::ValuesIn(narrow_floats()), name_of);

} // namespace scalide

#include "kernels/contract_cases.h"
#include "lower/halide/amx_feature.h"
#include <cstring>
#include <gtest/gtest.h>

// Products of integers, which wrap around. Bytes are multiplied in groups of four (vpdpbusd) where the host has this instruction, otherwise
// as i16 in pairs (vpmaddwd). Every host runs both forms that it can run. Arrays end at a page that no code may read.

namespace scalide::contract_test {
namespace {

/// The host, and the host without the products of four bytes and AVX-512.
std::vector<Halide::Target> targets() {
    using Halide::Target;
    std::vector<Target> all = {kernel_target()};
    Target narrow = kernel_target();
    narrow.processor_tune = Target::ProcessorGeneric;
    for (const auto feature : {amx_feature, Target::AVX512_SapphireRapids, Target::AVX512_Zen5, Target::AVX512_Zen4,
                               Target::AVX512_Cannonlake, Target::AVX512_Skylake, Target::AVX512_KNL, Target::AVX512, Target::AVXVNNI})
        narrow = narrow.without_feature(feature);
    if (narrow != all[0]) all.push_back(narrow);
    return all;
}

uint32_t element(const Words &words, Dtype dtype, size_t i) {
    uint32_t code = 0;
    std::memcpy(&code, &words[i * size_t(size_of(dtype))], size_t(size_of(dtype)));
    return uint32_t(int64_t(value_of(dtype, code)));
}

/// Every third element is an end of the range, so that most sums of wide integers wrap around.
Words draw(size_t count, Dtype dtype, std::mt19937 &random) {
    const IntegerRange range = range_of(dtype);
    std::uniform_int_distribution<int64_t> value(int64_t(range.smallest), int64_t(range.largest));
    std::vector<double> values(count);
    for (double &each : values) each = random() % 3 != 0 ? double(value(random)) : random() % 2 ? range.smallest : range.largest;
    Words words(count * size_t(size_of(dtype)));
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = code_of(dtype, values[i]);
        std::memcpy(&words[i * size_t(size_of(dtype))], &code, size_t(size_of(dtype)));
    }
    return words;
}

/// Runs the kernel once and compares each element with the sum modulo 2^32.
void expect_integers(const CompiledKernel &kernel, const Form &form, const Product &p, const std::vector<Words> &arguments) {
    const Dtype left = dtype_named(form.lhs_dtype), right = dtype_named(form.rhs_dtype), result = dtype_named(form.result_dtype);
    std::vector<Words> passed = arguments;
    const Words got = kernel.run(passed, {{"b", p.batch}, {"m", p.m}, {"n", p.n}, {"k", p.k}})[0];
    ASSERT_EQ(got.size(), size_t(p.batch * p.m * p.n * size_of(result)));
    for (int64_t at = 0; at < p.batch * p.m * p.n; at++) {
        const int64_t n = at % p.n, m = at / p.n % p.m, batch = at / p.n / p.m;
        uint32_t sum = 0;
        for (int64_t k = 0; k < p.k; k++)
            sum += element(arguments[0], left, size_t(batch * p.m * p.k + (p.lhs_transposed ? k * p.m + m : m * p.k + k))) *
                   element(arguments[1], right, size_t(batch * p.k * p.n + (p.rhs_transposed ? n * p.k + k : k * p.n + n)));
        ASSERT_EQ(element(got, result, size_t(at)), uint32_t(int64_t(value_of(result, code_of(result, double(int32_t(sum)))))))
            << form.name() << " m " << p.m << " n " << p.n << " k " << p.k << " at " << at;
    }
}

void expect_integers(const CompiledKernel &kernel, const Form &form, int64_t m, int64_t n, int64_t k) {
    const Product p{form.batched ? 2 : 1, m, n, k, form.lhs_transposed, form.rhs_transposed};
    std::mt19937 random(uint32_t(m * 10007 + n * 101 + k));
    expect_integers(kernel, form, p,
                    {draw(size_t(p.batch * m * k), dtype_named(form.lhs_dtype), random),
                     draw(size_t(p.batch * k * n), dtype_named(form.rhs_dtype), random)});
}

struct DtypeCase {
    std::string lhs, rhs, result = "i32";
    friend void PrintTo(const DtypeCase &each, std::ostream *out) { *out << each.lhs << " by " << each.rhs << " to " << each.result; }
};

class Integers : public testing::TestWithParam<DtypeCase> {
protected:
    static Form form(int order) {
        Form form;
        form.lhs_transposed = order & 1;
        form.rhs_transposed = order & 2;
        form.batched = order & 4;
        form.lhs_dtype = GetParam().lhs;
        form.rhs_dtype = GetParam().rhs;
        form.result_dtype = GetParam().result;
        return form;
    }
};

TEST_P(Integers, wrap_around_at_every_extent) {
    for (const Halide::Target &target : targets()) {
        for (const int order : {0, 1, 2, 3, 7}) {
            const CompiledKernel kernel(parse_program(form(order).text(), "k"), target);
            for (int extent = 1; extent <= 70; extent++) {
                expect_integers(kernel, form(order), extent, 17, 6);
                expect_integers(kernel, form(order), 7, extent, 9);
                expect_integers(kernel, form(order), 7, 18, extent);
            }
            expect_integers(kernel, form(order), 130, 140, 65);
            expect_integers(kernel, form(order), 3, 5, 0);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(contract, Integers,
                         testing::Values(DtypeCase{"i8", "i8"}, DtypeCase{"u8", "i8"}, DtypeCase{"i8", "u8"}, DtypeCase{"u8", "u8"},
                                         DtypeCase{"i8", "i8", "i8"}, DtypeCase{"u8", "u8", "u32"}, DtypeCase{"i16", "i8"},
                                         DtypeCase{"u16", "i16"}, DtypeCase{"i32", "i32"}),
                         [](const auto &info) { return info.param.lhs + "_" + info.param.rhs + "_" + info.param.result; });

TEST(contract, sums_of_bytes_wrap_around_at_any_depth) {
    const int64_t depth = 140000; // the sum of 131072 products of -128 by -128 is 2^31
    for (const Halide::Target &target : targets()) {
        for (const auto &[lhs, rhs] : std::vector<std::pair<std::string, std::string>>{{"i8", "i8"}, {"u8", "u8"}, {"u8", "i8"}}) {
            Form form;
            form.lhs_dtype = lhs;
            form.rhs_dtype = rhs;
            form.result_dtype = "i32";
            const CompiledKernel kernel(parse_program(form.text(), "k"), target);
            const auto fill = [&](const std::string &dtype, size_t count) { return Words(count, dtype == "u8" ? 255 : 128); };
            expect_integers(kernel, form, {1, 2, 3, depth}, {fill(lhs, size_t(2 * depth)), fill(rhs, size_t(3 * depth))});
        }
    }
}

TEST(contract, converted_bytes_are_multiplied_as_bytes) {
    const std::string text = R"(program k {kind: contract} (x: i8[m, k], y: i8[k, n]) -> (z: i32[m, n]) {
  xw = convert_element_type(x) {dtype: i32} : i32[m, k]
  yw = convert_element_type(y) {dtype: i32} : i32[k, n]
  z = dot_general(xw, yw) {contract: [[1], [0]], batch: [[], []], preferred: i32} : i32[m, n]
})";
    Form form;
    form.lhs_dtype = form.rhs_dtype = "i8";
    form.result_dtype = "i32";
    for (const Halide::Target &target : targets()) {
        const CompiledKernel direct(parse_program(form.text(), "k"), target), converted(parse_program(text, "k"), target);
        expect_integers(converted, form, 19, 33, 21);
        EXPECT_EQ(std::get<ContractStages>(converted.lowered().stages).packed.group,
                  std::get<ContractStages>(direct.lowered().stages).packed.group);
    }
}

} // namespace
} // namespace scalide::contract_test

#include "kernels/contract_cases.h"
#include "lower/halide/amx_feature.h"
#include <bit>
#include <cstring>
#include <gtest/gtest.h>

namespace scalide::contract_test {

Doubles multiply(const Product &p, const Doubles &a, const Doubles &b) {
    Doubles c(size_t(p.batch * p.m * p.n), 0.0);
    for (int64_t i = 0; i < p.batch; i++) {
        for (int64_t m = 0; m < p.m; m++) {
            for (int64_t k = 0; k < p.k; k++) {
                double left = a[size_t(i * p.m * p.k + (p.lhs_transposed ? k * p.m + m : m * p.k + k))];
                for (int64_t n = 0; n < p.n; n++) {
                    c[size_t((i * p.m + m) * p.n + n)] += left * b[size_t(i * p.k * p.n + (p.rhs_transposed ? n * p.k + k : k * p.n + n))];
                }
            }
        }
    }
    return c;
}

namespace {

std::string matrix(const std::string &dtype, const std::string &batch, const std::string &rows, const std::string &columns) {
    return dtype + "[" + (batch.empty() ? "" : batch + ", ") + rows + ", " + columns + "]";
}

std::string matrix(const Form &form, const std::string &dtype, bool transposed, const std::string &rows, const std::string &columns) {
    return matrix(dtype, form.batched ? form.batch : "", transposed ? columns : rows, transposed ? rows : columns);
}

} // namespace

std::string Form::name() const {
    return std::string(batched ? "batched " : "") + (lhs_transposed ? "T" : "N") + (rhs_transposed ? "T" : "N");
}

std::string Form::lhs_type() const { return matrix(*this, lhs_dtype, lhs_transposed, m, k); }
std::string Form::rhs_type() const { return matrix(*this, rhs_dtype, rhs_transposed, k, n); }
std::string Form::result_type() const { return matrix(*this, result_dtype, false, m, n); }

std::string Form::lines() const {
    const int first = batched ? 1 : 0;
    std::string lines, lhs = "x", rhs = "y";
    const bool is_float = result_dtype == "f32";
    if (is_float && lhs_dtype != "f32") {
        lines += "  xw = convert_element_type(x) : " + matrix(*this, "f32", lhs_transposed, m, k) + "\n";
        lhs = "xw";
    }
    if (is_float && rhs_dtype != "f32") {
        lines += "  yw = convert_element_type(y) : " + matrix(*this, "f32", rhs_transposed, k, n) + "\n";
        rhs = "yw";
    }
    lines += "  z = dot_general(" + lhs + ", " + rhs + ") {contract: [[" + std::to_string(first + !lhs_transposed) + "], [" +
             std::to_string(first + rhs_transposed) + "]], batch: " + (batched ? "[[0], [0]]" : "[[], []]") +
             ", preferred: " + result_dtype + "} : " + result_type() + "\n";
    return lines;
}

std::string Form::text() const {
    return "program k {kind: contract} (x: " + lhs_type() + ", y: " + rhs_type() + ") -> (z: " + result_type() + ") {\n" + lines() + "}\n";
}

Dtype dtype_named(const std::string &name) { return *parse_dtype(name); }

Doubles random_integers(size_t count, int limit, std::mt19937 &random) {
    std::uniform_int_distribution<int> draw(-limit, limit);
    Doubles values(count);
    for (double &value : values) {
        value = draw(random);
    }
    return values;
}

Words to_words(const Doubles &values, Dtype dtype) {
    const size_t size = size_t(size_of(dtype));
    Words words(values.size() * size);
    for (size_t i = 0; i < values.size(); i++) {
        uint32_t code = is_float(dtype) ? encode(format_of(dtype), values[i]) : code_of(dtype, values[i]);
        std::memcpy(&words[i * size], &code, size);
    }
    return words;
}

Doubles to_doubles(const Words &words, Dtype dtype) {
    const size_t size = size_t(size_of(dtype));
    Doubles values(words.size() / size);
    for (size_t i = 0; i < values.size(); i++) {
        uint32_t code = 0;
        std::memcpy(&code, &words[i * size], size);
        values[i] = value_of(dtype, code);
    }
    return values;
}

Halide::Target pairs_target() {
    return kernel_target()
        .with_feature(Halide::Target::AVX512_Zen4)
        .without_feature(Halide::Target::AVX512_SapphireRapids)
        .without_feature(amx_feature);
}

void expect_product(const Kernel &kernel, const Form &form, const Product &p, const Extent::Bindings &symbols) {
    std::mt19937 random(uint32_t(p.m * 10007 + p.n * 101 + p.k));
    const Doubles a = random_integers(size_t(p.batch * p.m * p.k), 4, random), b = random_integers(size_t(p.batch * p.k * p.n), 4, random);
    std::vector<Words> arguments = {to_words(a, dtype_named(form.lhs_dtype)), to_words(b, dtype_named(form.rhs_dtype))};
    Doubles got = to_doubles(kernel.run(arguments, symbols)[0], Dtype::f32), expected = multiply(p, a, b);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++) {
        ASSERT_EQ(got[i], expected[i]) << form.name() << " batch " << p.batch << " m " << p.m << " n " << p.n << " k " << p.k << " at "
                                       << i;
    }
}

} // namespace scalide::contract_test

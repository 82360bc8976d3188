#include "card/card.h"
#include "support/rounding_errors/roundings.h"
#include "support/rounding_errors/running_error.h"
#include <gtest/gtest.h>

// card.rows.*: reductions of rows of many lengths: by one thread, by lanes, by a warp whose threads read 2 to 16 bytes at once, with and
// without columns that complete the last step. CUDA adds in another order than a CPU, so results are compared within the bounds of rounding
// errors.

namespace scalide {

namespace {

constexpr int lengths[] = {1, 2, 31, 32, 33, 64, 127, 128, 129, 192, 256, 300, 768, 1000, 1024};

struct Case {
    const char *name;
    Dtype from, to;
    const char *lines; ///< make v, of f32 rows, and a, one number a row, from the f32 rows w; @ stands for the length
};

constexpr const char *softmax = " v@ = softmax(w@) {axes: [1]}\n m@ = abs(w@)\n a@ = reduce_max(m@) {axes: [1]}\n";
constexpr const char *rms = " s@ = mul(w@, w@)\n a@ = reduce_sum(s@) {axes: [1]}\n q@ = mul(a@, 0.01)\n i@ = rsqrt(q@)\n"
                            " b@ = broadcast_in_dim(i@) {shape: [5, @], dims: [0]}\n v@ = mul(w@, b@)\n";

std::vector<Case> cases() {
    using enum Dtype;
    return {{"softmax_f32", f32, f32, softmax},     {"softmax_bf16", bf16, bf16, softmax}, {"softmax_f8", f8_e4m3fn, f8_e4m3fn, softmax},
            {"rms_f32_to_f8", f32, f8_e4m3fn, rms}, {"rms_bf16", bf16, bf16, rms},         {"rms_f8_to_f32", f8_e4m3fn, f32, rms}};
}

/// A program that does this for each length.
std::string program_of(const Case &c) {
    const std::string from(to_string(c.from)), to(to_string(c.to));
    std::string arguments, results, lines;
    for (const int n : lengths) {
        const auto filled = [n](const std::string &text) {
            std::string found;
            for (const char letter : text) found += letter == '@' ? std::to_string(n) : std::string(1, letter);
            return found;
        };
        arguments += (arguments.empty() ? "" : ", ") + filled("x@: " + from + "[5, @]");
        results += (results.empty() ? "" : ", ") + filled("y@: " + to + "[5, @], a@: f32[5]");
        lines += filled(" w@ = convert_element_type(x@) {dtype: f32}\n" + std::string(c.lines) +
                        " y@ = convert_element_type(v@) {dtype: " + to + (size_of(c.to) == 1 ? ", overflow: saturate" : "") + "}\n");
    }
    return "program rows {arithmetic: exact} (" + arguments + ") -> (" + results + ") {\n" + lines + "}\n";
}

std::vector<Array> numbers(const Program &program) {
    std::vector<Array> inputs;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        Array array{type.dtype, {type.shape[0].value(), type.shape[1].value()}, {}};
        for (int64_t i = 0; i < array.shape[0] * array.shape[1]; i++)
            array.data.push_back(round_to(type.dtype, double(i * 7 % 37) / 8 - 2.25));
        inputs.push_back(array);
    }
    return inputs;
}

class rows : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(rows, of_all_lengths) {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    const auto program = compile_for_card(program_of(GetParam()));
    const std::vector<Array> inputs = numbers(program->fused());
    set_function_errors(FunctionErrors::cpu);
    EXPECT_EQ(difference(program->run(inputs), interpret_with_errors(program->fused(), inputs, {}, Mode::stored)), "");
}

INSTANTIATE_TEST_SUITE_P(, rows, testing::ValuesIn(cases()), [](const auto &info) { return std::string(info.param.name); });

} // namespace scalide

#include "card/card.h"
#include "kernels/kernel_text.h"
#include "support/rounding_errors/roundings.h"
#include "support/rounding_errors/running_error.h"
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>

// card.kernels.<kind>.<case>: runs every kernel text under tests/kernels as its own program on the GPU and on the CPU. With
// `arithmetic: exact` the bits must be the same, except where floats are added, by cuBLASLt or by CUDA kernels, which have their own order
// (lower/rows/block_reduction.h). There, and with the instructions of the GPU, results must be within the bounds of rounding errors.

namespace scalide {

namespace {

namespace fs = std::filesystem;

/// A GPU produces other NaN bits, which a program can see as an integer.
bool shows_nan(const KernelText &text) {
    return text.inputs == "special" &&
           std::ranges::any_of(text.program.nodes, [](const Node &node) { return node.op == "bitcast_convert_type"; });
}

bool adds_floats(const Program &program) {
    return std::ranges::any_of(program.nodes, [&](const Node &node) {
        return (node.op == "reduce_sum" || node.op == "reduce_prod" || node.op == "dot_general") &&
               is_float(program.type(node.operands[0]).dtype);
    });
}

/// The emulated GPU takes a second for this many elements.
constexpr size_t most_on_standins = 40000;

/// The text of a program that becomes this kernel.
std::string program_of(const fs::path &path, const std::string &arithmetic) {
    std::ifstream file(path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string setting = "{arithmetic: " + arithmetic;
    text = std::regex_replace(text, std::regex(R"(\{kind: row\})"), setting + ", sums: with_rows}");
    return std::regex_replace(text, std::regex(R"(\{kind: \w+(, row_axes: \d+)?\})"), setting + "}");
}

class KernelCase : public testing::Test {
public:
    explicit KernelCase(fs::path path) : path_(std::move(path)) {}

    void TestBody() override {
        if (const std::string &why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
        const KernelText text = read_kernel_text(path_);
        const std::string exact_text = program_of(path_, "exact");
        const auto both = adds_floats(text.program) ? nullptr : std::make_unique<OnBoth>(exact_text);
        const auto exact = both ? nullptr : compile_for_card(exact_text);
        const auto device = compile_for_card(program_of(path_, "device"));
        int runs = 0;
        for (const Extent::Bindings &sizes : text.sizes) {
            const KernelArguments arguments = draw_arguments(text, sizes);
            std::vector<HostArray> inputs;
            size_t elements = 0;
            for (size_t i = 0; i < arguments.arrays.size(); i++) {
                elements += arguments.arrays[i].data.size();
                inputs.push_back(to_array(text.program.value_name(text.program.arguments[i].value), arguments.arrays[i]));
            }
            if (std::getenv("SCALIDE_STANDIN_COMPUTES") && elements > most_on_standins) continue;
            runs++;
            SCOPED_TRACE(describe_run(text, sizes));
            if (both) EXPECT_EQ(both->first_difference(inputs), "");
            if (exact) expect_bounded(*exact, arguments.arrays, FunctionErrors::cpu);
            expect_bounded(*device, arguments.arrays, FunctionErrors::device_rounded);
        }
        EXPECT_GT(runs, 0);
    }

private:
    static void expect_bounded(const CompiledProgram &program, const std::vector<Array> &inputs, FunctionErrors errors) {
        set_function_errors(errors);
        EXPECT_EQ(difference(program.run(inputs), interpret_with_errors(program.fused(), inputs, {}, Mode::stored)), "");
        set_function_errors(FunctionErrors::cpu);
    }

    fs::path path_;
};

void register_cases() {
    for (const fs::path &path : kernel_texts_for_gpus()) {
        if (shows_nan(read_kernel_text(path))) continue;
        const std::string kind = "kernels." + path.parent_path().filename().string();
        testing::RegisterTest(kind.c_str(), path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [path]() -> KernelCase * { return new KernelCase(path); });
    }
}

[[maybe_unused]] const bool registered = (register_cases(), true);

} // namespace

} // namespace scalide

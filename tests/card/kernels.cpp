#include "card/card.h"
#include "kernels/kernel_text.h"
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>

// card.kernels.<kind>.<case>: runs every kernel text under tests/kernels as its own program on the GPU and on the CPU. The bits must be the
// same, except where CUDA adds floats in another order (lower/rows/block_reduction.h): there the interpreter gives the bound of the error.

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
        return (node.op == "reduce_sum" || node.op == "reduce_prod") && is_float(program.type(node.operands[0]).dtype);
    });
}

/// The emulated GPU takes a second for this many elements.
constexpr size_t most_on_standins = 40000;

/// The text of a program that becomes this kernel.
std::string without_kind(const fs::path &path) {
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return std::regex_replace(std::regex_replace(text, std::regex(R"(\{kind: row\})"), "{sums: with_rows}"), std::regex(R"(\{kind: \w+\})"),
                              "");
}

class KernelCase : public testing::Test {
public:
    explicit KernelCase(fs::path path) : path_(std::move(path)) {}

    void TestBody() override {
        if (const std::string &why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
        const KernelText text = read_kernel_text(path_);
        const OnBoth both(without_kind(path_));
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
            if (!adds_floats(text.program)) EXPECT_EQ(both.first_difference(inputs), "") << describe_run(text, sizes);
            if (adds_floats(text.program)) expect_near(text, sizes, arguments, both.on_card(inputs));
        }
        EXPECT_GT(runs, 0);
    }

private:
    static void expect_near(const KernelText &text, const Extent::Bindings &sizes, const KernelArguments &arguments,
                            const std::vector<HostArray> &made) {
        expect_interpreted(text, sizes, arguments, [&](std::vector<Words> &words) {
            std::vector<Words> results;
            for (const Result &result : text.program.results) {
                const auto array = std::ranges::find(made, result.name, &HostArray::name);
                results.emplace_back(array->data.begin(), array->data.end());
                if (result.argument >= 0) words[size_t(result.argument)] = results.back();
            }
            return results;
        });
    }

    fs::path path_;
};

void register_cases() {
    for (const fs::path &path : kernel_texts()) {
        if (shows_nan(read_kernel_text(path))) continue;
        const std::string kind = "kernels." + path.parent_path().filename().string();
        testing::RegisterTest(kind.c_str(), path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [path]() -> KernelCase * { return new KernelCase(path); });
    }
}

[[maybe_unused]] const bool registered = (register_cases(), true);

} // namespace

} // namespace scalide

#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/analysis/fusion_report.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace scalide {

namespace {

const std::filesystem::path folder = std::filesystem::path(SCALIDE_TESTS_DIR) / "golden/fuse";

std::string read_file(const std::filesystem::path &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string join(const std::vector<std::string> &words, const std::string &separator) {
    std::string text;
    for (const std::string &word : words) text += (text.empty() ? "" : separator) + word;
    return text;
}

std::vector<std::string> names(const Program &program, const std::vector<ValueId> &values) {
    std::vector<std::string> found;
    for (ValueId value : values) found.push_back(program.value_name(value));
    return found;
}

/// One line a call and one an unfused edge, the same for equal kernel lists.
std::string kernel_list(const Fusion &fusion) {
    std::string text;
    for (size_t call = 0; call < fusion.report.kernels.size(); ++call) {
        const KernelReport &kernel = fusion.report.kernels[call];
        const Node &node = fusion.program.nodes[call];
        std::vector<std::string> results = names(fusion.program, node.results);
        const Program &callee = fusion.program.program(kernel.kernel);
        for (size_t i = 0; i < results.size(); ++i)
            if (callee.results[i].argument >= 0)
                results[i] += " over " + fusion.program.value_name(node.operands[callee.results[i].argument]);
        text += join(results, ", ") + " = " + kernel.kernel + "(" + join(names(fusion.program, node.operands), ", ") + ")\n";
        text += "    " + join(kernel.fused, " ") + "\n";
        text += "    reads " + to_string(kernel.bytes_read) + ", writes " + to_string(kernel.bytes_written) + ", flops " +
                to_string(kernel.flops) + "\n";
    }
    text += "\nnot fused\n";
    for (const UnfusedEdge &edge : fusion.report.edges) {
        const auto kernel = [&](int call) { return "#" + std::to_string(call + 1) + " " + fusion.report.kernels[call].kernel; };
        text += kernel(edge.producer) + " -> " + kernel(edge.consumer) + " (" + join(edge.values, ", ") + "): " + edge.reason + "\n";
    }
    return text;
}

} // namespace

/// Fuses each tests/golden/fuse/<case>.scl and compares it with <case>.kernels. SCALIDE_UPDATE_GOLDEN=1 rewrites them.
class fuse_golden : public testing::TestWithParam<std::string> {};

TEST_P(fuse_golden, kernels) {
    const std::filesystem::path source = folder / (GetParam() + ".scl"), golden = folder / (GetParam() + ".kernels");
    const Program program = parse_program(read_file(source), source.filename().string());
    verify(program, "");
    const Fusion fusion = fuse_and_explain(program, {});
    verify(fusion.program, "fuse");
    EXPECT_TRUE(equal(parse_program(to_string(fusion.program), "fused"), fusion.program));
    const std::string got = kernel_list(fusion);
    if (std::getenv("SCALIDE_UPDATE_GOLDEN")) std::ofstream(golden) << got;
    EXPECT_EQ(read_file(golden), got) << "SCALIDE_UPDATE_GOLDEN=1 writes " << golden;
}

std::vector<std::string> cases() {
    std::vector<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".scl") found.push_back(entry.path().stem().string());
    std::ranges::sort(found);
    return found;
}

INSTANTIATE_TEST_SUITE_P(transforms, fuse_golden, testing::ValuesIn(cases()), [](const auto &info) { return info.param; });

} // namespace scalide

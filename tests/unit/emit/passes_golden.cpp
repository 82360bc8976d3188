#include "ir/text.h"
#include "lower/shapes/kernel_passes.h"
#include "support/programs/rules.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace scalide {

namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(SCALIDE_TESTS_DIR) / "golden/passes";

std::string read_file(const fs::path &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Panels of eight columns, whatever the target of the tests.
std::optional<PanelLayout> panels_of(const Program &kernel) {
    if (kernel.attributes.at("kind").word != "contract" || kernel.attributes.contains(panels_attribute)) return {};
    return PanelLayout{.width = 8, .columns = 1, .axes = {0}};
}

/// The dumps of all passes, by name. The programs that a pass makes follow each other.
std::map<std::string, std::string> dumps_of(const fs::path &source) {
    CompileOptions options;
    const fs::path policy = fs::path(source).replace_extension(".yaml");
    if (fs::exists(policy)) options.policy = load_policy(policy);
    options.splits_constants = true;
    options.choose_panels = panels_of;
    std::map<std::string, std::string> dumps;
    const auto dump = [&](const std::string &pass, const Program &program) {
        const std::string text = to_string(program);
        EXPECT_EQ(to_string(parse_program(text, source)), text) << "the dump after " << pass << " parses back";
        dumps[pass] += text;
    };
    options.after_pass = dump;
    const Compiled compiled = run_passes(parse_program(read_file(source), source.filename()), rules(), options, Stage::forms);
    for (const Program &kernel : compiled.forms.main.program.programs) shape_kernel(kernel, dump);
    return dumps;
}

std::vector<std::string> cases() {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().stem();
        if (entry.path().extension() == ".scl" && name.find('.') == std::string::npos) names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
}

} // namespace

/// Compiles tests/golden/passes/<case>.scl, with the policy <case>.yaml if there is one. For each pass with a file <case>.<pass>.scl, the
/// program after the pass must equal that file. SCALIDE_UPDATE_GOLDEN=1 rewrites them.
class passes_golden : public testing::TestWithParam<std::string> {};

TEST_P(passes_golden, dumps) {
    const auto dumps = dumps_of(folder / (GetParam() + ".scl"));
    int compared = 0;
    for (const auto &[pass, text] : dumps) {
        const fs::path expected = folder / (GetParam() + "." + pass + ".scl");
        if (!fs::exists(expected)) continue;
        compared++;
        if (std::getenv("SCALIDE_UPDATE_GOLDEN") != nullptr) std::ofstream(expected) << text;
        EXPECT_EQ(read_file(expected), text) << expected;
    }
    EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(emit, passes_golden, testing::ValuesIn(cases()), [](const auto &info) { return info.param; });

} // namespace scalide

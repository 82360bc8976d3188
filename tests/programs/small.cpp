#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/passes.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

// Programs of tests/programs/small, compiled and run for the extents that their comments ask for (`# sizes: n=0 m=3; n=1`), against the
// interpreter. Each was refused, or gave other values than it, once.

namespace scalide {

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path &path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// One run without sizes where no comment asks for any.
std::vector<Extent::Bindings> sizes_of(const std::string &text) {
    const std::string mark = "# sizes: ";
    const size_t start = text.find(mark);
    if (start == std::string::npos) return {{}};
    std::istringstream line(text.substr(start + mark.size(), text.find('\n', start) - start - mark.size()));
    std::vector<Extent::Bindings> all;
    for (std::string run; std::getline(line, run, ';');) {
        std::istringstream words(run);
        Extent::Bindings sizes;
        for (std::string word; words >> word;) sizes[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
        all.push_back(sizes);
    }
    return all;
}

class Small : public testing::TestWithParam<fs::path> {};

TEST_P(Small, runs_as_interpreted) {
    const std::string text = text_of(GetParam());
    const Program program = parse_program(text, GetParam().string());
    const CompiledProgram compiled(program, rules(), {});
    const Program typed = inline_calls(infer_types(program, rules()), rules());
    for (const Extent::Bindings &sizes : sizes_of(text)) {
        std::mt19937 random(1);
        const std::vector<Array> inputs = draw_inputs(compiled.fused(), sizes, random);
        const std::vector<Array> expected = interpret_with_errors(typed, inputs, rules(), Mode::stored);
        EXPECT_EQ(difference(compiled.run(inputs), expected), "") << testing::PrintToString(sizes);
    }
}

std::vector<fs::path> programs() {
    std::vector<fs::path> paths;
    for (const fs::directory_entry &entry : fs::directory_iterator(SCALIDE_TESTS_DIR "/programs/small")) paths.push_back(entry.path());
    std::ranges::sort(paths);
    return paths;
}

INSTANTIATE_TEST_SUITE_P(programs, Small, testing::ValuesIn(programs()),
                         [](const testing::TestParamInfo<fs::path> &test) { return test.param.stem().string(); });

} // namespace

} // namespace scalide

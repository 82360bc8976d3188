#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "transforms/pipeline.h"
#include "upstream/cases.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace scalide {

namespace {

const Rulebook &rulebook() {
    static const Rulebook rules = Rulebook::load({SCALIDE_RULES_DIR});
    return rules;
}

/// The arguments of the program after `fuse`: a scaled one is two.
std::vector<Array> arguments_of(const Program &fused, const std::vector<CaseArray> &inputs) {
    std::vector<Array> arrays;
    size_t next = 0;
    for (const Argument &argument : fused.arguments) {
        const Type &type = fused.type(argument.value);
        if (argument.part.is_scale()) {
            arrays.push_back({Dtype::f32, {}, {inputs.at(next - 1).scale}});
            continue;
        }
        const CaseArray &input = inputs.at(next++);
        Array array{type.dtype, {}, input.data};
        for (const Extent &extent : type.shape) array.shape.push_back(extent.value());
        if (argument.part == ArrayPart())
            for (double &element : array.data) element *= input.scale;
        arrays.push_back(array);
    }
    return arrays;
}

struct Outputs {
    std::vector<std::vector<double>> values;
    std::vector<double> scales;
};

Outputs joined(const Program &fused, const std::vector<Array> &arrays) {
    Outputs outputs;
    for (size_t i = 0; i < arrays.size(); i++) {
        if (!fused.results[i].part.is_scale()) {
            outputs.values.push_back(arrays[i].data);
            continue;
        }
        outputs.scales.push_back(arrays[i].data[0]);
        for (double &element : outputs.values.back()) element *= outputs.scales.back();
    }
    return outputs;
}

void expect_near(const std::vector<double> &got, const std::vector<double> &expected, double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++) {
        const bool is_same = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]));
        EXPECT_TRUE(is_same || std::fabs(got[i] - expected[i]) <= tolerance * std::fabs(expected[i]))
            << "element " << i << ": " << got[i] << ", expected " << expected[i];
    }
}

enum class How { interpreted, compiled };

class Upstream : public testing::Test {
public:
    Upstream(const UpstreamCase &upstream_case, How how) : case_(upstream_case), how_(how) {}

    void TestBody() override {
        const Program program = parse_program(case_.text, std::string(case_.name) + ".scl");
        const auto policies = std::filesystem::path(SCALIDE_RULES_DIR) / "policies";
        Policy policy = load_policy(policies / (std::string(case_.policy) + ".yaml"));
        policy.scales.rounding = parse_rounding(case_.rounding).value();
        const Outputs got = how_ == How::compiled ? run_compiled(program, policy) : run_interpreted(program, policy);
        ASSERT_EQ(got.values.size(), case_.values.size());
        for (size_t i = 0; i < got.values.size(); i++) expect_near(got.values[i], case_.values[i], case_.tolerance);
        for (const double scale : got.scales) EXPECT_TRUE(std::isfinite(scale));
        if (!case_.scales.empty()) {
            EXPECT_EQ(got.scales, case_.scales);
        }
    }

private:
    Outputs run_interpreted(const Program &program, const Policy &policy) const {
        const Program fused = compile(program, rulebook(), {policy, target_facts({}), {}});
        return joined(fused, interpret(fused, arguments_of(fused, case_.inputs), rulebook(), Mode::stored));
    }
    Outputs run_compiled(const Program &program, const Policy &policy) const {
        const CompiledProgram compiled(program, rulebook(), policy);
        return joined(compiled.fused(), compiled.run(arguments_of(compiled.fused(), case_.inputs)));
    }

    const UpstreamCase &case_;
    How how_;
};

/// The table of README.md has a row for each case, and no other.
class Table : public testing::Test {
public:
    void TestBody() override {
        std::ifstream file(SCALIDE_UPSTREAM_README);
        std::string line;
        std::vector<std::string> rows, names;
        while (std::getline(file, line)) {
            if (!line.starts_with("| `")) continue;
            std::istringstream words(line.substr(0, line.find('|', 1)));
            for (std::string word; words >> word;)
                if (word.starts_with('`')) rows.push_back(word.substr(1, word.rfind('`') - 1));
        }
        for (const UpstreamCase &upstream_case : upstream_cases()) names.emplace_back(upstream_case.name);
        EXPECT_EQ(rows, names);
    }
};

} // namespace

} // namespace scalide

int main(int argc, char **argv) {
    using namespace scalide;
    testing::InitGoogleTest(&argc, argv);
    const auto add = [](const std::string &name, auto make) {
        testing::RegisterTest("upstream", name.c_str(), nullptr, nullptr, __FILE__, __LINE__, make);
    };
    for (const UpstreamCase &upstream_case : upstream_cases()) {
        const std::string name = upstream_case.name;
        add(name + ".interpreted", [&]() -> testing::Test * { return new Upstream(upstream_case, How::interpreted); });
        add(name + ".compiled", [&]() -> testing::Test * { return new Upstream(upstream_case, How::compiled); });
    }
    add("table_lists_every_case", []() -> testing::Test * { return new Table; });
    return RUN_ALL_TESTS();
}

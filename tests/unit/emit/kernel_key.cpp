#include "emit/compile_kernel.h"
#include "emit/files.h"
#include "emit/kernel_facts.h"
#include "emit/library.h"
#include "ir/text.h"
#include "schedules/tables/tiles_text.h"
#include <gtest/gtest.h>

using namespace scalide;

namespace {

const Halide::Target target = parse_target("host");

std::vector<Program> kernels_of_a_model() {
    const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    const std::string file = std::string(SCALIDE_TESTS_DIR) + "/emit/mlp.scl";
    const Policy policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/f8_scaled.yaml");
    return compile(parse_program(read_file(file), file), rulebook, {policy, target_facts({}), {}}).programs;
}

std::string kind_of(const Program &kernel) { return kernel.attributes.at("kind").word; }

/// Kernels whose key is another one with these hashes.
std::vector<std::string> changed_kinds(const std::vector<Program> &kernels, const LoweringHashes &hashes) {
    std::vector<std::string> kinds;
    for (const Program &kernel : kernels)
        if (lowering_key(kernel, target, hashes) != lowering_key(kernel, target, lowering_hashes())) kinds.push_back(kind_of(kernel));
    return kinds;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
    const size_t at = text.find(from);
    if (at == std::string::npos) throw InternalError(from + " is not in the text");
    return text.replace(at, from.size(), to);
}

} // namespace

TEST(emit, changed_schedule_recompiles_the_kernels_of_its_kind) {
    const std::vector<Program> kernels = kernels_of_a_model();
    for (const char *kind : {"scalar", "map", "row", "column", "full", "transpose", "contract"}) {
        LoweringHashes hashes = lowering_hashes();
        ASSERT_TRUE(hashes.by_kind.contains(kind)) << kind << " has sources of its own";
        hashes.by_kind[kind] += "changed";
        const size_t expected = std::ranges::count(kernels, kind, kind_of);
        EXPECT_EQ(changed_kinds(kernels, hashes), std::vector<std::string>(expected, kind));
    }
    EXPECT_GE(std::ranges::count(kernels, "contract", kind_of), 3);
    EXPECT_GE(std::ranges::count(kernels, "scalar", kind_of), 1);
}

TEST(emit, changed_common_source_recompiles_all_kernels) {
    const std::vector<Program> kernels = kernels_of_a_model();
    LoweringHashes hashes = lowering_hashes();
    hashes.common += "changed";
    EXPECT_EQ(changed_kinds(kernels, hashes).size(), kernels.size());
}

TEST(emit, kind_without_sources_of_its_own_depends_on_all) {
    const std::vector<Program> kernels = kernels_of_a_model();
    LoweringHashes hashes = lowering_hashes(), changed;
    hashes.by_kind.erase("contract");
    changed = hashes;
    changed.by_kind["map"] += "changed";
    for (const Program &kernel : kernels) {
        const bool depends = kind_of(kernel) == "contract" || kind_of(kernel) == "map";
        EXPECT_EQ(lowering_key(kernel, target, hashes) != lowering_key(kernel, target, changed), depends) << kind_of(kernel);
    }
}

TEST(emit, kernels_of_two_targets_have_two_keys) {
    const Halide::Target other = target.with_feature(Halide::Target::Profile); // of no budget
    for (const Program &kernel : kernels_of_a_model())
        EXPECT_NE(lowering_key(kernel, target, lowering_hashes()), lowering_key(kernel, other, lowering_hashes())) << kind_of(kernel);
}

TEST(emit, changed_tile_numbers_recompile_the_kernels_that_use_them) {
    const std::string table =
        replaced(tiles_text, "{task: 16384, lanes: 16, line: 32}", "{task: 8192, lanes: 16, line: 32}"); // the row of kind row
    size_t changed = 0, rows = 0;
    for (const Program &kernel : kernels_of_a_model()) {
        const LoweredKernel lowered = lower(canonical(kernel), target, choose_budgets(target));
        const bool differs = kernel_key("", choose_tiles(lowered, target), "") != kernel_key("", choose_tiles(lowered, target, table), "");
        EXPECT_EQ(differs, kind_of(kernel) == "row");
        changed += differs;
        rows += kind_of(kernel) == "row";
    }
    EXPECT_GT(rows, 0u);
    EXPECT_EQ(changed, rows);
}

TEST(emit, facts_of_a_kernel_are_read_back) {
    for (const Program &kernel : kernels_of_a_model()) {
        const LoweredKernel lowered = lower(canonical(kernel), target, choose_budgets(target));
        const std::string text = to_json({choose_tiles(lowered, target), call_order(lowered)});
        const auto facts = parse_facts(text);
        ASSERT_TRUE(facts) << text;
        EXPECT_EQ(to_json(*facts), text);
        EXPECT_EQ(facts->tiles, choose_tiles(lowered, target));
        EXPECT_EQ(facts->call_order.size(), call_order(lowered).size());
    }
    EXPECT_FALSE(parse_facts(""));
    EXPECT_FALSE(parse_facts("{\"tiles\": {}}"));
    EXPECT_FALSE(parse_facts("{\"tiles\": {}, \"operands\": [[0, 0, \"\", \"f31[]\"]]}"));
}

#include "emit/plan_text.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

/// A program with a scan and a switch without steps.
BuiltPrograms programs_with_blocks() {
    BuiltForm built;
    Plan &plan = built.plan;
    plan.name = "net";
    plan.symbols = {{"n", 1, 64, 1}};
    const Extent n = Extent::symbol("n");
    const auto add = [&](const char *name, const Type &type) {
        PlanBuffer buffer;
        buffer.name = name;
        buffer.type = type;
        plan.buffers.push_back(buffer);
    };
    add("x", {Dtype::f32, {n, Extent(4)}});
    for (const char *name : {"row", "h0", "spare", "h"}) add(name, {Dtype::f32, {Extent(4)}});
    add("i", {Dtype::i32, {}});
    PlanBlock scan;
    scan.name = "scan h";
    scan.location = {"dir/net.scl", 7};
    scan.length = n;
    scan.step = 5;
    scan.reverse = true;
    scan.rows = {{1, 0, false}};
    scan.carries = {{2, 3, 4}};
    scan.results = {4};
    PlanBlock choice;
    choice.name = "switch y";
    choice.kind = BlockKind::switch_branch;
    choice.parent = 0;
    choice.condition = 5;
    choice.branch_ends = {0, 0};
    plan.blocks = {scan, choice};
    MachineForms<BuiltForm> machine;
    machine.main = built;
    return {{machine}};
}

} // namespace

TEST(emit, plans_list_their_blocks) {
    const std::string source = plan_source(programs_with_blocks());
    EXPECT_NE(source.find(R"(static const scalide_row net_block0_rows[] = {
    {1, 0, 0},
};
static const scalide_carry net_block0_carries[] = {
    {2, 3, 4},
};
static const int32_t net_block0_results[] = {
    4,
};
static const int32_t net_block1_branches[] = {
    0, 0,
};
static const scalide_block net_blocks[] = {
    {"scan h", "net.scl:7", 0, -1, 0, 0, net_shape2, -1, 5, 1, 0, 0, 0, 0, 1, 1, 1, net_block0_rows, net_block0_carries, net_block0_results},
    {"switch y", 0, 2, 0, 0, 0, 0, 5, -1, 0, 0, 0, net_block1_branches, 2, 0, 0, 0, 0, 0, 0},
};
)"),
              std::string::npos)
        << source;
    EXPECT_NE(source.find("2, net_blocks, 0};"), std::string::npos) << source;
}

TEST(emit, manifests_list_their_blocks) {
    const auto manifest = nlohmann::json::parse(plan_manifest("net", programs_with_blocks(), {}));
    EXPECT_EQ(manifest["programs"][0]["blocks"], nlohmann::json::parse(R"([
        {"name": "scan h", "kind": "loop", "parent": -1, "first_step": 0, "end_step": 0, "line": 7, "length": "n", "step": "i", "reverse": true,
         "rows": [{"buffer": "row", "of": "x", "is_written": false}], "carries": [{"init": "h0", "before": "spare", "after": "h"}],
         "results": ["h"]},
        {"name": "switch y", "kind": "switch", "parent": 0, "first_step": 0, "end_step": 0, "condition": "i", "branch_ends": [0, 0]}])"));
}

} // namespace scalide

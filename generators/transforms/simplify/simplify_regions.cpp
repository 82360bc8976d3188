#include "transforms/simplify/simplify_regions.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "transforms/simplify/region_rules.h"
#include <algorithm>

namespace scalide {

namespace {

/// Applies a change to each node with regions, once from first to last.
class RegionsRewriter {
public:
    RegionsRewriter(const Program &source, const Rulebook &rulebook, const ChangeRegions &change)
        : change_(change), rewriter_(source), builder_(rulebook, rewriter_.result()), facts_(rewriter_.result()),
          uses_(count_uses(source)) {}

    Program run() {
        rewriter_.copy_arguments();
        for (const Node &node : rewriter_.source().nodes) {
            const bool has_rules = node.op == "scan" || node.op == "while" || node.op == "switch";
            if (!has_rules || !changes(node)) rewriter_.copy(node);
        }
        rewriter_.copy_results();
        return rewriter_.take();
    }
    bool has_changed() const { return has_changed_; }

private:
    bool changes(const Node &node) {
        Node fresh = node;
        fresh.operands = rewriter_(node.operands);
        std::vector<bool> is_read;
        std::vector<Value> made;
        for (const ValueId result : node.results) {
            is_read.push_back(uses_[result] > 0);
            made.push_back(rewriter_.source().values[result]);
        }
        builder_.stamp_like(node);
        RegionEdit edit(fresh, is_read, builder_, facts_);
        if (!change_(edit)) return false;
        has_changed_ = true;
        const std::vector<ValueId> results = edit.finish(made);
        for (size_t i = 0; i < results.size(); i++) rewriter_.map(node.results[i], results[i]);
        return true;
    }

    const ChangeRegions &change_;
    Rewriter rewriter_;
    Builder builder_;
    Facts facts_;
    std::vector<int> uses_;
    bool has_changed_ = false;
};

} // namespace

Program edit_regions(Program program, const Rulebook &rulebook, const ChangeRegions &change) {
    if (!has_regions(program)) return program;
    for (bool again = true; again;) {
        const Program live = remove_dead_nodes(std::move(program));
        RegionsRewriter rewriter(live, rulebook, change);
        program = rewriter.run();
        again = rewriter.has_changed();
    }
    return program;
}

Program simplify_regions(Program program, const Rulebook &rulebook) {
    return edit_regions(std::move(program), rulebook, apply_region_rules);
}

} // namespace scalide

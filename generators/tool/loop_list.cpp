#include "tool/loop_list.h"
#include "ir/regions.h"
#include "tool/common.h"
#include "transforms/fusion/split_regions.h"
#include <fmt/format.h>

namespace scalide {

namespace {

Extent bytes_of(const Type &type) { return element_count(type.shape) * Extent(size_of(type.dtype)); }

class LoopList {
public:
    explicit LoopList(bool runs_on_gpu) : runs_on_gpu_(runs_on_gpu) {}

    /// Adds the lines of a program, whose first kernel has the next number.
    void add(const Program &program, size_t depth) {
        for (const Node &node : program.nodes) {
            if (node.regions.empty()) kernels_++;
            if (node.op == "straight") add(*node.regions[0], depth);
            if (!node.regions.empty() && node.op != "straight") add_node(program, node, depth);
        }
    }

    std::string take() { return std::move(lines_); }

private:
    void add_node(const Program &program, const Node &node, size_t depth) {
        const size_t first = kernels_, place = lines_.size();
        for (const Region &region : node.regions) add(*region, depth + 1);
        const std::string name = node.op + " " + name_to_string(program.value_name(node.results[0]));
        const std::string kernels = kernels_ == first ? "no kernels" : fmt::format("kernels {} to {}", first, kernels_ - 1);
        lines_.insert(place, fmt::format("{:{}}{} ({}): {}, {}{}\n", "", 2 * depth + 2, name, short_place(node.location, "-"), steps(node),
                                         kernels, find_region_kind(node.op)->is_loop ? arrays(program, node) : ""));
    }

    std::string steps(const Node &node) const {
        const std::string by = runs_on_gpu_ ? ", run by the host" : "";
        if (node.op == "switch") return fmt::format("one of {} branches{}", node.regions.size(), by);
        const auto length = node.attributes.find("length"), most = node.attributes.find("max_steps");
        if (length != node.attributes.end())
            return fmt::format("{}{} steps{}", has_flag(node, "count") ? "at most " : "", to_string(length->second.integer), by);
        if (most != node.attributes.end()) return fmt::format("at most {} steps{}", to_string(most->second.integer), by);
        return "any number of steps" + by;
    }

    static std::string arrays(const Program &program, const Node &node) {
        const Program &body = *node.regions.back();
        Extent twice, once, stacks;
        for (size_t r = 0; r < node.results.size(); r++) {
            const Extent bytes = bytes_of(program.type(node.results[r]));
            if (body.results[r].argument < 0)
                stacks = stacks + bytes;
            else if (is_updated_in_place(body, body.results[r]))
                once = once + bytes;
            else
                twice = twice + bytes;
        }
        std::string text;
        if (twice != Extent(0)) text += fmt::format(", carries {} bytes in two arrays", to_string(twice));
        if (once != Extent(0)) text += fmt::format(", updates {} bytes in place", to_string(once));
        if (stacks != Extent(0)) text += fmt::format(", stacks {} bytes", to_string(stacks));
        return text;
    }

    const bool runs_on_gpu_;
    size_t kernels_ = 0;
    std::string lines_;
};

} // namespace

std::string list_loops(const Program &fused, bool runs_on_gpu) {
    LoopList list(runs_on_gpu);
    list.add(fused, 0);
    return list.take();
}

} // namespace scalide

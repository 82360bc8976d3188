#include "tool/loop_list.h"
#include "ir/regions.h"
#include "kinds/small.h"
#include "tool/common.h"
#include "tool/tables.h"
#include "transforms/fusion/split_regions.h"
#include <fmt/format.h>

namespace scalide {

namespace {

Extent bytes_of(const Type &type) { return element_count(type.shape) * Extent(size_of(type.dtype)); }

class LoopList {
public:
    LoopList(const Program &fused, bool runs_on_gpu) : fused_(fused), runs_on_gpu_(runs_on_gpu) {}

    /// Adds the lines of a program, whose first kernel has the next number.
    void add(const Program &program, size_t depth) {
        for (const Node &node : program.nodes) {
            if (node.op == "call") kernels_++;
            if (node.op == "straight") add(*node.regions[0], depth);
            if (!node.regions.empty() && node.op != "straight") add_node(program, node, depth);
        }
    }

    std::string take() { return std::move(lines_); }

private:
    void add_node(const Program &program, const Node &node, size_t depth) {
        const size_t first = kernels_, place = lines_.size();
        std::string kernels, why;
        for (const Region &region : node.regions) {
            const size_t begin = kernels_;
            add(*region, depth + 1);
            if (node.op == "while") kernels += (kernels.empty() ? "test: " : ", step: ") + name_kernels(begin);
            if (!runs_on_gpu_ && find_region_kind(node.op)->is_loop && kernels_ - begin > 1) why = why_not_one(*region);
        }
        const std::string name = node.op + " " + name_to_string(program.value_name(node.results[0]));
        kernels = (node.op == "while" ? kernels : name_kernels(first)) + why;
        lines_.insert(place, fmt::format("{:{}}{} ({}): {}, {}{}\n", "", 2 * depth + 2, name, short_place(node.location, "-"), steps(node),
                                         kernels, find_region_kind(node.op)->is_loop ? arrays(program, node) : ""));
    }

    std::string name_kernels(size_t first) const {
        if (kernels_ == first) return "no kernels";
        return kernels_ == first + 1 ? fmt::format("one kernel ({})", first) : fmt::format("kernels {} to {}", first, kernels_ - 1);
    }

    /// Returns why the kernels of a loop's step are not one: an operator that no small kernel contains.
    std::string why_not_one(const Program &step) const {
        for (const Node &node : step.nodes)
            for (const Node &call : node.op == "straight" ? node.regions[0]->nodes : std::vector<Node>())
                if (const std::string why = why_not_small(call); !why.empty()) return " (not one, because " + why + ")";
        const bool is_straight = std::ranges::all_of(step.nodes, [](const Node &node) { return node.op == "straight"; });
        return is_straight ? " (not one, because it would have too many operators or overwrite a carry)" : "";
    }

    std::string why_not_small(const Node &call) const {
        const std::string &name = call.attributes.at("program").word;
        const auto kernel = std::ranges::find(fused_.programs, name, &Program::name);
        for (const Node &node : kernel->nodes)
            if (const std::string why = scalide::why_not_small(*kernel, node); !why.empty())
                return fmt::format("{} of {} is not {}", node.op, name, why);
        return "";
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

    const Program &fused_;
    const bool runs_on_gpu_;
    size_t kernels_ = 0;
    std::string lines_;
};

} // namespace

std::string list_loops(const Program &fused, bool runs_on_gpu) {
    LoopList list(fused, runs_on_gpu);
    list.add(fused, 0);
    return list.take();
}

} // namespace scalide

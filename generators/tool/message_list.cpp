#include "tool/message_list.h"
#include "expr/base_operators.h"
#include "ir/words.h"
#include "tool/tables.h"
#include <fmt/format.h>

namespace scalide {

namespace {

/// Appends the lines of a program, whose first kernel has number `kernels`.
void add_messages(const Program &program, size_t &kernels, std::string &lines) {
    for (const Node &node : program.nodes) {
        kernels += node.op == "call";
        for (const Region &region : node.regions) add_messages(*region, kernels, lines);
        if (!is_collective(node.op)) continue;
        std::string arrays;
        for (const ValueId value : node.operands)
            arrays += (arrays.empty() ? "" : ", ") + name_to_string(program.value_name(value)) + ": " + to_string(program.type(value));
        const std::string when = kernels == 0 ? "first" : fmt::format("after kernel {}", kernels - 1);
        lines += fmt::format("  {}: {} over {} ({}): {}\n", when, node.op, to_string(node.attributes.at("group").integer),
                             short_place(node.location, "-"), arrays);
    }
}

} // namespace

std::string list_messages(const Program &fused) {
    size_t kernels = 0;
    std::string lines;
    add_messages(fused, kernels, lines);
    return lines;
}

} // namespace scalide

#include "ir/rewrite.h"
#include "transforms/normalize_dot.h"
#include "transforms/passes.h"
#include "transforms/splice.h"

namespace scalide {

namespace {

/// How a node is written in base operators; empty when it already is one.
Remake remake_of(const Program &program, const Node &node, const Rulebook &rulebook) {
    if (!rulebook.rule(node.op, node.location).is_base) return expand_value;
    if (node.op != "dot_general") return {};
    if (is_integer_dot(program, node)) return dot_as_sum_of_pairs;
    if (is_vector_dot(program, node)) return dot_as_sum;
    if (!is_normal_dot(program, node)) return normalize_dot;
    return {};
}

} // namespace

Program expand(const Program &program, const Rulebook &rulebook) {
    Program expanded = program;
    for (size_t i = 0; i < expanded.nodes.size();) {
        const Remake remake = remake_of(expanded, expanded.nodes[i], rulebook);
        if (remake) {
            replace_node(expanded, rulebook, i, remake); // what it made is looked at next
        } else {
            i++;
        }
    }
    return remove_dead_nodes(expanded);
}

} // namespace scalide

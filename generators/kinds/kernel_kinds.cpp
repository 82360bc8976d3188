#include "kinds/kernel_kinds.h"
#include "kinds/kernel_view.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

struct Kind {
    std::string_view name;
    std::string (*why_not)(const KernelView &);
};

constexpr Kind kinds[] = {
    {"scalar", why_no_scalar}, {"map", why_no_map},         {"transpose", why_no_transpose}, {"tiled", why_no_tiled},
    {"row", why_no_row},       {"column", why_no_column},   {"full", why_no_full},           {"contract", why_no_contract},
    {"scan", why_no_scan},     {"scatter", why_no_scatter}, {"sort", why_no_sort},           {"window", why_no_window},
    {"small", why_no_small},
};

std::string why_no_kernel(const Program &program) {
    if (!program.programs.empty()) return program.name + ".programs: a kernel must have no sub-programs, got " + program.programs[0].name;
    for (const Node &node : program.nodes) {
        if (find_base_operator(node.op) == nullptr) return node.op + ".op: a kernel must consist of base operators, got " + node.op;
        if (node.results.size() != 1)
            return node.op + ".results: the number of results must be 1, got " + std::to_string(node.results.size());
    }
    return "";
}

/// Arithmetic is in 32 bits (f64 in rank 0). Low-precision floats are only moved and converted.
std::string why_no_arithmetic(const KernelView &kernel) {
    const Program &program = kernel.program();
    for (const Node &node : kernel.nodes()) {
        const BaseOperator &op = base_operator(node.op);
        const bool is_conversion = converts(op), moves = moves_elements(op);
        const auto narrow = std::ranges::find_if(node.operands, [&](ValueId operand) { return is_narrow(program.type(operand).dtype); });
        if (narrow != node.operands.end() && !is_conversion && !moves)
            return say(kernel, node, "must read an 8- or 16-bit value through a convert_element_type", program.value_name(*narrow));
        if (is_narrow(program.type(node.results[0]).dtype) && !is_conversion && !(moves && narrow != node.operands.end()))
            return say(kernel, node, "must be a convert_element_type, because its result has 8 or 16 bits", node.op);
    }
    return "";
}

/// `lower` counts rows and columns, and an axis of extent 1 is neither.
std::string why_no_reductions(const KernelView &kernel) {
    for (const Node &node : kernel.nodes()) {
        if (KernelView::walk(node) != Shape::reduce) continue;
        for (const int64_t axis : reduced_axes(node))
            if (kernel.program().type(node.operands[0]).shape[axis] == Extent(1))
                return say(kernel, node, "must not reduce an axis of extent 1", "axis " + std::to_string(axis));
    }
    return "";
}

/// If an inout argument is overwritten, its element i may be read only to compute element i of results with its shape. All nodes between
/// must be elementwise. A contract kernel may also reduce all of its elements, because it does so before it overwrites them. A scatter may
/// update the argument, if its indices and updates do not depend on the argument.
std::string why_no_overwriting(const KernelView &kernel, const Result &result) {
    const Program &program = kernel.program();
    const Argument &argument = program.arguments[result.argument];
    const bool is_contract = program.attributes.at("kind").word == "contract";
    std::vector<bool> holds(program.values.size()); // by value: computed from the old contents
    holds[argument.value] = true;
    for (const Node &node : kernel.nodes()) {
        if (std::ranges::none_of(node.operands, [&](ValueId operand) { return holds[operand]; })) continue;
        if (is_contract && KernelView::walk(node) == Shape::reduce && kernel.folds_all(node)) continue;
        const bool is_update =
            KernelView::walk(node) == Shape::scatter && node.operands[0] == argument.value &&
            std::none_of(node.operands.begin() + 1, node.operands.end(), [&](ValueId operand) { return holds[operand]; });
        const bool is_in_place = is_update || (!KernelView::is_walk_of_its_own(node) && access_of(program, node) == Access::same &&
                                               kernel.shape(node) == kernel.shape(argument.value));
        if (!is_in_place)
            return say(kernel, node,
                       "must be elementwise, because it reads " + program.value_name(argument.value) +
                           ", which the kernel updates in place",
                       node.op + " " + say_shape(kernel.shape(node)));
        holds[node.results[0]] = true;
    }
    return "";
}

std::string why_no_overwriting(const KernelView &kernel) {
    for (const Result &result : kernel.program().results) {
        if (result.argument < 0) continue;
        if (const std::string why = why_no_overwriting(kernel, result); !why.empty()) return why;
    }
    return "";
}

} // namespace

std::string why_illegal(const Program &program) {
    if (const std::string why = why_no_kernel(program); !why.empty()) return why;
    const auto attribute = program.attributes.find("kind");
    const std::string name = attribute == program.attributes.end() ? "none" : attribute->second.word;
    const auto *kind = std::ranges::find(kinds, name, &Kind::name);
    if (kind == std::end(kinds)) return program.name + ".kind: must be a kind of kernel, got " + name;
    const KernelView kernel(program);
    for (const auto &why_not :
         {why_no_arithmetic, why_no_reductions, +[](const KernelView &k) { return why_no_overwriting(k); }, kind->why_not})
        if (const std::string why = why_not(kernel); !why.empty()) return why;
    return "";
}

std::vector<std::string> kernel_kinds() {
    std::vector<std::string> names;
    for (const Kind &kind : kinds) names.emplace_back(kind.name);
    return names;
}

} // namespace scalide

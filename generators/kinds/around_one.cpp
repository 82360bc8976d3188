#include "kinds/dot_general.h"
#include "kinds/kernel_view.h"
#include <algorithm>

// Kinds with one central operator: contract (a dot_general, with reductions of its operands and results), scan, scatter, sort, window.
// Nodes before it are elementwise, movement and sources. Nodes after it are elementwise on its result shape.
namespace scalide {

namespace {

std::string why_not_around(const KernelView &kernel, Shape shape, std::string_view what) {
    const auto is_one = [&](const Node &node) { return KernelView::walk(node) == shape; };
    const auto count = std::ranges::count_if(kernel.nodes(), is_one);
    if (count == 1) return "";
    return kernel.program().name + ": must have one " + std::string(what) + ", got " + std::to_string(count);
}

/// Checks the nodes after the central operator. Operators of the class `also` are allowed in addition.
std::string why_no_epilogue(const KernelView &kernel, Shape one, Shape also) {
    for (const Node &node : kernel.nodes()) {
        const Shape walk = KernelView::walk(node);
        if (walk == one || walk == also) continue;
        if (KernelView::is_walk_of_its_own(node)) return say(kernel, node, "must be elementwise, movement or a source", node.op);
        if (!kernel.reads_after_in_place(node)) return say(kernel, node, "must read its operands at the same index", node.op);
    }
    return "";
}

std::string why_not_around_one(const KernelView &kernel, Shape shape, std::string_view what) {
    const std::string why = why_not_around(kernel, shape, what);
    return why.empty() ? why_no_epilogue(kernel, shape, shape) : why;
}

/// Checks that a dot_general has at most one axis in each group.
std::string why_no_dot(const KernelView &kernel, const Node &dot) {
    const auto axes = several_axes_of_a_kind(kernel.program(), dot);
    if (!axes) return "";
    return say(kernel, dot, "must have at most one axis of each kind",
               std::to_string(axes->batch) + " batch, " + std::to_string(axes->contracting) + " contracting, " +
                   std::to_string(axes->free) + " free");
}

} // namespace

std::string why_no_contract(const KernelView &kernel) {
    if (const std::string why = why_not_around(kernel, Shape::contract, "dot_general"); !why.empty()) return why;
    const Node &dot = *std::ranges::find_if(kernel.nodes(), [](const Node &node) { return KernelView::walk(node) == Shape::contract; });
    if (const std::string why = why_no_dot(kernel, dot); !why.empty()) return why;
    for (const Node &node : kernel.nodes()) {
        if (KernelView::walk(node) != Shape::reduce) continue;
        const bool is_total = kernel.folds_all(node) && kernel.shape(node.operands[0]) == kernel.shape(dot);
        if (!is_total && !sums_operand(node, dot))
            return say(kernel, node, "must reduce all of " + say_shape(kernel.shape(dot)) + ", or sum an operand over the contracted axis",
                       say_shape(kernel.shape(node.operands[0])) + " to " + say_shape(kernel.shape(node)));
    }
    const auto is_stored = [&](const Result &result) { return kernel.shape(result.value) == kernel.shape(dot); };
    const auto is_total = [&](const Result &result) {
        return std::ranges::any_of(
            kernel.nodes(), [&](const Node &node) { return node.results[0] == result.value && KernelView::walk(node) == Shape::reduce; });
    };
    for (const Result &result : kernel.program().results)
        if (!kernel.is_after(result.value) && !is_stored(result) && !is_total(result))
            return kernel.program().name + "." + result.name + ": must depend on the dot_general, have its shape or be a reduction, got " +
                   say_shape(kernel.shape(result.value));
    if (const std::string why = why_no_epilogue(kernel, Shape::contract, Shape::reduce); !why.empty()) return why;
    if (std::ranges::any_of(kernel.program().results, is_stored)) return "";
    return kernel.program().name + ": one result must have the shape " + say_shape(kernel.shape(dot));
}

std::string why_no_scan(const KernelView &kernel) { return why_not_around_one(kernel, Shape::scan, "scan"); }
std::string why_no_scatter(const KernelView &kernel) { return why_not_around_one(kernel, Shape::scatter, "scatter"); }
std::string why_no_sort(const KernelView &kernel) { return why_not_around_one(kernel, Shape::sort, "argsort"); }
std::string why_no_window(const KernelView &kernel) { return why_not_around_one(kernel, Shape::window, "window operator"); }

} // namespace scalide

#include "ir/shape.h"
#include "kinds/kernel_view.h"
#include <algorithm>

// Kinds that compute each element independently: scalar, map, transpose, tiled. A tiled kernel may also reduce its values to one number.
namespace scalide {

namespace {

std::string why_not_elementwise(const KernelView &kernel) {
    for (const Node &node : kernel.nodes())
        if (KernelView::is_walk_of_its_own(node)) return say(kernel, node, "must be elementwise, movement or a source", node.op);
    return "";
}

/// Tiles have at most three axes.
constexpr size_t most_tiled_axes = 3;

bool is_permuted(Extents one, Extents other) {
    std::sort(one.begin(), one.end());
    std::sort(other.begin(), other.end());
    return one == other;
}

bool moves_innermost(const Program &program, const Node &node) {
    return node.op == "transpose" && to_integers(node.attributes.at("permutation")).back() + 1 != program.type(node.operands[0]).rank();
}

} // namespace

std::string why_no_scalar(const KernelView &kernel) {
    for (const Value &value : kernel.program().values)
        if (!value.type.is_scalar()) return kernel.program().name + "." + value.name + ": must be a scalar, got " + to_string(value.type);
    return why_not_elementwise(kernel);
}

std::string why_no_map(const KernelView &kernel) { return why_not_elementwise(kernel); }

std::string why_no_transpose(const KernelView &kernel) {
    const Program &program = kernel.program();
    if (const std::string why = why_not_elementwise(kernel); !why.empty()) return why;
    if (program.results.size() != 1)
        return program.name + ".results: the number of results must be 1, got " + std::to_string(program.results.size());
    int transposes = 0;
    for (const Node &node : kernel.nodes()) {
        if (access_of(program, node) == Access::same || node.op == "broadcast_in_dim") continue;
        if (!moves_innermost(program, node)) return say(kernel, node, "must be a transpose of the innermost axis", node.op);
        transposes++;
    }
    return transposes == 1 ? "" : program.name + ": must have one transpose, got " + std::to_string(transposes);
}

std::string why_no_tiled(const KernelView &kernel) {
    const Program &program = kernel.program();
    const Extents *shape = nullptr; // shape that the tiles cover
    for (const Result &result : program.results) {
        if (result.argument >= 0) return program.name + "." + result.name + ": must not overwrite an argument, got inout";
        const Extents &own = kernel.shape(result.value);
        if (own.empty()) continue;
        shape = shape ? shape : &own;
        if (own.size() > most_tiled_axes || own.size() != program.type(result.value).shape.size() || !is_permuted(own, *shape))
            return program.name + "." + result.name + ": must have the shape of the tiles, " + say_shape(*shape) +
                   ", at most 3 axes and none of extent 1, got " + to_string(program.type(result.value));
    }
    for (const Node &node : kernel.nodes()) {
        if (!KernelView::is_walk_of_its_own(node)) {
            if (kernel.is_after(node) && !kernel.shape(node).empty())
                return say(kernel, node, "must be a scalar, because it depends on a reduction", say_shape(kernel.shape(node)));
        } else if (!kernel.folds_all(node) || !folds_in_any_order(base_operator(node.op))) {
            return say(kernel, node, "must reduce all elements with an operator that gives the same bits in every order",
                       node.op + " to " + say_shape(kernel.shape(node)));
        }
    }
    return "";
}

} // namespace scalide

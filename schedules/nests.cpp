#include "schedules/nests.h"
#include "expr/base_operators.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;
using Halide::Var;

Halide::Stage loop_nest(Halide::Func func) { return func.has_update_definition() ? func.update() : Halide::Stage(func); }

std::vector<Expr> bound_loops(const LoweredKernel &kernel, const KernelOutput &output) {
    const Extents &shape = kernel.program.type(kernel.program.results[output.results[0]].value).shape;
    Halide::Func func = output.func;
    std::vector<Expr> extents;
    for (int d = 0; d < int(shape.size()); d++) {
        extents.push_back(to_expr(shape[shape.size() - 1 - d], kernel));
        func.bound(func.args()[d], 0, extents.back());
    }
    return extents;
}

std::optional<Var> fuse_loops(Halide::Stage nest, const std::vector<Var> &loops) {
    if (loops.empty()) {
        return std::nullopt;
    }
    Var fused = loops[0];
    for (size_t i = 1; i < loops.size(); i++) {
        nest.fuse(fused, loops[i], fused);
    }
    return fused;
}

bool moves_elements(const Program &kernel) {
    return std::ranges::any_of(kernel.nodes, [](const Node &node) {
        return find_base_operator(node.op)->shape == Shape::movement && node.op != "broadcast_in_dim" && node.op != "reshape";
    });
}

} // namespace scalide

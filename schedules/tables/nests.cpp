#include "schedules/tables/nests.h"
#include "expr/base_operators.h"
#include "lower/rows/row_sums.h"
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

bool sums_rows(const LoweredKernel &kernel) { return std::get<RowStages>(kernel.stages).sums.running.defined(); }

bool is_sum_of_rows(const LoweredKernel &kernel, const KernelOutput &output) {
    const Extents &shape = kernel.program.type(kernel.program.results[output.results[0]].value).shape;
    return sums_rows(kernel) && shape == Extents{std::get<RowStages>(kernel.stages).columns};
}

Var block_row_loop() { return Var(block_row_name); }

void split_rows(const LoweredKernel &kernel, Halide::Func func, const Var &rows, const Var &block, int together) {
    const RowSumStages &sums = std::get<RowStages>(kernel.stages).sums;
    Halide::Stage nest = loop_nest(func);
    if (func.name() == sums.running.name()) {
        const Halide::RVar row(block_row_name);
        nest.reorder({func.args()[0], row, rows}).rename(rows, block);
        if (together > 1) nest.split(row, row, Halide::RVar("row_together"), together);
    } else {
        nest.split(rows, block, block_row_loop(), sums.block_rows, Halide::TailStrategy::GuardWithIf);
        if (together > 1) nest.split(block_row_loop(), block_row_loop(), Var("row_together"), together);
    }
    // The loop of an update's reduction is marked as not reorderable. Halide fuses loops only if they have the same mark, so all loops of
    // this name get it.
    Halide::Internal::Definition definition = func.has_update_definition() ? func.function().update(0) : func.function().definition();
    for (Halide::Internal::Dim &dim : definition.schedule().dims()) {
        if (Halide::Internal::ends_with(dim.var, block_row_name)) dim.dim_type = Halide::Internal::DimType::ImpureRVar;
    }
}

bool moves_elements(const Program &kernel) {
    return std::ranges::any_of(kernel.nodes, [](const Node &node) {
        return find_base_operator(node.op)->shape == Shape::movement && node.op != "broadcast_in_dim" && node.op != "reshape";
    });
}

} // namespace scalide

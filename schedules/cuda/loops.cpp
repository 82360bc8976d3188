#include "schedules/cuda/loops.h"

namespace scalide::cuda {
using Halide::Expr;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// The arguments that an update leaves as they are: those that it may run over in any order.
std::vector<Var> free_arguments(const Halide::Func &func, int update) {
    std::vector<Var> loops;
    for (const Expr &arg : func.update_args(update)) {
        const auto *var = arg.as<Halide::Internal::Variable>();
        if (var && !var->reduction_domain.defined() && !var->param.defined()) loops.emplace_back(var->name);
    }
    return loops;
}

} // namespace

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

void spread(Halide::Stage nest, const std::vector<Var> &loops, int threads) {
    Var block("block"), thread("thread");
    if (loops.empty()) {
        nest.gpu_single_thread();
        return;
    }
    Var line = loops[0];
    for (size_t i = 1; i < loops.size(); i++) nest.fuse(line, loops[i], line);
    nest.gpu_tile(line, block, thread, threads, TailStrategy::GuardWithIf);
}

void spread_all(Halide::Func func, int threads) {
    spread(func, func.args(), threads);
    for (int i = 0; i < func.num_update_definitions(); i++) spread(func.update(i), free_arguments(func, i), threads);
}

void keep(Halide::Func stage, const Tiles &tiles) {
    stage.compute_root();
    spread_all(stage, tiles.at("threads"));
}

void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles) {
    bound_loops(kernel, output);
    spread(loop_nest(output.func), output.func.args(), tiles.at("threads"));
}

} // namespace scalide::cuda

#include "schedules/gpu/loops.h"
#include "lower/rows/block_reduction.h"
#include <algorithm>

namespace scalide::gpu {
using Halide::Expr;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// Returns the arguments that an update does not change. It may run over them in any order.
std::vector<Var> free_arguments(const Halide::Func &func, int update) {
    std::vector<Var> loops;
    for (const Expr &arg : func.update_args(update)) {
        const auto *var = arg.as<Halide::Internal::Variable>();
        if (var && !var->reduction_domain.defined() && !var->param.defined()) loops.emplace_back(var->name);
    }
    return loops;
}

/// True if every update changes only the element at its own arguments.
bool only_folds(const Halide::Func &func) {
    for (int i = 0; i < func.num_update_definitions(); i++) {
        if (free_arguments(func, i).size() != func.args().size()) return false;
    }
    return func.has_update_definition();
}

} // namespace

void align_arrays(LoweredKernel &kernel) {
    for (Halide::ImageParam &input : kernel.inputs) {
        if (input.defined() && input.dimensions() > 0) input.set_host_alignment(array_alignment);
    }
    for (const KernelOutput &output : kernel.outputs) {
        for (Halide::OutputImageParam buffer : output.func.output_buffers()) {
            if (buffer.dimensions() > 0) buffer.set_host_alignment(array_alignment);
        }
    }
}

void read_ahead(Halide::Func func, int update) {
    const Halide::Internal::StageSchedule &schedule = func.function().update(update).schedule();
    for (size_t i = 0; i < schedule.rvars().size(); i++) {
        const auto known = Halide::Internal::as_const_int(Halide::Internal::simplify(schedule.rvars()[i].extent));
        if (known && *known <= 1) continue;
        for (const int reads : {8, 4, 2}) {
            if (!known || *known % reads != 0) continue;
            func.update(update).unroll(func.rvars(update)[i], reads);
            return;
        }
        return;
    }
}

void spread(Halide::Stage nest, const std::vector<Var> &loops, int threads) {
    if (loops.empty()) {
        nest.gpu_single_thread();
        return;
    }
    nest.gpu_tile(*fuse_loops(nest, loops), block_loop(), thread_loop(), threads, TailStrategy::GuardWithIf);
}

void spread_tiles(Halide::Stage nest, const std::vector<Var> &loops, int threads) {
    constexpr int line = 32; // adjacent elements in memory
    Var block_x("block_x"), block_y("block_y"), thread_y("thread_y");
    std::vector<Var> blocks(loops.begin(), loops.end());
    std::vector<Halide::VarOrRVar> order = {thread_loop()};
    blocks[0] = block_x;
    nest.split(loops[0], block_x, thread_loop(), loops.size() == 1 ? threads : line, TailStrategy::GuardWithIf);
    nest.gpu_threads(thread_loop());
    if (loops.size() > 1) {
        blocks[1] = block_y;
        order.emplace_back(thread_y);
        nest.split(loops[1], block_y, thread_y, threads / line, TailStrategy::GuardWithIf).gpu_threads(thread_y);
    }
    order.insert(order.end(), blocks.begin(), blocks.end());
    nest.reorder(order);
    spread_blocks(nest, blocks);
}

void compute_one(Halide::Func stage, const Halide::Func &reader) {
    stage.compute_at(reader, thread_loop());
    for (const Var &arg : stage.args()) stage.bound_extent(arg, 1); // otherwise Halide would put the stage into shared memory
}

void compute_one(const SumStages &sum, const Halide::Func &reader) {
    compute_one(sum.last, reader);
    if (!sum.before.defined()) return;
    compute_one(sum.before, reader);
    compute_block(sum);
}

void compute_block(const SumStages &sum) {
    Halide::Func block = sum.block;
    block.compute_at(Halide::LoopLevel(sum.before, sum.before.rvars()[0]));
    for (const Var &arg : block.args()) block.bound_extent(arg, 1);
}

void spread_all(Halide::Func func, int threads) {
    spread(func, func.args(), threads);
    for (int i = 0; i < func.num_update_definitions(); i++) spread(func.update(i), free_arguments(func, i), threads);
}

void keep(Halide::Func stage, const Tiles &tiles) {
    if (!only_folds(stage) || stage.args().size() > most_tile_loops) {
        stage.compute_root();
        spread_all(stage, tiles.at("threads"));
        return;
    }
    for (int i = 0; i < stage.num_update_definitions(); i++) read_ahead(stage, i);
    Halide::Func kept = stage.in();
    const std::vector<Var> loops = kept.args();
    kept.compute_root();
    if (loops.empty()) {
        spread_blocks(kept, {});
        stage.compute_at(kept, block_loop());
    } else {
        spread_tiles(kept, loops, tiles.at("threads"));
        compute_one(stage, kept);
    }
}

void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles) {
    bound_loops(kernel, output);
    spread(loop_nest(output.func), output.func.args(), tiles.at("threads"));
}

void schedule_elements_with(const LoweredKernel &kernel, const KernelOutput &output, const Halide::Func &stage, const Tiles &tiles) {
    bound_loops(kernel, output);
    spread_tiles(loop_nest(output.func), output.func.args(), tiles.at("threads"));
    compute_one(stage, output.func);
}

const KernelOutput *only_reader(const LoweredKernel &kernel, const Halide::Func &stage) {
    const KernelOutput *found = nullptr;
    for (const KernelOutput &output : kernel.outputs) {
        if (!find_transitive_calls(output.func.function()).contains(stage.name())) continue;
        if (found || output.func.args().empty()) return nullptr;
        found = &output;
    }
    return found;
}

void spread_blocks(Halide::Stage nest, const std::vector<Var> &loops) {
    if (loops.empty()) {
        nest.split(Var::outermost(), Var::outermost(), block_loop(), 1);
    } else {
        nest.rename(*fuse_loops(nest, loops), block_loop());
    }
    nest.gpu_blocks(block_loop());
}

void reduce_in_block(Halide::Func partial, Halide::Func lane, const Halide::LoopLevel &block, const std::optional<Var> &rows) {
    Halide::Func in_lanes = partial.in();
    const Var thread = in_lanes.args()[0];
    in_lanes.compute_at(block);
    if (rows) in_lanes.fuse(thread, *rows, thread);
    in_lanes.gpu_threads(thread);
    partial.compute_at(in_lanes, thread);
    for (int i = 0; i < partial.num_update_definitions(); i++) read_ahead(partial, i);
    if (lane.name() == partial.name()) return;
    const Var own = lane.args()[0];
    lane.compute_at(block);
    if (rows) lane.fuse(own, *rows, own);
    lane.gpu_threads(own);
}

void reduce_by_block(Halide::Func partial, const BlockReduction &reduction, const Halide::LoopLevel &block) {
    const Var thread = reduction.turn[0].args()[0], in_warp = reduction.turn[0].args()[1], one("one");
    Halide::Func total = reduction.warp;
    // A single thread writes the result of its warp. Outside of a loop over lanes, Halide would let no thread read the exchanged values.
    total.compute_at(block).store_in(Halide::MemoryType::GPUShared);
    total.split(in_warp, in_warp, one, 1).gpu_threads(in_warp).gpu_lanes(one);
    for (Halide::Func turn : reduction.turn) {
        turn.compute_at(total, in_warp).store_in(Halide::MemoryType::Register);
        for (const Var &arg : turn.args()) turn.bound_extent(arg, arg.name() == thread.name() ? warp_threads : 1);
        turn.gpu_lanes(thread);
    }
    partial.compute_at(reduction.turn[0], thread);
    const Var own = partial.args()[0];
    for (const Var &arg : partial.args()) partial.bound_extent(arg, arg.name() == own.name() ? reduction.neighbours : 1);
    partial.vectorize(own);
    for (int i = 0; i < partial.num_update_definitions(); i++) {
        std::vector<Halide::VarOrRVar> order = {own};
        for (const Halide::RVar &step : partial.rvars(i)) order.emplace_back(step);
        partial.update(i).reorder(order).vectorize(own);
        read_ahead(partial, i);
    }
}

void spread_line(Halide::Stage nest, const Var &line, const BlockReduction &block, bool unrolls) {
    const Var step("step"), neighbour("neighbour"), in_warp("in_warp");
    if (block.neighbours > 1) nest.split(line, line, neighbour, block.neighbours).vectorize(neighbour);
    nest.split(line, step, line, warp_threads * block.warps, TailStrategy::GuardWithIf);
    nest.split(line, in_warp, line, warp_threads);
    if (block.neighbours > 1)
        nest.reorder(neighbour, step, line, in_warp);
    else
        nest.reorder(step, line, in_warp);
    nest.gpu_lanes(line).gpu_threads(in_warp);
    if (unrolls) nest.unroll(step);
}

void schedule_totals(const LoweredKernel &kernel, const TotalStages &stages) {
    const auto output = std::ranges::find_if(kernel.outputs, [](const KernelOutput &o) { return o.func.args().empty(); });
    if (output == kernel.outputs.end()) return;
    spread_blocks(loop_nest(output->func), {});
    const Halide::LoopLevel last(output->func, block_loop());
    for (size_t i = 0; i < stages.lanes.fold.size(); i++) {
        Halide::Func fold = stages.lanes.fold[i];
        const Halide::Func partial = stages.lanes.partial[i], lane = stages.lanes.lane[i];
        const Halide::LoopLevel block = fold.args().empty() ? last : Halide::LoopLevel(fold, block_loop());
        if (fold.args().empty()) {
            fold.compute_at(last);
        } else {
            fold.compute_root();
            spread_blocks(fold, fold.args());
        }
        if (stages.lanes.block[i].warps > 0) {
            reduce_by_block(partial, stages.lanes.block[i], block);
        } else {
            reduce_in_block(partial, lane, block);
        }
    }
    for (Halide::Func total : stages.totals) total.compute_at(last);
}

void join_rows(LoweredKernel &kernel, const std::function<void(Halide::Func)> &join) {
    const auto &stages = std::get<RowStages>(kernel.stages);
    align_arrays(kernel);
    for (const KernelOutput &output : kernel.outputs) {
        bound_loops(kernel, output);
        if (!output.func.args().empty() && !is_sum_of_rows(kernel, output)) join(output.func);
    }
    for (Halide::Func stored : stages.stored) {
        stored.compute_root();
        join(stored);
    }
    if (Halide::Func running = stages.sums.running; running.defined()) {
        running.compute_root();
        join(running);
    }
    schedule_totals(kernel, stages.whole);
}

} // namespace scalide::gpu

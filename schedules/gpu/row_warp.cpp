#include "schedules/gpu/row_warp.h"
#include "lower/rows/row_warp.h"
#include "schedules/gpu/loops.h"
#include <optional>

namespace scalide::gpu {
namespace {
using namespace Halide;

const Var row_loop("gpu_row"), slot_loop("slot"), step_loop("step");

class WarpSchedule {
public:
    WarpSchedule(LoweredKernel &kernel, const Tiles &tiles, bool is_cuda)
        : kernel_(kernel), stages_(std::get<RowStages>(kernel.stages)), columns_(int(stages_.columns.value())),
          neighbours_(stages_.warp_neighbours), rows_(is_cuda ? tiles.at("warps") : 1), is_cuda_(is_cuda) {}

    void apply() {
        join_rows(kernel_, [this](const Func &func) { join(func); });
        for (const auto *stages : {&stages_.argument, &stages_.element}) {
            for (const Func &stage : *stages) keep_columns(stage);
        }
        for (const Func &partial : stages_.lanes.partial) reduce(partial);
        for (const auto *stages : {&stages_.slot, &stages_.turn, &stages_.scalar}) {
            for (const Func &stage : *stages) keep_exchanged(stage);
        }
    }

private:
    void spread_threads(Stage nest, const Var &thread) const { is_cuda_ ? nest.gpu_lanes(thread) : nest.gpu_threads(thread); }

    /// A thread accesses its adjacent elements together; its steps run one after the other.
    void spread_columns(Stage nest, const Var &x) const {
        nest.split(x, x, slot_loop, neighbours_, TailStrategy::GuardWithIf);
        nest.split(x, step_loop, x, warp_threads, TailStrategy::GuardWithIf);
        nest.reorder(slot_loop, step_loop, x).unroll(step_loop);
        join_neighbours(nest, slot_loop);
        spread_threads(nest, x);
    }

    /// LLVM does not merge accesses that are not vectors. On OpenCL, Halide stores odd rows in pairs under a condition.
    void join_neighbours(Stage nest, const VarOrRVar &neighbours) const {
        is_cuda_ &&columns_ % neighbours_ == 0 ? nest.vectorize(neighbours) : nest.unroll(neighbours);
    }

    /// The first Func leads; the others share its loop over rows.
    void join(Func func) {
        Stage nest = loop_nest(func);
        const std::vector<Var> args = func.args();
        const Var y = args.back();
        // Values without columns are computed by one thread. Otherwise Halide makes every thread store them, and an in-place update would
        // be applied more than once. Fused loops must have the same names, so Funcs with columns have this loop too.
        nest.split(y, y, thread_loop(), 1);
        nest.split(y, block_loop(), row_loop, rows_, TailStrategy::GuardWithIf);
        if (args.size() > 1) {
            spread_columns(nest, args[0]);
            nest.reorder(slot_loop, step_loop, thread_loop(), args[0], row_loop, block_loop()).unroll(thread_loop());
        } else {
            spread_threads(nest, thread_loop());
        }
        nest.gpu_threads(row_loop).gpu_blocks(block_loop());
        if (leader_) {
            nest.compute_with(LoopLevel(*leader_, row_loop, leader_->num_update_definitions()), LoopAlignStrategy::AlignStart);
        } else {
            leader_ = func;
        }
    }

    /// Stores a stage in registers of the threads of a warp. OpenCL has no exchanges between threads, so the stage is in shared memory
    /// there.
    Stage keep_in_warp(Func stage) const {
        stage.compute_at(*leader_, is_cuda_ ? row_loop : block_loop()).store_in(is_cuda_ ? MemoryType::Register : MemoryType::GPUShared);
        stage.bound_extent(stage.args().back(), 1); // the row; Halide cannot prove this if several outputs share the loop
        return stage;
    }

    void keep_columns(Func stage) const {
        const int elements = warp_threads * neighbours_, padded = (columns_ + elements - 1) / elements * elements;
        keep_in_warp(stage);
        stage.bound_extent(stage.args()[0], padded);
        spread_columns(stage, stage.args()[0]);
    }

    void reduce(Func partial) const {
        Func lanes = partial.in();
        const Var lane = lanes.args()[0];
        keep_in_warp(lanes);
        lanes.bound_extent(lane, warp_threads * neighbours_).split(lane, lane, slot_loop, neighbours_).reorder(slot_loop, lane);
        join_neighbours(lanes, slot_loop);
        spread_threads(lanes, lane);
        const Var own = partial.args()[0];
        partial.compute_at(lanes, lane).bound_extent(own, neighbours_).bound_extent(partial.args().back(), 1);
        join_neighbours(partial, own);
        join_neighbours(partial.update(), own);
        partial.update().unroll(partial.rvars()[0]);
    }

    void keep_exchanged(Func stage) const {
        const std::vector<Var> args = stage.args();
        keep_in_warp(stage);
        stage.bound_extent(args[args.size() - 2], warp_threads);
        if (args.size() == 3) stage.bound_extent(args[0], neighbours_).unroll(args[0]);
        spread_threads(stage, args[args.size() - 2]);
    }

    LoweredKernel &kernel_;
    const RowStages &stages_;
    int columns_, neighbours_, rows_;
    bool is_cuda_;
    std::optional<Func> leader_;
};

} // namespace

void schedule_row_in_warp(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    WarpSchedule(kernel, tiles, target.has_feature(Target::CUDA)).apply();
}

} // namespace scalide::gpu

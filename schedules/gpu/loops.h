#pragma once
#include "schedules/nests.h"
#include <functional>

namespace scalide::gpu {

/// The names of the loops over blocks and over their threads.
inline Halide::Var block_loop() { return Halide::Var("gpu_block"); }
inline Halide::Var thread_loop() { return Halide::Var("gpu_thread"); }

/// Arrays start at multiples of 16 bytes, which binding checks: what one instruction reads or writes.
constexpr int array_alignment = 16;
void align_arrays(LoweredKernel &kernel);

/// One thread an element: `loops` (innermost first) are one line of threads, reductions run inside of a thread. No loops: one thread.
void spread(Halide::Stage nest, const std::vector<Halide::Var> &loops, int threads);
/// The same for loops in whose threads stages are computed (at thread_loop(), with compute_one): tiles of threads over the first two loops.
/// A fused loop whose end is guarded would hide from Halide that a thread has one element; so do more than two loops, where extents are
/// symbolic.
constexpr size_t most_tile_loops = 2;
void spread_tiles(Halide::Stage nest, const std::vector<Halide::Var> &loops, int threads);
/// Computes one element of a stage in each thread of `reader`.
void compute_one(Halide::Func stage, const Halide::Func &reader);
void compute_one(const SumStages &sum, const Halide::Func &reader);
/// Computes a block of a sum in the thread that adds it to those before.
void compute_block(const SumStages &sum);
/// Spreads every definition of a Func; an update over the arguments that it does not reduce.
void spread_all(Halide::Func func, int threads);

/// Several elements of a sum are read before they are added: along the innermost loop of an update that is known to have so many.
void read_ahead(Halide::Func func, int update);

/// Keeps a stage in device memory. Where updates only fold and arguments are few, a thread folds its element in registers and there is one
/// launch; else there is one for each definition. Tiles: threads.
void keep(Halide::Func stage, const Tiles &tiles);
/// An output whose elements do not depend on each other's loops. Tiles: threads.
void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles);
/// The same, where threads compute elements of a stage.
void schedule_elements_with(const LoweredKernel &kernel, const KernelOutput &output, const Halide::Func &stage, const Tiles &tiles);

/// The output whose threads may make a stage: the only one that reads it, and not through a reduction of whole arrays; else nullptr.
const KernelOutput *only_reader(const LoweredKernel &kernel, const Halide::Func &stage);

/// A block of threads for each place of a `fold` (lower/rows/reduction.h): computes its stages `partial` and `lane` at `block`, the loop
/// over blocks of `consumer`. A thread adds its lane in registers; then lanes meet in shared memory. Of several `rows` (an argument of the
/// stages) threads make the lanes of each.
void reduce_in_block(Halide::Func partial, Halide::Func lane, const Halide::LoopLevel &block, const std::optional<Halide::Var> &rows = {});
/// Makes `loops` the loop over blocks; one block when there are none.
void spread_blocks(Halide::Stage nest, const std::vector<Halide::Var> &loops);

/// Gives `join` every Func that has the loop over the rows of a row kernel: its outputs, then what reductions of whole arrays read, which
/// are scheduled after that.
void join_rows(LoweredKernel &kernel, const std::function<void(Halide::Func)> &join);

/// Schedules reductions of whole arrays and the output of rank 0 that they end in, in two levels: a launch that folds blocks of fixed
/// size, then one block that does the rest. Does nothing without such an output.
void schedule_totals(const LoweredKernel &kernel, const TotalStages &stages);

} // namespace scalide::gpu

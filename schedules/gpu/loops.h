#pragma once
#include "schedules/tables/nests.h"
#include <functional>

namespace scalide::gpu {

/// The names of the loops over blocks and over threads.
inline Halide::Var block_loop() { return Halide::Var("gpu_block"); }
inline Halide::Var thread_loop() { return Halide::Var("gpu_thread"); }

/// Arrays begin at multiples of 16 bytes, the largest access of one instruction. Binding checks this.
constexpr int array_alignment = 16;
void align_arrays(LoweredKernel &kernel);

/// Runs one thread for each element. `loops` (innermost first) become one line of threads; reductions run inside a thread. Without loops,
/// one thread runs.
void spread(Halide::Stage nest, const std::vector<Halide::Var> &loops, int threads);
/// Does the same if stages are computed in the threads (at thread_loop(), with compute_one). The first two loops become tiles of threads. A
/// fused loop with a guard would hide from Halide that a thread has one element. So would more than two loops with symbolic extents.
constexpr size_t most_tile_loops = 2;
void spread_tiles(Halide::Stage nest, const std::vector<Halide::Var> &loops, int threads);
/// Computes one element of a stage in each thread of `reader`.
void compute_one(Halide::Func stage, const Halide::Func &reader);
void compute_one(const SumStages &sum, const Halide::Func &reader);
/// Computes a block of a sum in the thread that adds it to the earlier blocks.
void compute_block(const SumStages &sum);
/// Spreads every definition of a Func over threads. An update is spread over the arguments that it does not reduce.
void spread_all(Halide::Func func, int threads);

/// Reads several elements of a sum before it adds them. This applies to the innermost loop of an update if its extent is known to be a
/// multiple.
void read_ahead(Halide::Func func, int update);

/// Stores a stage in device memory. If updates only reduce and there are few arguments, a thread reduces its element in registers, in one
/// launch. Otherwise each definition is a launch. Tiles: threads.
void keep(Halide::Func stage, const Tiles &tiles);
/// Schedules an output whose elements need no stage in its loops. Tiles: threads.
void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles);
/// Does the same for an output whose threads compute elements of a stage.
void schedule_elements_with(const LoweredKernel &kernel, const KernelOutput &output, const Halide::Func &stage, const Tiles &tiles);

/// Returns the output whose threads may compute a stage. It must be the only output that reads the stage, and not through a reduction of
/// whole arrays. Otherwise returns nullptr.
const KernelOutput *only_reader(const LoweredKernel &kernel, const Halide::Func &stage);

/// Uses one block of threads for each index of a `fold` (lower/rows/reduction.h). Computes its stages `partial` and `lane` at `block`, the
/// loop over blocks of `consumer`. Each thread reduces its lane in registers; then lanes combine in shared memory. If `rows` (an argument
/// of the stages) is given, there are threads for the lanes of each row.
void reduce_in_block(Halide::Func partial, Halide::Func lane, const Halide::LoopLevel &block, const std::optional<Halide::Var> &rows = {});
/// Does the same for a reduction by all threads of a block (lower/rows/block_reduction.h).
void reduce_by_block(Halide::Func partial, const BlockReduction &reduction, const Halide::LoopLevel &block);
/// Spreads a line over the threads of such a block. A thread has `neighbours` adjacent elements, then the next ones in steps.
void spread_line(Halide::Stage nest, const Halide::Var &line, const BlockReduction &block, bool unrolls);
/// Fuses `loops` into the loop over blocks. Without loops, there is one block.
void spread_blocks(Halide::Stage nest, const std::vector<Halide::Var> &loops);

/// Calls `join` for every Func with the loop over rows of a row kernel: first its outputs, then the operands of reductions of whole arrays.
/// Schedules these reductions afterwards.
void join_rows(LoweredKernel &kernel, const std::function<void(Halide::Func)> &join);

/// Schedules reductions of whole arrays, and the rank-0 output that follows them, in two levels. One launch reduces blocks of fixed size,
/// then a single block does the rest. Does nothing if there is no such output.
void schedule_totals(const LoweredKernel &kernel, const TotalStages &stages);

} // namespace scalide::gpu

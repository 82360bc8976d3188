#include "expr/base_operators.h"
#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"
#include <algorithm>

// map: a thread some neighbours of each output, in vectors where whole vectors make a line. Arrays start at multiples of 16 bytes, which
// binding checks. Tiles:
//   threads  of a block
//   cost     instructions of a thread at which it gets no more elements
namespace scalide::cuda {
namespace {
using namespace Halide;

constexpr int array_alignment = 16;

void align_arrays(LoweredKernel &kernel) {
    for (ImageParam &input : kernel.inputs) {
        if (input.defined() && input.dimensions() > 0) input.set_host_alignment(array_alignment);
    }
    for (const KernelOutput &output : kernel.outputs) {
        for (OutputImageParam buffer : output.func.output_buffers()) {
            if (buffer.dimensions() > 0) buffer.set_host_alignment(array_alignment);
        }
    }
}

/// What one instruction reads of an array: the threads of a warp then read one piece of memory.
int elements_of_access(Dtype dtype) { return (size_of(dtype) >= 4 ? 16 : 8) / size_of(dtype); }

int elements_of_thread(const Program &kernel, const Tiles &tiles) {
    int count = elements_of_access(Dtype::boolean), cost = 1;
    const auto consider = [&](ValueId value) {
        const Type &type = kernel.type(value);
        if (!type.is_scalar()) count = std::min(count, elements_of_access(type.dtype));
    };
    for (const Argument &argument : kernel.arguments) consider(argument.value);
    for (const Result &result : kernel.results) consider(result.value);
    for (const Node &node : kernel.nodes) cost += operator_cost(node.op);
    if (moves_elements(kernel)) return 1;
    while (count > 1 && count * cost > tiles.at("cost")) count /= 2;
    return count;
}

/// Whole vectors; symbolic lines of which nobody knows get a kernel each way.
void schedule_vectors(const LoweredKernel &kernel, const KernelOutput &output, int width, bool is_cuda, const Tiles &tiles) {
    const std::vector<Expr> extents = bound_loops(kernel, output);
    const std::vector<Var> loops = output.func.args();
    const Expr rest = Internal::simplify(extents[0] % width);
    Stage nest = loop_nest(output.func);
    if (Internal::is_const(rest) && !Internal::is_const_zero(rest)) return spread(nest, loops, tiles.at("threads"));
    Stage vectors = Internal::is_const_zero(rest) ? nest : nest.specialize(rest == 0);
    Var lane("lane");
    vectors.split(loops[0], loops[0], lane, width, TailStrategy::RoundUp);
    // Halide 21 fails on vectors of f64 with conditions in OpenCL C; LLVM joins no accesses of neighbours that are not vectors.
    is_cuda ? vectors.vectorize(lane) : vectors.unroll(lane);
    spread(vectors, loops, tiles.at("threads"));
    if (!Internal::is_const_zero(rest)) spread(nest, loops, tiles.at("threads"));
}

} // namespace

void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    for (const Func &stage : kernel.stages["shared"]) keep(stage, tiles);
    const int width = elements_of_thread(kernel.program, tiles);
    if (width > 1) align_arrays(kernel);
    for (const KernelOutput &output : kernel.outputs) {
        if (width > 1 && !output.func.args().empty()) {
            schedule_vectors(kernel, output, width, target.has_feature(Target::CUDA), tiles);
        } else {
            schedule_elements(kernel, output, tiles);
        }
    }
}

} // namespace scalide::cuda

#include "lower/rows/block_reduction.h"
#include <algorithm>

// Reductions of whole arrays, for all kernel kinds that have some. All reductions of arrays with one shape share a loop.
namespace scalide {
using Halide::Expr;

namespace {

/// Elements of one partial result. The order of a sum depends only on the shape. Blocks are small because a GPU has one thread for each
/// lane of a block, and needs 10^5 threads. On a CPU, blocks of 65,536 are not faster (sum of 8M f32, maximum of 16M f16, one thread of an
/// EPYC Zen 5, 2026-11-22).
constexpr int block_elements = 4096;
constexpr int read_together = 8; ///< the rows of a block are a multiple of this, if there are enough

/// The blocks of one shape: `count` full blocks of `size` rows (elements, if the array has one axis), and the remaining rows.
class Blocks {
public:
    Blocks(Lowering &lowering, const Extents &shape)
        : lowering_(lowering), shape_(shape), rows_(shape.begin(), shape.end() - 1), is_line_(rows_.empty()), size_(block_size()),
          all_(lowering.values.extent(is_line_ ? shape.back() : element_count(rows_))) {}

    /// True if one block is provably enough.
    bool is_one_block() const { return Halide::Internal::can_prove(count() == 0); }
    Expr count() const { return Halide::Internal::simplify(all_ / size_); }

    ReductionSpace whole() const {
        Halide::Var block("block");
        return space({block}, block * size_, size_);
    }
    ReductionSpace rest() const {
        Expr left = Halide::Internal::simplify(all_ % size_);
        return space({}, all_ - left, left);
    }
    /// All blocks; the remaining rows are the last block.
    ReductionSpace guarded() const {
        ReductionSpace result = whole();
        Expr first = Halide::Var("block") * size_;
        result.is_any = Halide::Internal::simplify(all_ > 0);
        result.inside = [=, this](const Index &steps, const Expr &column) { return first + (is_line_ ? column : steps[0]) < all_; };
        return result;
    }

private:
    int block_size() const {
        const Extent &columns = shape_.back();
        if (is_line_) {
            return block_elements;
        }
        const int rows = columns.is_static() ? int(std::max<int64_t>(1, block_elements / std::max<int64_t>(1, columns.value()))) : 16;
        return rows > read_together ? rows / read_together * read_together : rows;
    }

    ReductionSpace space(std::vector<Halide::Var> outer, Expr first, Expr size) const {
        Values &values = lowering_.values;
        if (is_line_) {
            auto at = [first, this](const Index &, const Expr &column) { return Index{inside(first + column)}; };
            return {outer, size, choose_lanes(shape_.back()), {}, at};
        }
        auto at = [first, this, &values](const Index &steps, const Expr &column) {
            Index index = split_row(inside(first + steps[0]), rows_, values);
            index.push_back(column);
            return index;
        };
        return {outer, values.extent(shape_.back()), choose_lanes(shape_.back()), {{0, size}}, at};
    }

    /// Limits a position that may lie after the last element. A GPU does not read there, but Halide must know that the position is in
    /// bounds. A clamp would imply that there is an element, and Halide would drop the condition that protects empty arrays.
    Expr inside(const Expr &place) const {
        if (!lowering_.target.has_gpu_feature()) return place;
        return Halide::unsafe_promise_clamped(Halide::min(place, all_ - 1), 0, all_ - 1);
    }

    Lowering &lowering_;
    const Extents &shape_;
    Extents rows_;
    bool is_line_;
    int size_;
    Expr all_;
};

/// Reduces the results of `count` blocks.
ReductionSpace second_level(const Halide::Func &blocks, const Expr &count, int size) {
    const auto known = Halide::Internal::as_const_int(count);
    ReductionSpace space{{}, count, known ? choose_lanes(Extent(*known)) : most_lanes, {}, {}};
    space.at = [](const Index &, const Expr &column) { return Index{column}; };
    space.terms = [=](const Index &index) { return components(blocks(index), size); };
    return space;
}

/// Bytes of the smallest element that the kernel reads. Threads read that many elements of 16 bytes.
int smallest_element(const Program &program) {
    int bytes = 4;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        if (!type.is_scalar()) bytes = std::min(bytes, size_of(type.dtype));
    }
    return bytes;
}

/// Returns the space of `size` elements at `first`, which a block of threads reduces. Elements from `all` on do not belong to it.
ReductionSpace part_of_line(std::vector<Halide::Var> outer, const Expr &first, int size, int64_t all, const BlockShape &shape) {
    ReductionSpace space{std::move(outer), size, 0, {}, {}};
    const bool is_whole = all % size == 0;
    space.at = [=](const Index &, const Expr &column) {
        return Index{is_whole ? first + column : inside_line(first + column, all, shape.neighbours)};
    };
    if (!is_whole) space.inside = [=](const Index &, const Expr &column) { return first + column < int(all); };
    return space;
}

/// Reduces a line of `all` elements by blocks of threads, then the results of blocks by one block.
std::vector<Expr> reduce_line(Lowering &lowering, const ReductionGroup &group, int64_t all, TotalStages &stages) {
    constexpr int64_t blocks = 1024, most_rounds = 8;
    const int size = int(group.identity().size());
    const BlockShape shape = block_shape(all, smallest_element(lowering.kernel.program));
    const int elements = shape.elements() * int(std::clamp<int64_t>(all / (shape.elements() * blocks), 1, most_rounds));
    const int64_t count = (all + elements - 1) / elements;
    const auto reduced = [&](const ReductionSpace &space, const BlockShape &by) {
        return reduce_by_block(lowering, group, space, by, stages.lanes);
    };
    if (count == 1) return components(reduced(part_of_line({}, 0, elements, all, shape), shape)(), size);
    const Halide::Var block("block");
    const Halide::Func parts = reduced(part_of_line({block}, block * elements, elements, all, shape), shape);
    const BlockShape last = block_shape(count, 4);
    ReductionSpace rest = part_of_line({}, 0, int((count + last.elements() - 1) / last.elements()) * last.elements(), count, last);
    rest.terms = [=](const Index &index) { return components(parts(index), size); };
    return components(reduced(rest, last)(), size);
}

/// True if blocks of threads reduce all whole arrays of a kernel: these are long lines of static length. The launches of a kernel have
/// either lanes or blocks.
bool are_long_lines(const Program &program) {
    return std::ranges::all_of(program.nodes, [&](const Node &node) {
        if (!is_reduction(node) || program.type(node.results[0]).rank() > 0) return true;
        const Extents &shape = program.type(node.operands[0]).shape;
        return shape.size() == 1 && shape[0].is_static() && shape[0].value() >= block_elements;
    });
}

} // namespace

void reduce_all(Lowering &lowering, const std::vector<const Node *> &nodes, TotalStages &stages) {
    if (nodes.empty()) {
        return;
    }
    const Program &program = lowering.kernel.program;
    std::vector<Reduction> reductions;
    for (const Node *node : nodes) {
        reductions.emplace_back(program, *node);
    }
    ReductionGroup group(reductions);
    const int size = int(group.identity().size());
    const Extents &shape = program.type(nodes[0]->operands[0]).shape;
    Blocks blocks(lowering, shape);
    const auto reduced = [&](const ReductionSpace &space) { return reduce_lanes(lowering, group, space, stages.lanes); };
    Halide::Func total("total_" + std::to_string(stages.totals.size()));
    if (lowering.target.has_feature(Halide::Target::CUDA) && are_long_lines(program)) {
        assign(total(), Halide::Tuple(reduce_line(lowering, group, shape[0].value(), stages)));
    } else if (blocks.is_one_block()) {
        assign(total(), Halide::Tuple(components(reduced(blocks.rest())(), size)));
    } else {
        const bool is_gpu = lowering.target.has_gpu_feature();
        const Halide::Func rest = is_gpu ? Halide::Func() : reduced(blocks.rest());
        Halide::Func whole = reduced(is_gpu ? blocks.guarded() : blocks.whole());
        // Otherwise Halide computes as many blocks as vectors of the second level read, and the additional blocks would read after the end
        // of arrays.
        if (!is_gpu) whole.bound(whole.args()[0], 0, blocks.count());
        const Halide::Func sum = reduced(second_level(whole, blocks.count(), size));
        assign(total(), group.combine(components(is_gpu ? whole(blocks.count()) : rest(), size), components(sum(), size)));
    }
    stages.totals.push_back(total);
    group.bind(lowering.values, total);
}

} // namespace scalide

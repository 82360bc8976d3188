#pragma once
#include "base/halide_abi.h"
#include "scalide/groups.h"
#include "scalide/plan.h"
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

/// Plans with blocks and collectives, written by hand.
namespace scalide::test {

template<typename T>
T *host(void *buffer) {
    return reinterpret_cast<T *>(static_cast<HalideBuffer *>(buffer)->host);
}

inline int64_t elements(void *buffer) {
    const auto &view = *static_cast<HalideBuffer *>(buffer);
    int64_t count = 1;
    for (int32_t i = 0; i < view.dimensions; ++i) count *= view.dim[i].extent;
    return count;
}

/// A block and its tables.
struct BlockRows {
    scalide_block block = {};
    std::vector<scalide_row> rows;
    std::vector<scalide_carry> carries;
    std::vector<int32_t> results, branch_ends;
};

/// Makes the tables of a program. Arena buffers live over all steps unless a test changes them before finish().
class BlockPlan {
public:
    std::deque<BlockRows> blocks;
    std::vector<scalide_buffer> buffers;
    std::vector<scalide_argument> arguments;
    std::vector<scalide_symbol> symbols;

    /// Adds a symbol that is alone on an axis of an input. Returns its extent in a shape; so do the next three functions.
    int64_t symbol(const char *name) { return add({name, 0, 1 << 20, 1, SCALIDE_FROM_ARGUMENTS, -1, nullptr}); }
    /// Adds the number of ranks of a group.
    int64_t group(const char *name) { return add({name, 1, SCALIDE_MAX_RANKS, 1, SCALIDE_RANKS, -1, nullptr}); }
    int64_t rank(const char *name, int64_t group) { return add({name, 0, SCALIDE_MAX_RANKS, 1, SCALIDE_RANK, index(group), nullptr}); }
    /// Adds the elements for each rank of an array with `divided` elements.
    int64_t chunk(const char *name, int64_t group, int64_t divided) {
        return add({name, 0, 1 << 20, 1, SCALIDE_CHUNK, index(group), extent(divided)});
    }
    /// Adds a step in which ranks exchange arrays, and returns its number.
    int32_t collective(const char *name, int32_t kind, int64_t group, const std::vector<scalide_moved> &arrays) {
        const std::vector<scalide_moved> &moved = moved_.emplace_back(arrays);
        collectives.push_back({kind, index(group), static_cast<int32_t>(moved.size()), moved.data(), "net.scl:4"});
        steps_.push_back({name, nullptr, nullptr, 0, nullptr, &collectives.back()});
        return step_count() - 1;
    }
    std::deque<scalide_collective> collectives;
    /// Replaces an array of a collective.
    void set_moved(size_t collective, size_t array, const scalide_moved &moved) { moved_[collective][array] = moved; }
    /// Returns the extent of symbol `symbol`.
    const scalide_extent *symbol_extent(int32_t symbol) { return extent(-1 - symbol); }
    std::vector<scalide_step> &steps() { return steps_; }

    /// Adds an argument and returns its buffer.
    int32_t argument(const char *name, int32_t role, int32_t dtype, const std::vector<int64_t> &shape) {
        const auto index = static_cast<int32_t>(buffers.size());
        buffers.push_back(buffer(name, dtype, shape, SCALIDE_STORAGE_DATA, static_cast<int32_t>(arguments.size())));
        buffers.back().first_step = role == SCALIDE_INPUT ? -1 : 0;
        arguments.push_back({name, role, index, -1, 0});
        return index;
    }
    /// Adds an intermediate array.
    int32_t array(const char *name, int32_t dtype, const std::vector<int64_t> &shape) {
        const bool is_scalar = shape.empty();
        buffers.push_back(
            buffer(name, dtype, shape, is_scalar ? SCALIDE_STORAGE_SCALAR : SCALIDE_STORAGE_ARENA, is_scalar ? scalars_++ : -1));
        return static_cast<int32_t>(buffers.size()) - 1;
    }
    /// Adds a step, and returns its number.
    int32_t step(const char *name, scalide_kernel kernel, const std::vector<int32_t> &operands) {
        std::vector<scalide_operand> &rows = operands_.emplace_back();
        for (int32_t index : operands) {
            const scalide_buffer &each = buffers[static_cast<size_t>(index)];
            rows.push_back({SCALIDE_OPERAND_BUFFER, index, each.rank, each.shape, 1});
        }
        steps_.push_back({name, kernel, rows.data(), static_cast<int32_t>(rows.size()), nullptr, nullptr});
        return static_cast<int32_t>(steps_.size()) - 1;
    }
    /// Adds a block of steps. `length`: -1: no limit.
    BlockRows &block(const char *name, int32_t kind, int32_t parent, int32_t first, int32_t end, int64_t length = -1) {
        scalide_block &block = blocks.emplace_back().block;
        block.name = name;
        block.location = "net.scl:7";
        block.kind = kind;
        block.parent = parent;
        block.first_step = first;
        block.end_step = end;
        block.condition = block.step = -1;
        block.length = length < 0 ? nullptr : extent(length);
        return blocks.back();
    }
    int32_t step_count() const { return static_cast<int32_t>(steps_.size()); }

    const scalide_program *finish() {
        finished_.clear();
        for (BlockRows &each : blocks) {
            scalide_block &block = each.block;
            block.rows = each.rows.data();
            block.row_count = static_cast<int32_t>(each.rows.size());
            block.carries = each.carries.data();
            block.carry_count = static_cast<int32_t>(each.carries.size());
            block.results = each.results.data();
            block.result_count = static_cast<int32_t>(each.results.size());
            block.branch_ends = each.branch_ends.data();
            block.branch_count = static_cast<int32_t>(each.branch_ends.size());
            finished_.push_back(block);
        }
        for (scalide_buffer &each : buffers)
            if (each.last_step < 0) each.last_step = std::max(0, step_count() - 1);
        program_ = {};
        program_.plan_version = SCALIDE_PLAN_VERSION;
        program_.name = "net";
        program_.target = "x86-64-linux-sse41";
        program_.numerics = program_.hash = "0";
        program_.symbol_count = static_cast<int32_t>(symbols.size());
        program_.symbols = symbols.data();
        program_.argument_count = static_cast<int32_t>(arguments.size());
        program_.buffer_count = static_cast<int32_t>(buffers.size());
        program_.step_count = step_count();
        program_.scalar_count = scalars_;
        program_.arguments = arguments.data();
        program_.buffers = buffers.data();
        program_.steps = steps_.data();
        program_.block_count = static_cast<int32_t>(blocks.size());
        program_.blocks = finished_.data();
        return &program_;
    }

private:
    /// An extent of a shape is a number, or a symbol: -1 - its index.
    static int32_t index(int64_t symbol) { return static_cast<int32_t>(-1 - symbol); }
    int64_t add(const scalide_symbol &symbol) {
        symbols.push_back(symbol);
        return -static_cast<int64_t>(symbols.size());
    }
    const scalide_term *term(int64_t value) {
        const scalide_term number = {value, {-1, -1, -1, -1}}, symbol = {1, {index(value), -1, -1, -1}};
        return &terms_.emplace_back(value < 0 ? symbol : number);
    }
    const scalide_extent *extent(int64_t value) { return &extents_.emplace_back(std::vector<scalide_extent>{{term(value), 1}})[0]; }
    scalide_buffer buffer(const char *name, int32_t dtype, const std::vector<int64_t> &shape, int32_t storage, int32_t index) {
        std::vector<scalide_extent> &extents = extents_.emplace_back();
        for (int64_t value : shape) extents.push_back({term(value), 1});
        return {name, dtype, static_cast<int32_t>(shape.size()), extents.data(), storage, index, 0, -1, 0, nullptr, nullptr};
    }

    std::deque<scalide_term> terms_;
    std::deque<std::vector<scalide_extent>> extents_;
    std::deque<std::vector<scalide_operand>> operands_;
    std::deque<std::vector<scalide_moved>> moved_;
    std::vector<scalide_step> steps_;
    std::vector<scalide_block> finished_;
    scalide_program program_ = {};
    int32_t scalars_ = 0;
};

/// The memory of an array, aligned to 64 bytes after `offset` elements.
template<typename T>
class Elements {
public:
    Elements(int32_t dtype, const std::vector<int64_t> &shape, T value = 0, size_t offset = 0) {
        size_t count = 1;
        for (int64_t extent : shape) count *= static_cast<size_t>(extent);
        memory_.assign(count + offset + 64 + 64 / sizeof(T), value);
        T *first = memory_.data();
        while (reinterpret_cast<uintptr_t>(first) % 64 != 0) ++first;
        first_ = first + offset;
        count_ = count;
        array = scalide_dense_array(first_, nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data());
    }
    Elements(const Elements &) = delete;
    Elements &operator=(const Elements &) = delete;

    T &operator[](size_t index) { return first_[index]; }
    T *data() { return first_; }
    void fill(T first, T step) {
        for (size_t i = 0; i < count_; ++i) first_[i] = static_cast<T>(first + static_cast<T>(i) * step);
    }
    std::vector<T> values() const { return {first_, first_ + count_}; }

    scalide_array array;

private:
    std::vector<T> memory_;
    T *first_;
    size_t count_;
};

} // namespace scalide::test

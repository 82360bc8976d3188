#pragma once
#include "base/memory.h"
#include "bind/binding.h"
#include "bind/block_tables.h"

namespace scalide {

/// Gives the steps of a loop the memory of their rows and carried arrays. See StepRunner for `Machine`.
template<typename Machine>
class LoopArrays {
public:
    LoopArrays(scalide_binding &binding, Machine &machine, int32_t index)
        : binding_(binding), machine_(machine), block_(binding.program->blocks[index]), place_(binding.layout->blocks[index]),
          rows_(binding.loops.rows + place_.row), carries_(binding.loops.carries + place_.carry) {}

    /// Prepares `steps` steps; -1: the number is not known.
    bool enter(int64_t steps) {
        for (int32_t i = 0; i < block_.row_count; ++i) enter_row(i);
        for (int32_t i = 0; i < block_.carry_count; ++i)
            if (!enter_carry(i, steps)) return false;
        return copy_in_place();
    }

    /// Points the kernels to the arrays of this element and of the next step.
    bool point(int64_t element) {
        for (int32_t i = 0; i < block_.row_count; ++i) {
            if (rows_[i].is_in_place) {
                move(place_.moved + i, row_at(i, element));
            } else if (!block_.rows[i].is_written && !machine_.copy(rows_[i].own, row_at(i, element), rows_[i].bytes)) {
                return false;
            }
        }
        int32_t entry = place_.moved + block_.row_count;
        for (int32_t i = 0; i < block_.carry_count; ++i, entry += 2) {
            if (is_in_place(block_.carries[i])) continue;
            move(entry, carries_[i].read);
            move(entry + 1, carries_[i].write);
        }
        return true;
    }

    /// Ends the step of this element: the next one reads what it has written.
    bool end_step(int64_t element) {
        for (int32_t i = 0; i < block_.row_count; ++i)
            if (!rows_[i].is_in_place && block_.rows[i].is_written && !machine_.copy(row_at(i, element), rows_[i].own, rows_[i].bytes))
                return false;
        for (int32_t i = 0; i < block_.carry_count; ++i) {
            CarryState &carry = carries_[i];
            carry.read = carry.write;
            carry.write = carry.write == carry.result ? carry.spare : carry.result;
        }
        return true;
    }

    /// Completes the results after `steps` steps.
    bool finish(int64_t steps) {
        for (int32_t i = 0; i < block_.carry_count; ++i)
            if (carries_[i].read != carries_[i].result && !copy(i, carries_[i].result, carries_[i].read)) return false;
        for (int32_t i = 0; i < block_.row_count; ++i) {
            const uint64_t rest = rows_[i].bytes * static_cast<uint64_t>(place_.length - steps);
            if (block_.rows[i].is_written && rest > 0 && !machine_.clear(row_at(i, steps), rest)) return false;
        }
        return true;
    }

    /// Gives the buffers the memory that they had before the loop.
    void leave() {
        for (int32_t i = 0; i < block_.row_count; ++i) binding_.memory[block_.rows[i].buffer] = rows_[i].own;
        for (int32_t i = 0; i < block_.carry_count; ++i) {
            binding_.memory[block_.carries[i].before] = carries_[i].spare;
            binding_.memory[block_.carries[i].after] = carries_[i].result;
        }
    }

private:
    void *row_at(int32_t row, int64_t element) const { return rows_[row].array + rows_[row].bytes * static_cast<uint64_t>(element); }

    void enter_row(int32_t index) {
        const scalide_row &row = block_.rows[index];
        RowState &state = rows_[index];
        state = {static_cast<char *>(binding_.memory[row.of]), binding_.memory[row.buffer],
                 bytes_of(*binding_.program, *binding_.layout, row.buffer), false};
        const uint64_t alignment = row.is_written ? Machine::write_alignment : Machine::read_alignment;
        state.is_in_place = reinterpret_cast<uintptr_t>(state.array) % alignment == 0 && state.bytes % alignment == 0;
        if (!state.is_in_place) move(place_.moved + index, state.own);
    }

    /// The writes alternate between the spare memory and the result. With a known number of steps, the last one writes the result.
    bool enter_carry(int32_t index, int64_t steps) {
        const scalide_carry &carry = block_.carries[index];
        void *const init = binding_.memory[carry.init], *const spare = binding_.memory[carry.before],
                    *const result = binding_.memory[carry.after];
        const bool starts_with_spare = steps < 0 ? init == result : steps % 2 == 0;
        CarryState &state = carries_[index];
        state = {spare, result, init, starts_with_spare ? spare : result, bytes_of(*binding_.program, *binding_.layout, carry.after)};
        if (is_in_place(carry)) return true;
        const bool is_staged = binding_.layout->is_staged[place_.carry + index] || init == state.write;
        if (!is_staged) return true;
        state.read = spare;
        if (state.write == spare) state.write = result;
        return copy(index, spare, init);
    }

    /// After this, all carries in place read their result.
    bool copy_in_place() {
        for (int32_t i = 0; i < block_.carry_count; ++i) {
            CarryState &state = carries_[i];
            if (!is_in_place(block_.carries[i])) continue;
            if (state.read != state.result && !copy(i, state.result, state.read)) return false;
            state.read = state.write = state.spare = state.result;
        }
        return true;
    }

    bool copy(int32_t carry, void *to, const void *from) { return machine_.copy(to, from, carries_[carry].bytes); }

    void move(int32_t entry, void *memory) {
        const MovedBuffer &moved = binding_.layout->moved[entry];
        binding_.memory[moved.buffer] = memory;
        for (int32_t i = moved.first_view; i < moved.end_view; ++i) machine_.point(binding_.layout->moved_views[i], memory);
    }

    scalide_binding &binding_;
    Machine &machine_;
    const scalide_block &block_;
    const BlockPlace &place_;
    RowState *rows_;
    CarryState *carries_;
};

} // namespace scalide

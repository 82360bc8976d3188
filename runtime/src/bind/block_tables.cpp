#include "bind/block_tables.h"
#include "bind/extent.h"
#include <algorithm>
#include <initializer_list>

namespace scalide {

namespace {

int32_t count_views(const scalide_step &step) {
    int32_t count = 0;
    for (int32_t k = 0; k < step.operand_count; ++k) count += step.operands[k].kind == SCALIDE_OPERAND_BUFFER;
    return count;
}

/// The tables of one program in progress.
class BlockTables {
public:
    BlockTables(scalide_context *context, const scalide_program &program, Layout &layout)
        : context_(context), program_(program), layout_(layout) {}

    scalide_status fill() {
        place_steps();
        place_blocks();
        for (int32_t i = 0; i < program_.buffer_count; ++i) layout_.buffers[i].entry = -1;
        for (int32_t i = 0; i < program_.block_count; ++i) {
            if (!check_shapes(i) || !mark(i) || !check_inits(i)) return SCALIDE_INVALID_PROGRAM;
            find_views(i);
            mark_steps(i);
            mark_shown(program_.blocks[i]);
        }
        return SCALIDE_OK;
    }

private:
    void place_steps() {
        StepPlace next = {0, 0, false};
        for (int32_t i = 0; i < program_.step_count; ++i) {
            layout_.steps[i] = next;
            next.argument += 1 + program_.steps[i].operand_count;
            next.view += count_views(program_.steps[i]);
        }
    }

    void place_blocks() {
        BlockPlace next = {};
        for (int32_t i = 0; i < program_.block_count; ++i) {
            const scalide_block &block = program_.blocks[i];
            layout_.blocks[i] = next;
            layout_.blocks[i].end = i + 1;
            next.moved += count_moved(block);
            next.row += block.row_count;
            next.carry += block.carry_count;
            for (int32_t around = block.parent; around >= 0; around = program_.blocks[around].parent) layout_.blocks[around].end = i + 1;
        }
    }

    bool refuse(const scalide_block &block, const char *requirement, int32_t buffer) {
        start_message(context_) << program_.name << '.' << block.name << ": " << requirement << ", but " << program_.buffers[buffer].name
                                << " does not. Generate the library again.";
        return false;
    }

    bool has_extents_of(const scalide_buffer &a, int32_t first_axis, const scalide_buffer &b) const {
        for (int32_t axis = 0; axis < b.rank; ++axis) {
            int64_t left = 0, right = 0;
            if (!evaluate(a.shape[axis + first_axis], layout_.symbols, &left) || !evaluate(b.shape[axis], layout_.symbols, &right) ||
                left != right)
                return false;
        }
        return true;
    }

    bool is_row(const scalide_row &row, int64_t length) const {
        const scalide_buffer &of = program_.buffers[row.of];
        int64_t rows = 0;
        return evaluate(of.shape[0], layout_.symbols, &rows) && rows == length && has_extents_of(of, 1, program_.buffers[row.buffer]);
    }

    bool check_shapes(int32_t index) {
        const scalide_block &block = program_.blocks[index];
        int64_t &length = layout_.blocks[index].length;
        length = INT64_MAX;
        if (block.length && !evaluate(*block.length, layout_.symbols, &length)) {
            start_message(context_) << program_.name << '.' << block.name
                                    << ": the number of steps must be in [0, 2^31). Generate the library again.";
            return false;
        }
        for (int32_t i = 0; i < block.row_count; ++i)
            if (!is_row(block.rows[i], length)) return refuse(block, "each step must have one row of the array", block.rows[i].of);
        for (int32_t i = 0; i < block.carry_count; ++i) {
            const scalide_carry &carry = block.carries[i];
            const scalide_buffer &after = program_.buffers[carry.after];
            for (int32_t other : {carry.init, carry.before})
                if (!has_extents_of(program_.buffers[other], 0, after)) return refuse(block, "a carried array must keep its shape", other);
        }
        return true;
    }

    /// Numbers an entry of the block. `is_alone`: no other entry of the program may have this buffer.
    bool add(const scalide_block &block, int32_t first_entry, int32_t entry, int32_t buffer, bool is_alone) {
        BufferSize &size = layout_.buffers[buffer];
        if (size.entry >= first_entry || size.is_moved_once || size.is_step || (is_alone && size.entry >= 0))
            return refuse(block, "the block must be the only one that moves its buffers", buffer);
        size.is_moved_once = is_alone;
        size.entry = entry;
        layout_.moved[entry] = {buffer, 0, 0};
        return true;
    }

    bool mark(int32_t index) {
        const scalide_block &block = program_.blocks[index];
        const int32_t first = layout_.blocks[index].moved, carries = first + block.row_count;
        for (int32_t i = 0; i < block.row_count; ++i) {
            const scalide_row &row = block.rows[i];
            if (row.is_written && layout_.buffers[row.of].is_read_only)
                return refuse(block, "each array whose rows are written must allow it", row.of);
            if (!add(block, first, first + i, row.buffer, row.is_written == 0)) return false; // a loop may make a written row
            layout_.buffers[row.buffer].is_read_only = !row.is_written;
        }
        if (block.step >= 0 && layout_.buffers[block.step].entry >= 0)
            return refuse(block, "the number of a step must stay in its place", block.step);
        if (block.step >= 0) layout_.buffers[block.step].is_step = true;
        for (int32_t i = 0; i < block.carry_count; ++i) {
            const scalide_carry &carry = block.carries[i];
            const int32_t entry = carries + 2 * i;
            layout_.moved[entry] = {carry.before, 0, 0};
            if (!is_in_place(carry) && !add(block, first, entry, carry.before, true)) return false;
            layout_.buffers[carry.before].is_read_only = !is_in_place(carry);
            if (!add(block, first, entry + 1, carry.after, false)) return false;
        }
        return true;
    }

    /// Finds initial values that are in the result of another carry. They need spare memory, because that carry writes its result.
    bool check_inits(int32_t index) {
        const scalide_block &block = program_.blocks[index];
        const BlockPlace &place = layout_.blocks[index];
        const int32_t carries = place.moved + block.row_count;
        for (int32_t i = 0; i < block.carry_count; ++i) {
            const scalide_carry &carry = block.carries[i];
            const int32_t entry = layout_.buffers[carry.init].entry - carries;
            const bool is_of_another = entry >= 0 && entry < 2 * block.carry_count && entry / 2 != i;
            if (is_of_another && is_in_place(carry)) return refuse(block, "a carry in place must keep its first value", carry.init);
            layout_.is_staged[place.carry + i] = is_of_another;
        }
        return true;
    }

    /// Calls visit(entry, view) for the views of the block's steps on the buffers that it moves.
    template<typename Visit>
    void for_each_view(int32_t index, Visit visit) {
        const scalide_block &block = program_.blocks[index];
        const int32_t first = layout_.blocks[index].moved, end = first + count_moved(block);
        for (int32_t step = block.first_step; step < block.end_step; ++step) {
            int32_t view = layout_.steps[step].view;
            for (int32_t k = 0; k < program_.steps[step].operand_count; ++k) {
                const scalide_operand &operand = program_.steps[step].operands[k];
                if (operand.kind != SCALIDE_OPERAND_BUFFER) continue;
                const int32_t entry = layout_.buffers[operand.index].entry;
                if (entry >= first && entry < end) visit(layout_.moved[entry], view);
                ++view;
            }
        }
    }

    /// Marks the steps of a block that use a buffer which it moves. The buffers of a matmul need no views.
    void mark_steps(int32_t index) {
        const scalide_block &block = program_.blocks[index];
        const int32_t first = layout_.blocks[index].moved, end = first + count_moved(block);
        const auto is_moved = [&](int32_t buffer) {
            const int32_t entry = buffer < 0 ? -1 : layout_.buffers[buffer].entry;
            return entry >= first && entry < end;
        };
        for (int32_t i = block.first_step; i < block.end_step; ++i) {
            const scalide_step &step = program_.steps[i];
            bool &moved = layout_.steps[i].is_moved;
            for (int32_t k = 0; k < step.operand_count; ++k)
                moved |= step.operands[k].kind == SCALIDE_OPERAND_BUFFER && is_moved(step.operands[k].index);
            if (!step.matmul) continue;
            const scalide_matmul &matmul = *step.matmul;
            for (int32_t buffer : {matmul.lhs, matmul.rhs, matmul.result, matmul.lhs_scales, matmul.rhs_scales, matmul.factor, matmul.bias,
                                   matmul.addend, matmul.addend_factor, matmul.result_factor, matmul.amax})
                moved |= is_moved(buffer);
        }
    }

    void find_views(int32_t index) {
        for_each_view(index, [](MovedBuffer &moved, int32_t) { ++moved.end_view; });
        const int32_t first = layout_.blocks[index].moved;
        for (int32_t i = first; i < first + count_moved(program_.blocks[index]); ++i) {
            MovedBuffer &moved = layout_.moved[i];
            moved.first_view = views_;
            views_ += moved.end_view;
            moved.end_view = moved.first_view;
        }
        for_each_view(index, [this](MovedBuffer &moved, int32_t view) { layout_.moved_views[moved.end_view++] = view; });
    }

    void mark_shown(const scalide_block &block) {
        const auto mark = [this](int32_t buffer) { layout_.buffers[buffer].is_shown_by_block = true; };
        if (block.step >= 0) mark(block.step);
        for (int32_t i = 0; i < block.row_count; ++i) mark(block.rows[i].buffer);
        for (int32_t i = 0; i < block.result_count; ++i) mark(block.results[i]);
        for (int32_t i = 0; i < block.carry_count; ++i) {
            mark(block.carries[i].before);
            mark(block.carries[i].after);
        }
    }

    scalide_context *context_;
    const scalide_program &program_;
    Layout &layout_;
    int32_t views_ = 0;
};

} // namespace

BlockCounts count_blocks(const scalide_program &program) {
    BlockCounts counts;
    for (int32_t i = 0; i < program.block_count; ++i) {
        const scalide_block &block = program.blocks[i];
        counts.rows += static_cast<uint64_t>(block.row_count);
        counts.carries += static_cast<uint64_t>(block.carry_count);
        for (int32_t step = block.first_step; step < block.end_step; ++step)
            counts.views += static_cast<uint64_t>(count_views(program.steps[step]));
    }
    return counts;
}

scalide_status fill_blocks(scalide_context *context, const scalide_program &program, Layout &layout) {
    return BlockTables(context, program, layout).fill();
}

bool is_carried_in_place(const scalide_program &program, int32_t buffer) {
    const auto carries = [buffer](const scalide_block &block) {
        return std::any_of(block.carries, block.carries + block.carry_count,
                           [=](const scalide_carry &carry) { return carry.after == buffer && is_in_place(carry); });
    };
    return std::any_of(program.blocks, program.blocks + program.block_count, carries);
}

bool is_used_by_blocks(const scalide_program &program, int32_t buffer) {
    const auto uses = [buffer](const scalide_block &block) {
        return block.condition == buffer ||
               std::any_of(block.rows, block.rows + block.row_count, [=](const scalide_row &row) { return row.of == buffer; }) ||
               std::any_of(block.carries, block.carries + block.carry_count,
                           [=](const scalide_carry &carry) { return carry.init == buffer || carry.after == buffer; });
    };
    return std::any_of(program.blocks, program.blocks + program.block_count, uses);
}

} // namespace scalide

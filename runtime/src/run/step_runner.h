#pragma once
#include "run/loop_arrays.h"
#include "run/loops.h"
#include <algorithm>

namespace scalide {

/// Runs the steps and blocks of a binding in order. `Machine` does the work, on the CPU or on a device:
///   static constexpr uint64_t read_alignment, write_alignment  what kernels need of a row's address and size
///   bool run_steps(int32_t first, int32_t end)                 runs steps without blocks
///   void point(int32_t view, void *memory)                     gives a kernel's view an address
///   bool copy(void *to, const void *from, uint64_t bytes)      in the memory of kernels; so do the next three
///   bool clear(void *memory, uint64_t bytes)
///   bool read(const void *memory, void *value, uint64_t bytes)
///   bool write(void *memory, int32_t value)
///   bool show_loop_step(const scalide_block &block)            what a trace shows after a step of a loop
///   bool show_results(const scalide_block &block)              what it shows at the end of a block
/// A function that returns false has recorded a failure of the run.
template<typename Machine>
class StepRunner {
public:
    StepRunner(scalide_binding &binding, Machine &machine) : binding_(binding), program_(*binding.program), machine_(machine) {}

    bool run() { return run_range(0, program_.step_count, {0, program_.block_count, true}); }

private:
    /// The blocks that may be in a range of steps, and whether one without steps at the end of the range is in it.
    struct Blocks {
        int32_t next, end;
        bool has_end;
    };

    Blocks blocks_in(int32_t index, bool has_end) const { return {index + 1, binding_.layout->blocks[index].end, has_end}; }

    bool run_range(int32_t step, int32_t end, Blocks blocks) {
        for (int32_t i = blocks.next; i < blocks.end; i = binding_.layout->blocks[i].end) {
            const scalide_block &block = program_.blocks[i];
            if (block.first_step < step) continue;
            if (block.first_step >= end && !blocks.has_end) break;
            if (!machine_.run_steps(step, block.first_step) || !run_block(block, i)) return false;
            step = block.end_step;
        }
        return machine_.run_steps(step, end);
    }

    bool run_block(const scalide_block &block, int32_t index) {
        if (block.kind == SCALIDE_BLOCK_SWITCH) return run_switch(block, index);
        LoopArrays<Machine> arrays(binding_, machine_, index);
        int64_t steps = 0;
        bool good = block.kind == SCALIDE_BLOCK_LOOP ? run_loop(block, index, arrays, &steps) : run_while(block, index, arrays, &steps);
        good = good && arrays.finish(steps);
        arrays.leave();
        if (!good) return false;
        binding_.loops.current = loop_around(program_, index);
        return machine_.show_results(block);
    }

    bool begin_step(int32_t index, int64_t step) {
        binding_.loops.current = index;
        binding_.loops.steps[index] = step;
        return may_go_on(binding_);
    }

    bool run_loop(const scalide_block &block, int32_t index, LoopArrays<Machine> &arrays, int64_t *steps) {
        *steps = binding_.layout->blocks[index].length;
        if (block.condition >= 0) {
            int32_t count = 0;
            if (!machine_.read(binding_.memory[block.condition], &count, sizeof(count))) return false;
            *steps = std::clamp<int64_t>(count, 0, *steps);
        }
        if (!arrays.enter(*steps)) return false;
        for (int64_t step = 0; step < *steps; ++step) {
            const int64_t element = block.reverse ? *steps - 1 - step : step;
            if (!begin_step(index, step) || !arrays.point(element)) return false;
            if (block.step >= 0 && !machine_.write(binding_.memory[block.step], static_cast<int32_t>(element))) return false;
            if (!run_range(block.first_step, block.end_step, blocks_in(index, true)) || !end_step(block, arrays, element)) return false;
        }
        return true;
    }

    bool run_while(const scalide_block &block, int32_t index, LoopArrays<Machine> &arrays, int64_t *steps) {
        if (!arrays.enter(-1)) return false;
        for (*steps = 0;; ++*steps) {
            uint8_t goes_on = 0;
            if (!begin_step(index, *steps) || !arrays.point(0)) return false;
            if (!run_range(block.first_step, block.test_end, blocks_in(index, false))) return false;
            if (!machine_.read(binding_.memory[block.condition], &goes_on, sizeof(goes_on))) return false;
            if (goes_on == 0) return true;
            if (block.most_steps > 0 && *steps == block.most_steps) return fail_at_limit(binding_, index);
            if (!run_range(block.test_end, block.end_step, blocks_in(index, true)) || !end_step(block, arrays, 0)) return false;
        }
    }

    bool end_step(const scalide_block &block, LoopArrays<Machine> &arrays, int64_t element) {
        return machine_.show_loop_step(block) && arrays.end_step(element);
    }

    bool run_switch(const scalide_block &block, int32_t index) {
        int32_t branch = 0;
        if (!machine_.read(binding_.memory[block.condition], &branch, sizeof(branch))) return false;
        branch = std::clamp(branch, 0, block.branch_count - 1);
        const int32_t first = branch == 0 ? block.first_step : block.branch_ends[branch - 1];
        const bool is_last = branch + 1 == block.branch_count;
        return run_range(first, block.branch_ends[branch], blocks_in(index, is_last)) && machine_.show_results(block);
    }

    scalide_binding &binding_;
    const scalide_program &program_;
    Machine &machine_;
};

} // namespace scalide

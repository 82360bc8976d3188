#pragma once
#include "base/halide_abi.h"
#include "fuzz/context.h"
#include "scalide/plan.h"
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

/// Plans with changed tables, for fuzzers. Tables are as long as their counts say, at most; names, terms and constants are there.
namespace scalide {

inline void touch(const void *memory, uint64_t bytes) {
    if (bytes == 0) return;
    const auto *at = static_cast<const volatile char *>(memory);
    static_cast<void>(at[0]);
    static_cast<void>(at[bytes - 1]);
}

inline void touch_array(void *, const scalide_traced *, const scalide_array *array) {
    uint64_t bytes = scalide_dtype_size(array->dtype);
    for (int32_t axis = 0; axis < array->rank; ++axis) bytes *= static_cast<uint64_t>(array->extent[axis]);
    touch(array->data, bytes);
}

/// What the runtime believes of an operand's rank (runtime/src/bind/check_program.cpp): a plan has as many extents.
constexpr int32_t most_axes = 64;

/// A plan that may be changed: the tables of a program, copied. `slot` tells a program from its prepare program.
struct Plan {
    std::vector<scalide_symbol> symbols;
    std::vector<scalide_argument> arguments;
    std::vector<scalide_buffer> buffers;
    std::vector<scalide_step> steps;
    std::vector<std::vector<scalide_operand>> operands;
    std::vector<std::vector<scalide_extent>> shapes; ///< most_axes extents each, by buffer and then by operand
    std::vector<std::unique_ptr<scalide_term>> terms;
    scalide_requirement requirement;
    scalide_program program;
    int (*kernel)(void **); ///< stands for every kernel

    explicit Plan(const scalide_program &source, size_t slot = 0)
        : program(source), kernel(slot == 0 ? touch_operands<0> : touch_operands<1>) {
        running[slot] = this;
        symbols.assign(program.symbols, program.symbols + program.symbol_count);
        arguments.assign(program.arguments, program.arguments + program.argument_count);
        buffers.assign(program.buffers, program.buffers + program.buffer_count);
        steps.assign(program.steps, program.steps + program.step_count);
        shapes.reserve(64);
        for (scalide_buffer &buffer : buffers) buffer.shape = copied(buffer.shape, buffer.rank);
        for (scalide_step &step : steps) {
            operands.emplace_back(step.operands, step.operands + step.operand_count);
            for (scalide_operand &operand : operands.back()) operand.shape = copied(operand.shape, operand.rank);
            step.operands = operands.back().data();
            step.kernel = kernel;
        }
        program.symbols = symbols.data();
        program.arguments = arguments.data();
        program.buffers = buffers.data();
        program.steps = steps.data();
        requirement = {"op.field", "b must be enough", shapes[0].data()};
        program.requirements = &requirement;
        program.requirement_count = 1;
    }
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;

    const scalide_extent *copied(const scalide_extent *shape, int32_t rank) {
        static const scalide_term two[] = {{2, {-1, -1, -1, -1}}};
        std::vector<scalide_extent> &copy = shapes.emplace_back(most_axes, scalide_extent{two, 1});
        for (int32_t axis = 0; axis < rank; ++axis) copy[static_cast<size_t>(axis)] = shape[axis];
        return copy.data();
    }

    /// Touches what the operands of the next step say is there.
    template<size_t slot>
    static int touch_operands(void **values) {
        const scalide_step &step = running[slot]->steps[static_cast<size_t>(current[slot]++)];
        for (int32_t i = 0; i < step.operand_count; ++i) {
            if (step.operands[i].kind != SCALIDE_OPERAND_BUFFER) {
                touch(values[1 + i], sizeof(char));
                continue;
            }
            const auto *view = static_cast<const HalideBuffer *>(values[1 + i]);
            uint64_t bytes = view->type.bits / 8;
            for (int32_t axis = 0; axis < view->dimensions; ++axis) bytes *= static_cast<uint64_t>(view->dim[axis].extent);
            touch(view->host, bytes);
        }
        return 0;
    }
    static inline std::array<const Plan *, 2> running = {}; ///< by slot
    static inline std::array<int32_t, 2> current = {};      ///< the next step; set it to 0 before a run
};

/// Changes fields of a plan.
class Changer {
public:
    Changer(Choices &choices, Plan &plan) : choices_(choices), plan_(plan) {}

    void change() {
        switch (choices_.below(8)) {
        case 0: change_program(); break;
        case 1:
            if (!plan_.symbols.empty()) change_symbol(plan_.symbols[0]);
            break;
        case 2: change_argument(plan_.arguments[choices_.below(plan_.arguments.size())]); break;
        case 3:
        case 4: change_buffer(plan_.buffers[choices_.below(plan_.buffers.size())]); break;
        case 5:
        case 6: change_extent(plan_.shapes[choices_.below(plan_.shapes.size())][choices_.below(most_axes)]); break;
        default: change_step(choices_.below(plan_.steps.size()));
        }
    }

private:
    int32_t number() { return static_cast<int32_t>(choices_.number()); }
    /// At most as many as there are.
    void shorten(int32_t &count, size_t most) { count = std::min(number(), static_cast<int32_t>(most)); }

    void change_program() {
        scalide_program &program = plan_.program;
        constexpr std::array<const char *, 5> targets = {"", "x86-64-linux-sse41", "x86-64-linux-none", "---", "arm-64-linux"};
        switch (choices_.below(9)) {
        case 0: shorten(program.symbol_count, plan_.symbols.size()); break;
        case 1: shorten(program.argument_count, plan_.arguments.size()); break;
        case 2: shorten(program.buffer_count, plan_.buffers.size()); break;
        case 3: shorten(program.step_count, plan_.steps.size()); break;
        case 4: shorten(program.scalar_count, 1 << 16); break; // that bind clears
        case 5: program.target = targets[choices_.below(targets.size())]; break;
        case 6: program.device = number(); break;
        case 7: shorten(program.requirement_count, 1); break;
        default: program.plan_version = SCALIDE_PLAN_VERSION + choices_.below(2);
        }
    }
    void change_symbol(scalide_symbol &symbol) {
        std::array<int64_t *, 3> fields = {&symbol.minimum, &symbol.maximum, &symbol.multiple};
        *fields[choices_.below(fields.size())] = choices_.number();
    }
    void change_argument(scalide_argument &argument) {
        std::array<int32_t *, 3> fields = {&argument.role, &argument.data_buffer, &argument.scale_buffer};
        *fields[choices_.below(fields.size())] = number();
    }
    void change_buffer(scalide_buffer &buffer) {
        std::array<int32_t *, 7> fields = {&buffer.dtype,      &buffer.rank,      &buffer.storage, &buffer.index,
                                           &buffer.first_step, &buffer.last_step, &buffer.part};
        *fields[choices_.below(fields.size())] = number();
    }
    void change_extent(scalide_extent &extent) {
        auto &term = plan_.terms.emplace_back(std::make_unique<scalide_term>());
        *term = {choices_.number(), {-1, -1, -1, -1}};
        for (size_t i = choices_.below(SCALIDE_TERM_SYMBOLS + 1); i > 0; --i) term->symbol[i - 1] = number();
        extent = {term.get(), choices_.coin() ? 1 : std::min(number(), 1)};
    }
    void change_step(size_t index) {
        std::vector<scalide_operand> &operands = plan_.operands[index];
        scalide_operand &operand = operands[choices_.below(operands.size())];
        switch (choices_.below(5)) {
        case 0: shorten(plan_.steps[index].operand_count, operands.size()); break;
        case 1: operand.kind = number(); break;
        case 2: operand.index = number(); break;
        case 3: operand.rank = number(); break;
        default: plan_.steps[index].kernel = choices_.coin() ? nullptr : plan_.kernel;
        }
    }

    Choices &choices_;
    Plan &plan_;
};

/// Arrays as the plan wants them for 6 rows, where they are small; memory of exactly their bytes.
class Arrays {
public:
    explicit Arrays(const Plan &plan) {
        for (const scalide_argument &argument : plan.arguments) add(plan, argument);
    }
    std::vector<scalide_array> descriptors;

private:
    static constexpr int64_t most_bytes = 1 << 20; ///< of an array; of a larger one there is no memory

    static int64_t value(const scalide_extent &extent) {
        int64_t sum = 0;
        for (int32_t i = 0; i < extent.count; ++i) {
            int64_t term = extent.terms[i].coefficient;
            for (int32_t symbol : extent.terms[i].symbol) {
                if (symbol >= 0 && __builtin_mul_overflow(term, int64_t(6), &term)) return -1;
            }
            if (__builtin_add_overflow(sum, term, &sum)) return -1;
        }
        return sum;
    }
    void add(const Plan &plan, const scalide_argument &argument) {
        const bool is_there = argument.data_buffer >= 0 && argument.data_buffer < static_cast<int32_t>(plan.buffers.size());
        const scalide_buffer &buffer = plan.buffers[is_there ? static_cast<size_t>(argument.data_buffer) : 0];
        int64_t extents[SCALIDE_MAX_RANK] = {};
        uint64_t bytes = scalide_dtype_size(buffer.dtype);
        const int32_t rank = std::clamp(buffer.rank, 0, SCALIDE_MAX_RANK);
        for (int32_t axis = 0; axis < rank; ++axis) {
            extents[axis] = value(buffer.shape[axis]);
            bytes =
                std::min(bytes * static_cast<uint64_t>(std::clamp(extents[axis], int64_t(0), 2 * most_bytes)), uint64_t(2 * most_bytes));
        }
        void *memory = nullptr;
        expect(posix_memalign(&memory, 64, std::min(bytes, uint64_t(most_bytes))) == 0, "there is memory");
        memory_.emplace_back(static_cast<char *>(memory));
        float *scale = argument.scale_buffer >= 0 ? &scales_[descriptors.size()] : nullptr;
        void *data = bytes <= uint64_t(most_bytes) ? memory : nullptr;
        descriptors.push_back(scalide_dense_array(data, scale, buffer.dtype, buffer.rank, extents));
    }

    struct Free {
        void operator()(char *memory) const { std::free(memory); }
    };
    std::vector<std::unique_ptr<char, Free>> memory_;
    float scales_[8] = {};
};

inline scalide_context *context() {
    static scalide_context *const made = new_context(1);
    return made;
}

} // namespace scalide

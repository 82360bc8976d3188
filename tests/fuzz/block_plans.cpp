// Plans whose blocks are wrong: bind refuses them, or their steps get memory that is there, in every step of a loop.
#include "fuzz/change_buffer.h"
#include "fuzz/context.h"
#include "fuzz/target.h"
#include "runtime/block_plan.h"
#include <array>
#include <memory>
#include <utility>

namespace {

using namespace scalide;
using test::BlockPlan;
using test::BlockRows;

void touch(const void *memory, int64_t bytes) {
    const auto *at = static_cast<const volatile char *>(memory);
    for (int64_t i : {int64_t(0), bytes - 1})
        if (bytes > 0) static_cast<void>(at[i]);
}

scalide_context *context() {
    static scalide_context *const made = new_context(1);
    return made;
}

/// Ends runs of many steps: loops without kernels by the poll, others after some steps.
int polls = 0, kernels = 0;
int is_long(void *) { return ++polls > 2; }

template<size_t count>
int touch_views(void **arguments) {
    if (++kernels == 200) scalide_interrupt(context());
    for (size_t i = 1; i <= count; ++i) {
        const auto *view = static_cast<const HalideBuffer *>(arguments[i]);
        touch(view->host, test::elements(arguments[i]) * view->type.bits / 8);
    }
    return 0;
}

void touch_array(void *, const scalide_traced *, const scalide_array *array) {
    auto bytes = static_cast<int64_t>(scalide_dtype_size(array->dtype));
    for (int32_t axis = 0; axis < array->rank; ++axis) bytes *= array->extent[axis];
    touch(array->data, bytes);
}

/// A scan with a while with a scan, and with a switch.
struct Nest : BlockPlan {
    Nest() {
        const std::vector<int64_t> cube = {3, 2, 4}, matrix = {2, 4}, row = {4};
        const int32_t x = argument("x", SCALIDE_INPUT, SCALIDE_F32, cube), s0 = argument("s0", SCALIDE_INPUT, SCALIDE_F32, row),
                      s = argument("s", SCALIDE_OUTPUT, SCALIDE_F32, row), y = argument("y", SCALIDE_OUTPUT, SCALIDE_F32, cube),
                      count = argument("count", SCALIDE_INPUT, SCALIDE_I32, {}), go = argument("go", SCALIDE_INPUT, SCALIDE_BOOL, {}),
                      io = argument("io", SCALIDE_INOUT, SCALIDE_F32, row);
        const int32_t x_matrix = array("x.matrix", SCALIDE_F32, matrix), x_row = array("x.row", SCALIDE_F32, row),
                      y_matrix = array("y.matrix", SCALIDE_F32, matrix), y_row = array("y.row", SCALIDE_F32, row),
                      outer = array("s.outer", SCALIDE_F32, row), inner = array("s.inner", SCALIDE_F32, row),
                      number = array("i", SCALIDE_I32, {});
        step("test", touch_views<1>, {go});
        step("body", touch_views<5>, {inner, x_row, s, y_row, number});
        step("more", touch_views<2>, {io, y_row});
        step("last", touch_views<2>, {s, io});
        BlockRows &all = block("scan s", SCALIDE_BLOCK_LOOP, -1, 0, 4, 3);
        all.rows = {{x_matrix, x, 0}, {y_matrix, y, 1}};
        all.carries = {{s0, outer, s}, {io, io, io}};
        all.results = {s, y};
        BlockRows &loop = block("while s", SCALIDE_BLOCK_WHILE, 0, 0, 3);
        loop.block.condition = go;
        loop.block.test_end = 1;
        loop.block.most_steps = 3;
        BlockRows &scan = block("scan rows", SCALIDE_BLOCK_LOOP, 1, 1, 3, 2);
        scan.block.condition = count;
        scan.block.step = number;
        scan.rows = {{x_row, x_matrix, 0}, {y_row, y_matrix, 1}};
        scan.carries = {{outer, inner, s}};
        BlockRows &choice = block("switch s", SCALIDE_BLOCK_SWITCH, 0, 3, 4);
        choice.block.condition = count;
        choice.branch_ends = {3, 4, 4};
    }
};

/// Changes one field.
class Changer {
public:
    Changer(Choices &choices, Nest &nest) : choices_(choices), nest_(nest) {}

    void change() {
        BlockRows &block = nest_.blocks[choices_.below(nest_.blocks.size())];
        switch (choices_.below(7)) {
        case 0:
        case 1: change_block(block.block); break;
        case 2:
            if (!block.rows.empty()) change_row(block.rows[choices_.below(block.rows.size())]);
            break;
        case 3:
            if (!block.carries.empty()) change_carry(block.carries[choices_.below(block.carries.size())]);
            break;
        case 4: change_lists(block); break;
        default: change_buffer(nest_.buffers[choices_.below(nest_.buffers.size())], choices_);
        }
    }

private:
    int32_t number() { return static_cast<int32_t>(choices_.number()); }
    int32_t some_buffer() { return choices_.coin() ? number() : static_cast<int32_t>(choices_.below(nest_.buffers.size())); }

    void change_block(scalide_block &block) {
        int32_t *const fields[] = {&block.kind,      &block.parent, &block.first_step, &block.end_step,
                                   &block.condition, &block.step,   &block.reverse,    &block.test_end};
        const size_t field = choices_.below(std::size(fields) + 2);
        if (field < std::size(fields)) {
            *fields[field] = number();
        } else if (field == std::size(fields)) {
            block.most_steps = choices_.number();
        } else {
            block.length = choices_.coin() ? nullptr : nest_.buffers[choices_.below(2)].shape;
        }
    }
    void change_row(scalide_row &row) {
        int32_t *const fields[] = {&row.buffer, &row.of, &row.is_written};
        *fields[choices_.below(std::size(fields))] = some_buffer();
    }
    void change_carry(scalide_carry &carry) {
        int32_t *const fields[] = {&carry.init, &carry.before, &carry.after};
        *fields[choices_.below(std::size(fields))] = some_buffer();
    }
    void change_lists(BlockRows &block) {
        switch (choices_.below(6)) {
        case 0: block.results.push_back(some_buffer()); break;
        case 1: block.branch_ends.push_back(number()); break;
        case 2: block.rows.push_back({some_buffer(), some_buffer(), choices_.coin()}); break;
        case 3: block.carries.push_back({some_buffer(), some_buffer(), some_buffer()}); break;
        case 4: block.rows.clear(); break;
        default: block.carries.clear();
        }
    }

    Choices &choices_;
    Nest &nest_;
};

/// Memory of exactly the bytes of each argument.
class Arrays {
public:
    Arrays(Choices &choices, const Nest &nest) {
        for (const scalide_argument &argument : nest.arguments) {
            const scalide_buffer &buffer = nest.buffers[static_cast<size_t>(argument.data_buffer)];
            int64_t extents[SCALIDE_MAX_RANK] = {};
            size_t bytes = scalide_dtype_size(buffer.dtype);
            for (int32_t axis = 0; axis < buffer.rank; ++axis)
                bytes *= static_cast<size_t>(extents[axis] = buffer.shape[axis].terms->coefficient);
            void *memory = nullptr;
            expect(posix_memalign(&memory, 64, bytes) == 0, "there is memory");
            memory_.emplace_back(static_cast<char *>(memory), std::free);
            std::fill_n(memory_.back().get(), bytes, char(0));
            if (buffer.rank == 0 && bytes > 0) memory_.back().get()[0] = static_cast<char>(choices.byte() % 4);
            descriptors.push_back(scalide_dense_array(memory, nullptr, buffer.dtype, buffer.rank, extents));
        }
    }
    std::vector<scalide_array> descriptors;

private:
    std::vector<std::unique_ptr<char, void (*)(void *)>> memory_;
};

void run(scalide_binding *binding) {
    scalide_non_finite first = {};
    for (int kind = 0; kind < 3; ++kind) {
        polls = kernels = 0;
        const scalide_status status = kind == 0   ? scalide_run(binding)
                                      : kind == 1 ? scalide_run_traced(binding, touch_array, nullptr)
                                                  : scalide_run_checked(binding, &first);
        expect(status == SCALIDE_OK || status == SCALIDE_STEP_LIMIT || status == SCALIDE_INTERRUPTED, "the plan runs");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    Nest nest;
    for (size_t i = choices.below(6); i > 0 && !choices.empty(); --i) Changer(choices, nest).change();
    Arrays arrays(choices, nest);
    scalide_binding *binding = nullptr;
    scalide_set_poll(context(), is_long, nullptr);
    const scalide_status status = scalide_bind(context(), nest.finish(), arrays.descriptors.data(), arrays.descriptors.size(), &binding);
    expect(status == SCALIDE_OK || scalide_message(context())[0] != 0, "a refusal has words");
    if (binding) run(binding);
    scalide_binding_destroy(binding);
    return 0;
}

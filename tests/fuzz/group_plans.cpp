// Plans whose collectives or symbols are wrong: bind refuses them, or ranks exchange memory that is there.
#include "fuzz/change_buffer.h"
#include "fuzz/context.h"
#include "fuzz/target.h"
#include "runtime/block_plan.h"
#include <array>
#include <cstring>
#include <memory>

namespace {

using namespace scalide;
using test::BlockPlan;

constexpr int32_t most_ranks = 5;

/// A rank of a group whose other ranks send the same. It has as many ranks as the input says.
struct Mirror {
    int32_t ranks = 1;

    static int all_gather(void *self, const void *send, void *receive, size_t bytes, char *, size_t) {
        for (int32_t i = 0; i < static_cast<Mirror *>(self)->ranks; ++i)
            std::memcpy(static_cast<char *>(receive) + static_cast<size_t>(i) * bytes, send, bytes);
        return 0;
    }
    static int all_to_all(void *self, const void *send, void *receive, size_t bytes, char *, size_t) {
        std::memcpy(receive, send, bytes * static_cast<size_t>(static_cast<Mirror *>(self)->ranks));
        return 0;
    }
    scalide_transport table() {
        return {sizeof(scalide_transport), ranks, ranks - 1, this, all_gather, all_to_all, [](void *, const char *) {}, [](void *) {}};
    }
};

template<size_t count>
int touch_views(void **arguments) {
    for (size_t i = 1; i <= count; ++i) {
        const auto *view = static_cast<const HalideBuffer *>(arguments[i]);
        const int64_t bytes = test::elements(arguments[i]) * view->type.bits / 8;
        if (bytes > 0) std::memset(view->host, 1, static_cast<size_t>(bytes));
    }
    return 0;
}

/// Sums of two arrays over the ranks of two groups, and a loop of them.
struct Net : BlockPlan {
    const scalide_program *program;

    Net() {
        const int64_t n = symbol("n"), data = group("data"), model = group("model"), c = chunk("c", data, n), d = chunk("d", model, n),
                      r = rank("r", model);
        const int32_t x = argument("x", SCALIDE_INPUT, SCALIDE_F32, {3, n}), u = argument("u", SCALIDE_INPUT, SCALIDE_I16, {n}),
                      y = argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {3, n}), v = argument("v", SCALIDE_OUTPUT, SCALIDE_I16, {n}),
                      w = argument("w", SCALIDE_OUTPUT, SCALIDE_F32, {data, r});
        const int32_t row = array("row", SCALIDE_F32, {n}), sum = array("sum", SCALIDE_F32, {n}),
                      parts = array("parts", SCALIDE_F32, {data, c}), mine = array("mine", SCALIDE_F32, {c}),
                      parts_u = array("parts_u", SCALIDE_I16, {model, d}), mine_u = array("mine_u", SCALIDE_I16, {d}),
                      few = array("few", SCALIDE_F32, {r});
        collective("exchange", SCALIDE_EXCHANGE, data, {{row, parts}});
        step("sum", touch_views<2>, {parts, mine});
        collective("collect", SCALIDE_COLLECT, data, {{mine, sum}, {few, w}});
        collective("exchange_u", SCALIDE_EXCHANGE, model, {{u, parts_u}});
        step("sum_u", touch_views<2>, {parts_u, mine_u});
        collective("collect_u", SCALIDE_COLLECT, model, {{mine_u, v}});
        block("loop", SCALIDE_BLOCK_LOOP, -1, 0, 3, 3).rows = {{row, x, 0}, {sum, y, 1}};
        program = finish();
    }
};

/// Changes one field.
class Changer {
public:
    Changer(Choices &choices, Net &net) : choices_(choices), net_(net) {}

    void change() {
        switch (choices_.below(4)) {
        case 0: change_symbol(net_.symbols[choices_.below(net_.symbols.size())]); break;
        case 1: change_buffer(net_.buffers[choices_.below(net_.buffers.size())], choices_); break;
        case 2: change_moved(); break;
        default: change_collective(net_.collectives[choices_.below(net_.collectives.size())]);
        }
    }

private:
    int32_t number() { return static_cast<int32_t>(choices_.number()); }
    int32_t some_buffer() { return choices_.coin() ? number() : static_cast<int32_t>(choices_.below(net_.buffers.size())); }

    void change_symbol(scalide_symbol &symbol) {
        switch (choices_.below(5)) {
        case 0: symbol.source = static_cast<int32_t>(choices_.below(5)); break;
        case 1: symbol.group = static_cast<int32_t>(choices_.below(net_.symbols.size() + 1)); break;
        case 2: symbol.divided = choices_.coin() ? nullptr : net_.symbol_extent(static_cast<int32_t>(choices_.below(7))); break;
        case 3: symbol.maximum = choices_.number(); break;
        default: symbol.multiple = choices_.number();
        }
    }
    void change_moved() {
        const size_t collective = choices_.below(net_.collectives.size());
        const auto count = static_cast<size_t>(std::clamp(net_.collectives[collective].count, 1, collective == 1 ? 2 : 1));
        net_.set_moved(collective, choices_.below(count), {some_buffer(), some_buffer()});
    }
    /// The count is at most the number of arrays that are there.
    void change_collective(scalide_collective &collective) {
        switch (choices_.below(3)) {
        case 0: collective.kind = number(); break;
        case 1: collective.group = static_cast<int32_t>(choices_.below(net_.symbols.size() + 1)); break;
        default: collective.count = std::min(collective.count, number());
        }
    }

    Choices &choices_;
    Net &net_;
};

/// Memory of exactly the bytes of each argument, with the values of symbols that a correct plan has.
class Arrays {
public:
    Arrays(const Net &net, const std::array<int64_t, 6> &values) {
        for (const scalide_argument &argument : net.arguments) {
            const scalide_buffer &buffer = net.buffers[static_cast<size_t>(argument.data_buffer)];
            int64_t extents[SCALIDE_MAX_RANK] = {};
            size_t bytes = scalide_dtype_size(buffer.dtype);
            for (int32_t axis = 0; axis < buffer.rank; ++axis) {
                const scalide_term &term = buffer.shape[axis].terms[0];
                extents[axis] = term.coefficient * (term.symbol[0] < 0 ? 1 : values[static_cast<size_t>(term.symbol[0])]);
                bytes *= static_cast<size_t>(extents[axis]);
            }
            void *memory = nullptr;
            expect(posix_memalign(&memory, 64, bytes) == 0, "there is memory");
            memory_.emplace_back(static_cast<char *>(memory), std::free);
            std::fill_n(memory_.back().get(), bytes, char(0));
            descriptors.push_back(scalide_dense_array(memory, nullptr, buffer.dtype, buffer.rank, extents));
        }
    }
    std::vector<scalide_array> descriptors;

private:
    std::vector<std::unique_ptr<char, void (*)(void *)>> memory_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    Net net;
    const auto n = static_cast<int64_t>(choices.below(20));
    Mirror mirrors[2];
    scalide_context *context = new_context(1);
    const char *const names[] = {"data", "model"};
    for (size_t i = 0; i < 2; ++i) {
        mirrors[i].ranks = 1 + static_cast<int32_t>(choices.below(most_ranks));
        const scalide_transport table = mirrors[i].table();
        expect(scalide_join(context, names[i], &table) == SCALIDE_OK, "the context joins");
    }
    const int64_t data_ranks = mirrors[0].ranks, model_ranks = mirrors[1].ranks;
    for (size_t i = choices.below(6); i > 0 && !choices.empty(); --i) Changer(choices, net).change();
    const Arrays arrays(
        net, {n, data_ranks, model_ranks, (n + data_ranks - 1) / data_ranks, (n + model_ranks - 1) / model_ranks, model_ranks - 1});
    scalide_binding *binding = nullptr;
    const scalide_status status = scalide_bind(context, net.program, arrays.descriptors.data(), arrays.descriptors.size(), &binding);
    expect(status == SCALIDE_OK || scalide_message(context)[0] != 0, "a refusal has words");
    for (int run = 0; run < 2 && binding; ++run) expect(scalide_run(binding) == SCALIDE_OK, "the plan runs");
    scalide_binding_destroy(binding);
    scalide_context_destroy(context);
    return 0;
}

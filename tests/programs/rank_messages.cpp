#include "ir/text.h"
#include "performance/ranks/counted_transport.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/rules.h"
#include <cstring>
#include <gtest/gtest.h>

// The bytes that a rank sends. One rank runs, and a transport tells it what the other ranks would send.
namespace scalide {

namespace {

using measuring::CountedTransport;

constexpr int64_t elements = 1 << 20;

/// Rank 0 of many ranks that have the same data.
struct EqualRanks {
    int32_t ranks;

    scalide_transport table() {
        const auto copy = [](void *self, const void *send, void *receive, size_t bytes, char *, size_t) {
            for (int32_t rank = 0; rank < static_cast<EqualRanks *>(self)->ranks; ++rank)
                std::memcpy(static_cast<char *>(receive) + static_cast<size_t>(rank) * bytes, send, bytes);
            return 0;
        };
        return {sizeof(scalide_transport), ranks, 0, this, copy, copy, [](void *, const char *) {}, [](void *) {}};
    }
};

/// Sums an array of ones over the ranks. Returns the messages of the run.
std::vector<CountedTransport::Call> messages(const CompiledProgram &compiled, int32_t ranks) {
    EqualRanks equal{ranks};
    CountedTransport counted(equal.table());
    const auto join = [&](scalide_context *context, const char *group) {
        const scalide_transport table = counted.table();
        return scalide_join(context, group, &table);
    };
    const LoadedProgram library(compiled.library(), compiled.name(), join);
    const std::vector<HostArray> results = library.run([](const std::string &name) {
        return to_array(name, {Dtype::f32, {elements}, std::vector<double>(elements, 1)});
    });
    const std::vector<double> sums = to_tensor(results.at(0)).data;
    EXPECT_EQ(std::ranges::count(sums, double(ranks)), elements);
    std::vector<CountedTransport::Call> calls = counted.calls;
    if (calls.size() > 2) calls.erase(calls.begin(), calls.end() - 2); // the first messages of a binding compare the ranks
    return calls;
}

/// A message for each rank is a chunk, padded to 64 bytes, and below f32 a scale, padded too. The limit is relative to the bytes of a ring
/// all-reduce in bf16, which sends 2 (ranks - 1) / ranks elements of 2 bytes.
void check(const std::string &operation, uint64_t width, double limit) {
    const std::string n = std::to_string(elements),
                      text = "program p [data ranks] (x: f32[" + n + "]) -> (y: f32[" + n + "]) {\n  y = " + operation + "\n}\n";
    const CompiledProgram compiled(parse_program(text, "p.scl"), rules(), {});
    for (const int32_t ranks : {2, 7, 64}) {
        const auto chunk = static_cast<uint64_t>((elements + ranks - 1) / ranks),
                   expected = (chunk * width + 63) / 64 * 64 + (width < 4 ? 64 : 0);
        const std::vector<CountedTransport::Call> calls = messages(compiled, ranks);
        ASSERT_EQ(calls.size(), 2u);
        EXPECT_FALSE(calls[0].is_collect);
        EXPECT_TRUE(calls[1].is_collect);
        uint64_t sent = 0;
        for (const CountedTransport::Call &call : calls) {
            EXPECT_EQ(call.bytes, expected) << operation << " with " << ranks << " ranks";
            sent += call.bytes * static_cast<uint64_t>(ranks - 1);
        }
        EXPECT_LE(double(sent), limit * 4 * (ranks - 1) / ranks * double(elements)) << operation << " with " << ranks << " ranks";
    }
}

} // namespace

TEST(programs, ranks_send_f32_like_a_ring) { check("all_reduce(x) {group: data}", 4, 2.001); }

TEST(programs, ranks_send_half_of_a_ring_in_f8) { check("all_reduce_as(x) {group: data, dtype: f8_e4m3fn}", 1, .51); }

TEST(programs, ranks_send_bf16_like_a_ring) { check("all_reduce_as(x) {group: data, dtype: bf16}", 2, 1.01); }

} // namespace scalide

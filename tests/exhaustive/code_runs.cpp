#include "exhaustive/code_runs.h"
#include <algorithm>
#include <bit>

namespace scalide::test {
namespace {

constexpr uint32_t infinity = 0x7f800000u, sign = 0x80000000u;

/// Appends the runs of [first, last], on which the codec is monotone.
void append_runs(const FormatSpec &format, Overflow overflow, uint32_t first, uint32_t last, std::vector<CodeRun> &runs) {
    const auto code_of = [&](uint64_t word) { return encode(format, std::bit_cast<float>(static_cast<uint32_t>(word)), overflow); };
    for (uint64_t start = first; start <= last;) {
        const uint32_t code = code_of(start);
        runs.push_back({static_cast<uint32_t>(start), code});
        uint64_t same = start, different = uint64_t(last) + 1; // `different` has another code or lies beyond
        for (uint64_t step = 1; same + step < different; step *= 2) {
            if (code_of(same + step) == code)
                same += step;
            else
                different = same + step;
        }
        while (same + 1 < different) {
            const uint64_t middle = (same + different) / 2;
            (code_of(middle) == code ? same : different) = middle;
        }
        start = different;
    }
}

} // namespace

std::vector<CodeRun> code_runs(const FormatSpec &format, Overflow overflow) {
    std::vector<CodeRun> runs;
    for (uint32_t side : {0u, sign}) {
        append_runs(format, overflow, side, side | infinity, runs);
        append_runs(format, overflow, (side | infinity) + 1, side | ~sign, runs); // NaN
    }
    return runs;
}

void fill_codes(const std::vector<CodeRun> &runs, uint32_t first, std::vector<uint32_t> &codes) {
    auto run = std::ranges::upper_bound(runs, first, {}, &CodeRun::first) - 1;
    for (size_t i = 0; i < codes.size(); ++run) {
        const uint64_t end = run + 1 == runs.end() ? uint64_t(1) << 32 : (run + 1)->first;
        const size_t stop = std::min<uint64_t>(codes.size(), end - first);
        std::fill(codes.begin() + i, codes.begin() + stop, run->code);
        i = stop;
    }
}

} // namespace scalide::test

#pragma once
#include "ir/dtype.h"
#include <vector>

namespace scalide::test {

/// Consecutive f32 words with one code, from `first` to the next run.
struct CodeRun {
    uint32_t first, code;
};

/// What the software codec makes of all 2^32 f32 words. Rounding is monotone, so that the ends of a run are found by halving: its codes
/// are asked for at both sides of each end.
std::vector<CodeRun> code_runs(const FormatSpec &format, Overflow overflow);

/// The codes of the words from `first` on.
void fill_codes(const std::vector<CodeRun> &runs, uint32_t first, std::vector<uint32_t> &codes);

} // namespace scalide::test

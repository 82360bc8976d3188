#include "lower/sorts/sort_lines.h"
#include <bit>

// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M), which sorts any number of elements. In a pass,
// every element is compared with at most one other, at a distance that is the same for all elements. So passes are vector code. Elements
// carry their position, which makes the order total and the sort stable.
namespace scalide {
using Halide::Expr;

namespace {

using Words = std::vector<Expr>;

/// True if a comes before b: the first differing word decides.
Expr is_before(const Words &a, const Words &b) {
    Expr result = a.back() < b.back();
    for (size_t i = a.size() - 1; i-- > 0;) {
        result = a[i] < b[i] || (a[i] == b[i] && result);
    }
    return result;
}

class SortingNetwork {
public:
    explicit SortingNetwork(SortLines &lines) : lines_(lines), levels_(std::bit_width(uint64_t(std::max<int64_t>(*size(), 1) - 1))) {}

    void lower() {
        Words words;
        for (const SortLines::Key &key : lines_.keys()) words.push_back(key.word);
        words.push_back(Halide::cast<uint32_t>(place_));
        network_(lines_.args({place_, half_})) = Halide::Tuple(std::vector<Expr>(words.size(), Halide::undef<uint32_t>()));
        network_(lines_.args({place_, 0})) = Halide::Tuple(words);
        run_passes(words.size());
        network_.bound(place_, 0, lines_.size).bound(half_, 0, 2); // otherwise an empty line would be rounded up to one element
        lines_.stages.network = network_;
        const int last = levels_ * (levels_ + 1) / 2 % 2;
        lines_.bind([&](const Index &index) {
            const Halide::FuncRef at = network_(lines_.args({index[lines_.axis], last}, index));
            return Halide::cast<int32_t>(at[int(words.size()) - 1]);
        });
    }

private:
    std::optional<int64_t> size() const { return Halide::Internal::as_const_int(lines_.size); }

    Words words(const Expr &place, const Expr &half, size_t count) const {
        Halide::FuncRef ref = network_(lines_.args({place, half}));
        Words result;
        for (size_t i = 0; i < count; i++) result.push_back(ref[int(i)]);
        return result;
    }

    /// Pass (level a, step b <= a) compares positions i and i + d for which (i & p) == r. p is the largest power of two below the number of
    /// elements on level 0, and halves on each level. In step 0, d = p and r = 0; in later steps, d = 2^(levels - b) - p and r = p.
    void run_passes(size_t count) {
        Halide::RDom r({{0, lines_.size}, {0, levels_}, {0, levels_}}, "pass");
        const Expr i = r[0], b = r[1], a = r[2];
        r.where(b <= a);
        const Expr one = 1, p = one << Halide::max(levels_ - 1 - a, 0);
        const Expr distance = select(b == 0, p, (one << Halide::max(levels_ - b, 0)) - p), bit = select(b == 0, 0, p);
        const Expr is_low = (i & p) == bit && i + distance < lines_.size;
        const Expr is_high = i >= distance && ((i - distance) & p) == bit;
        const Expr partner = Halide::clamp(select(is_low, i + distance, is_high, i - distance, i), 0, lines_.size - 1);
        const Expr from = (a * (a + 1) / 2 + b) % 2;
        const Words mine = words(i, from, count), other = words(partner, from, count);
        const Expr takes = select(is_low, is_before(other, mine), is_before(mine, other));
        Words chosen;
        for (size_t w = 0; w < count; w++) chosen.push_back(select(takes, other[w], mine[w]));
        network_(lines_.args({i, 1 - from})) = Halide::Tuple(chosen);
    }

    SortLines &lines_;
    int levels_;
    Halide::Var half_{"half"}, place_ = lines_.vars[lines_.axis];
    Halide::Func network_{"network"};
};

} // namespace

void sort_by_network(SortLines &lines) { SortingNetwork(lines).lower(); }

} // namespace scalide

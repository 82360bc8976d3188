#include "lower/halide/strict.h"
#include "lower/sorts/sort_lines.h"
#include <array>
#include <bit>

// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M), which sorts any number of elements in place. It
// compares the same pairs in every line, so a vector holds one element of several lines. Elements carry their position, which makes the
// order total and the sort stable. The last key and the position are one integer, so lines with a single key need one minimum and one
// maximum for a pair.
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

Words choose(const Expr &condition, const Words &a, const Words &b) {
    Words chosen;
    for (size_t i = 0; i < a.size(); i++) chosen.push_back(select(condition, a[i], b[i]));
    return chosen;
}

/// Returns the words in order: the smaller ones first.
std::array<Words, 2> in_order(const Words &a, const Words &b) {
    if (a.size() == 1) return {Words{min(a[0], b[0])}, Words{max(a[0], b[0])}};
    const Expr swaps = is_before(b, a);
    return {choose(swaps, b, a), choose(swaps, a, b)};
}

class SortingNetwork {
public:
    SortingNetwork(SortLines &lines, int size) : lines_(lines), size_(size), levels_(std::bit_width(unsigned(size - 1))) {}

    void lower() {
        const Halide::RDom place(0, size_, "place");
        const Words words = keys_with_places(place);
        count_ = words.size();
        Words none;
        for (const Expr &word : words) none.push_back(Halide::undef(word.type()));
        set(lines_.vars[lines_.axis], none);
        set(place, words);
        compare_pairs();
        network_.bound(lines_.vars[lines_.axis], 0, size_ + 1);
        lines_.stages.network = network_;
        lines_.bind([&](const Index &index) -> Expr {
            const Expr last = words_at(index[lines_.axis], index).back();
            return Halide::cast<int32_t>(last & Halide::Internal::make_const(last.type(), (1 << levels_) - 1));
        });
    }

private:
    /// Returns the keys of the elements at a place; the last one has the place in its lowest bits. A vector may have more lanes than there
    /// are lines left. They repeat the last line.
    Words keys_with_places(const Expr &place) const {
        Index index(lines_.vars.size());
        for (size_t i = 0; i < index.size(); i++) {
            index[i] = i == lines_.axis ? place : Halide::min(lines_.vars[i], lines_.extent(i) - 1);
        }
        const std::vector<SortLines::Key> keys = lines_.keys(index);
        Words words;
        for (size_t i = 0; i + 1 < keys.size(); i++) words.push_back(keys[i].word);
        const bool is_narrow = keys.back().bits + levels_ < 32;
        const Halide::Type type = Halide::Int(is_narrow ? 32 : 64);
        words.push_back((Halide::cast(type, keys.back().word) << levels_) | Halide::cast(type, place));
        return words;
    }

    std::vector<Expr> args(const Expr &slot, const Index &index) const {
        std::vector<Expr> args = lines_.args({}, index);
        args.push_back(slot);
        return args;
    }

    Words words_at(const Expr &slot, const Index &index) const {
        const Halide::FuncRef at = network_(args(slot, index));
        if (count_ == 1) return {at};
        Words words;
        for (size_t i = 0; i < count_; i++) words.push_back(at[int(i)]);
        return words;
    }
    Words words_at(const Expr &slot) const { return words_at(slot, Index(lines_.vars.begin(), lines_.vars.end())); }

    void set(const Expr &slot, const Words &words) {
        const std::vector<Expr> at = args(slot, Index(lines_.vars.begin(), lines_.vars.end()));
        if (count_ == 1) {
            network_(at) = words[0];
        } else {
            network_(at) = Halide::Tuple(words);
        }
    }

    /// Pass (level a, step b <= a) orders positions i and i + d for which (i & p) == r. p is the largest power of two below the number of
    /// elements on level 0, and halves on each level. In step 0, d = p and r = 0; in later steps, d = 2^(levels - b) - p and r = p. An
    /// exchange has three moves, because an update stores one element: the smaller one goes to a spare slot at the end of the line, the
    /// larger one to its place, and the smaller one to its place.
    void compare_pairs() {
        Halide::RDom r({{0, 3}, {0, size_ / 2}, {0, levels_}, {0, levels_}}, "pass");
        const Expr move = r[0], pair = r[1], b = r[2], a = r[3], one = 1, p = one << Halide::max(levels_ - 1 - a, 0);
        const Expr distance = select(b == 0, p, (one << Halide::max(levels_ - b, 0)) - p);
        const Expr lower = pair + (pair & -p) + select(b == 0, 0, p), higher = lower + distance;
        r.where(b <= a);
        r.where(higher < size_);
        // The conditions hold, but Halide does not see bounds in them.
        const Expr low = Halide::unsafe_promise_clamped(lower, 0, size_ - 1), high = Halide::unsafe_promise_clamped(higher, 0, size_ - 1);
        const auto [first, second] = in_order(words_at(low), words_at(high));
        set(select(move == 0, size_, move == 1, high, low), choose(move == 0, first, choose(move == 1, second, words_at(size_))));
    }

    SortLines &lines_;
    int size_, levels_;
    size_t count_ = 1; ///< of words
    Halide::Func network_{"network"};
};

} // namespace

void sort_by_network(SortLines &lines) { SortingNetwork(lines, int(*Halide::Internal::as_const_int(lines.size))).lower(); }

} // namespace scalide

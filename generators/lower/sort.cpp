#include "expr/base_operators.h"
#include "lower/outputs.h"
#include "lower/strict.h"
#include <algorithm>
#include <bit>

// sort: the order of the elements along an axis, elementwise before it. Batcher's merge exchange (Knuth, The Art of Computer Programming 3,
// 5.2.2, algorithm M), which sorts any number of elements: in a pass every element is compared with at most one other at a distance that is
// the same for all, so that passes are vector code. Elements carry their place, which makes the order total and the sort stable.
//
// stages: network (place, two halves that passes go between, other axes); update 0 fills it, update 1 runs the passes
// facts:  axis: buffer dimension that is sorted
namespace scalide {
using Halide::Expr;

namespace {

using Words = std::vector<Expr>;

/// An i32 that is ordered as the element is: NaN after all numbers, -0 as +0.
Expr order_word(const Expr &value, bool descending) {
    Expr word = Halide::cast<int32_t>(value);
    if (value.type() == Halide::UInt(32)) word = Halide::reinterpret<int32_t>(value ^ bits32(0x80000000u));
    if (value.type().is_float()) {
        const Expr zero = float32(0), plain = select(strict_eq(value, zero), zero, scalide::is_nan(value), float32(0x7fc00000u), value);
        const Expr bits = Halide::reinterpret<int32_t>(float_bits(plain));
        word = bits ^ ((bits >> 31) & 0x7fffffff);
    }
    return descending ? ~word : word;
}

/// a comes before b: the first word that differs decides.
Expr is_before(const Words &a, const Words &b) {
    Expr result = a.back() < b.back();
    for (size_t i = a.size() - 1; i-- > 0;) {
        result = a[i] < b[i] || (a[i] == b[i] && result);
    }
    return result;
}

/// ceil(log2(n)), 0 of nothing.
Expr log2_ceil(const Expr &n) {
    if (const auto known = Halide::Internal::as_const_int(n)) {
        return *known <= 1 ? 0 : 64 - std::countl_zero(uint64_t(*known - 1));
    }
    return select(n <= 1, 0, 32 - Halide::cast<int32_t>(Halide::count_leading_zeros(n - 1)));
}

class SortingNetwork {
public:
    SortingNetwork(Lowering &lowering, const Node &node)
        : lowering_(lowering), node_(node), axis_(size_t(node.attributes.at("dimension").integer.value())), vars_(axis_vars(type().rank())),
          size_(lowering.values.extent(type().shape[axis_])), levels_(log2_ceil(size_)) {}

    void lower() {
        const bool descending = node_.attributes.at("descending").word == "true";
        Words words;
        for (const ValueId key : node_.operands) {
            words.push_back(order_word(lowering_.values.at(key, Index(vars_.begin(), vars_.end())), descending));
        }
        words.push_back(vars_[axis_]);
        network_(args(vars_[axis_], half_)) = Halide::Tuple(std::vector<Expr>(words.size(), Halide::undef<int32_t>()));
        network_(args(vars_[axis_], 0)) = Halide::Tuple(words);
        run_passes();
        network_.bound(vars_[axis_], 0, size_).bound(half_, 0, 2); // else an empty line would be rounded up to an element
        const Expr last = (levels_ * (levels_ + 1) / 2) % 2;
        lowering_.values.bind(node_.results[0], [this, last](const Index &index) {
            std::vector<Expr> place = {index[axis_], last};
            for (size_t i = index.size(); i-- > 0;) {
                if (i != axis_) {
                    place.push_back(index[i]);
                }
            }
            return Halide::FuncRef(network_(place))[int(node_.operands.size())];
        });
        lowering_.kernel.stages["network"] = {network_};
        lowering_.kernel.facts["axis"] = type().rank() - 1 - int(axis_);
        add_output(lowering_, {0}, vars_);
    }

private:
    const Type &type() const { return lowering_.kernel.program.type(node_.results[0]); }

    /// A place, a half, and the other axes, innermost first.
    std::vector<Expr> args(const Expr &place, const Expr &half) const {
        std::vector<Expr> result = {place, half};
        for (size_t i = vars_.size(); i-- > 0;) {
            if (i != axis_) {
                result.push_back(vars_[i]);
            }
        }
        return result;
    }

    Words words(const Expr &place, const Expr &half) const {
        Halide::FuncRef ref = network_(args(place, half));
        Words result;
        for (size_t i = 0; i <= node_.operands.size(); i++) {
            result.push_back(ref[int(i)]);
        }
        return result;
    }

    /// Pass (level a, step b <= a) compares places i and i + d where i has bit p as r says: p halves from level to level, from the largest
    /// power of two below the number of elements on; d = p and r = 0 in step 0, then d = 2^(levels - b) - p and r = p.
    void run_passes() {
        Halide::RDom r({{0, size_}, {0, levels_}, {0, levels_}}, "pass");
        const Expr i = r[0], b = r[1], a = r[2];
        r.where(b <= a);
        const Expr one = 1, p = one << Halide::max(levels_ - 1 - a, 0);
        const Expr distance = select(b == 0, p, (one << Halide::max(levels_ - b, 0)) - p), bit = select(b == 0, 0, p);
        const Expr is_low = (i & p) == bit && i + distance < size_;
        const Expr is_high = i >= distance && ((i - distance) & p) == bit;
        const Expr partner = Halide::clamp(select(is_low, i + distance, is_high, i - distance, i), 0, size_ - 1);
        const Expr from = (a * (a + 1) / 2 + b) % 2;
        const Words mine = words(i, from), other = words(partner, from);
        const Expr takes = select(is_low, is_before(other, mine), is_before(mine, other));
        Words chosen;
        for (size_t w = 0; w < mine.size(); w++) {
            chosen.push_back(select(takes, other[w], mine[w]));
        }
        network_(args(i, 1 - from)) = Halide::Tuple(chosen);
    }

    Lowering &lowering_;
    const Node &node_;
    size_t axis_;
    std::vector<Halide::Var> vars_;
    Expr size_, levels_;
    Halide::Var half_{"half"};
    Halide::Func network_{"network"};
};

} // namespace

void lower_sort(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const auto is_sort = [](const Node &node) { return find_base_operator(node.op)->shape == Shape::sort; };
    const auto node = std::ranges::find_if(program.nodes, is_sort);
    internal_check(node != program.nodes.end() && program.results.size() == 1, "a sort kernel must give the order that a sort makes");
    SortingNetwork(lowering, *node).lower();
}

} // namespace scalide

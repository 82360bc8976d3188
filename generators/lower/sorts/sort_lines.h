#pragma once
#include "lower/values/kinds.h"

namespace scalide {

/// The lines of a sort kernel: what is sorted, and along which axis.
class SortLines {
public:
    SortLines(Lowering &lowering, const Node &node);

    /// A key of an element as u32 with the same order. NaN comes after all numbers, and -0 equals +0. Only the lowest `bits` may be
    /// non-zero.
    struct Key {
        Halide::Expr word;
        int bits;
    };
    std::vector<Key> keys(const Index &index) const;
    std::vector<Key> keys() const { return keys(Index(vars.begin(), vars.end())); }
    /// Returns the arguments of a Func of lines: `first`, then the axes that are not sorted, innermost first.
    std::vector<Halide::Expr> args(std::vector<Halide::Expr> first, const Index &index) const;
    /// The same arguments at the loops of the result.
    std::vector<Halide::Expr> args(std::vector<Halide::Expr> first) const {
        return args(std::move(first), Index(vars.begin(), vars.end()));
    }
    /// Returns true if there are at least 8 lines, or a symbolic number of lines.
    bool are_many() const;
    /// Returns the extent of an axis of the result.
    Halide::Expr extent(size_t i) const { return lowering.values.extent(lowering.kernel.program.type(node.results[0]).shape[i]); }
    /// Defines that the result is `read(index)`.
    void bind(const Values::Reader &read);

    Lowering &lowering;
    const Node &node;
    SortStages &stages;
    size_t axis;
    std::vector<Halide::Var> vars;
    Halide::Expr size;
};

/// Sorts by Batcher's merge exchange. Lines have at least 2 elements, and their size is static.
void sort_by_network(SortLines &lines);
/// Sorts by radix: digits of the keys, the lowest digit first.
void sort_by_digits(SortLines &lines);

} // namespace scalide

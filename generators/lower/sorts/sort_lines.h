#pragma once
#include "lower/kinds.h"

namespace scalide {

/// The lines of a sort kernel: what is sorted, along which axis.
class SortLines {
public:
    SortLines(Lowering &lowering, const Node &node);

    /// An element's keys as u32 that are ordered as they are: NaN after all numbers, -0 as +0. Only the lowest `bits` are not zero.
    struct Key {
        Halide::Expr word;
        int bits;
    };
    std::vector<Key> keys() const;
    /// Arguments of a Func of lines: its own first, then the axes that are not sorted, innermost first.
    std::vector<Halide::Expr> args(std::vector<Halide::Expr> first, const Index &index) const;
    /// The same at the loops of the result.
    std::vector<Halide::Expr> args(std::vector<Halide::Expr> first) const {
        return args(std::move(first), Index(vars.begin(), vars.end()));
    }
    /// The result is what `read` gives for its index.
    void bind(const Values::Reader &read);

    Lowering &lowering;
    const Node &node;
    SortStages &stages;
    size_t axis;
    std::vector<Halide::Var> vars;
    Halide::Expr size;
};

/// Batcher's merge exchange.
void sort_by_network(SortLines &lines);
/// By digits of the keys, the lowest first.
void sort_by_digits(SortLines &lines);

} // namespace scalide

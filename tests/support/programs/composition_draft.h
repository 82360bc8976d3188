#pragma once
#include "rulebook/builder.h"
#include <algorithm>
#include <random>

namespace scalide {

/// The parts that stages of program_of_compositions share: a program under construction with its current value, drawn extents and
/// arguments, conditions on coordinates, reductions.
class CompositionDraft {
public:
    static constexpr int64_t most_elements = 70000; ///< most elements of an array

protected:
    explicit CompositionDraft(std::mt19937 &random);

    int64_t below(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }
    bool coin() { return below(2) == 0; }
    template<typename List>
    const auto &pick(const List &list) {
        return list[size_t(below(int64_t(std::size(list))))];
    }
    const Type &type(ValueId value) const { return program_.type(value); }
    Extents shape() const { return type(value_).shape; } // a copy: types move when nodes are added
    int64_t rank() const { return type(value_).rank(); }
    Extent last() const { return shape().back(); }
    /// The extents of the other axes.
    Extents without(int64_t axis) const;
    /// Elements of an array. A symbol counts as 64, since a test draws smaller values for the symbols of a program that is too large.
    static int64_t count(const Extents &extents);

    ValueId add(const std::string &op, const std::vector<ValueId> &operands, Attributes attributes = {}) {
        return builder_.add_one(op, operands, std::move(attributes));
    }
    /// Adds a node with the operands `x` and `number`.
    ValueId with_number(const std::string &op, ValueId x, double number);
    ValueId broadcast(ValueId x) { return builder_.broadcast(x, shape()); }

    /// Draws an extent such that an array of it and of `others` has at most `most` elements.
    Extent extent_beside(const Extents &others, int64_t most = most_elements);
    ValueId argument(Type type);
    /// An argument of floats, in f32 or widened to it.
    ValueId array(const Extents &shape);
    /// Makes the current value an argument of this rank.
    void begin(int64_t rank);

    /// Bools in the shape of the value that depend on the row and the column of an element alone: tril, a band, a checkerboard, and so on.
    static constexpr size_t mask_forms = 12;
    ValueId mask(size_t form);

    enum Reduction : size_t {
        sum,
        max,
        min,
        l1,
        l2,
        mean,
        arg_max,
        any,
        all,
        finite,
        row_sums,
        row_maxima,
        column_sums,
        column_means,
        itself
    };
    static constexpr size_t reduction_forms = 15;
    ValueId reduced(Reduction form);

    std::mt19937 &random_;
    Program program_;
    Builder builder_;
    int64_t symbolic_; ///< 0: all extents are static, 1: some are symbols, 2: all that can be
    ValueId value_ = -1, first_ = -1;
    bool needs_elements_ = false; ///< an argmax of no elements is an error

private:
    ValueId count_along(int64_t axis);
    struct Term;
    struct Mask;
    static const Mask masks[mask_forms];
    ValueId side(const Term &term, int64_t offset, int64_t row, int64_t column);
};

} // namespace scalide

#include "support/programs/composition_draft.h"
#include "support/programs/rules.h"
#include <numeric>

namespace scalide {

namespace {

using Integers = std::vector<int64_t>;

constexpr int64_t panels[] = {1, 3, 17, 63, 64, 65, 100, 127, 129, 200, 257};
constexpr int64_t size_of_symbol = 64;
constexpr int64_t offsets[] = {1, 2, 16, 63, 64, 80, 100};
constexpr int64_t drawn = -1;

} // namespace

CompositionDraft::CompositionDraft(std::mt19937 &random) : random_(random), builder_(rules(), program_), symbolic_(below(3)) {
    program_.name = "compositions";
}

Extents CompositionDraft::without(int64_t axis) const {
    Extents others = shape();
    others.erase(others.begin() + axis);
    return others;
}

int64_t CompositionDraft::count(const Extents &extents) {
    int64_t elements = 1;
    for (const Extent &extent : extents) elements *= extent.is_static() ? extent.value() : size_of_symbol;
    return elements;
}

ValueId CompositionDraft::with_number(const std::string &op, ValueId x, double number) {
    const Type like = type(x);
    return add(op, {x, builder_.broadcast(builder_.constant(number, like.dtype), like.shape)});
}

Extent CompositionDraft::extent_beside(const Extents &others, int64_t most) {
    static const char *const names[] = {"m", "n", "k"};
    const bool is_symbol = symbolic_ == 2 || (symbolic_ == 1 && coin());
    if (is_symbol && count(others) * size_of_symbol <= most) return Extent::symbol(pick(names));
    const auto end = std::ranges::find_if(panels, [&](int64_t extent) { return extent * count(others) > most; });
    return panels[below(std::max<int64_t>(end - std::begin(panels), 1))];
}

ValueId CompositionDraft::argument(Type type) {
    const ValueId value = add_value(program_, "x" + std::to_string(program_.arguments.size()), std::move(type));
    program_.arguments.push_back({value});
    declare_symbols(program_);
    return value;
}

ValueId CompositionDraft::array(const Extents &shape) {
    return below(8) == 0 ? builder_.convert(argument({Dtype::bf16, shape}), Dtype::f32) : argument({Dtype::f32, shape});
}

void CompositionDraft::begin(int64_t rank) {
    Extents shape;
    if (rank == 4) shape = {1 + below(2), 1 + below(70), 1 + below(3)};
    if (rank == 3) shape.push_back(symbolic_ == 2 && coin() ? Extent::symbol("b") : Extent(1 + below(3)));
    while (int64_t(shape.size()) < rank) shape.push_back(extent_beside(shape));
    value_ = first_ = array(shape);
}

/// In the shape of the value, or along one axis and then broadcast.
ValueId CompositionDraft::count_along(int64_t axis) {
    const Attribute whole = to_attribute(shape());
    if (coin()) return add("iota", {}, {{"shape", whole}, {"dimension", axis}});
    const ValueId line = add("iota", {}, {{"shape", to_attribute(Extents{shape()[size_t(axis)]})}, {"dimension", int64_t(0)}});
    return add("broadcast_in_dim", {line}, {{"shape", whole}, {"dims", to_attribute(Integers{axis})}});
}

/// One side of a comparison of coordinates: a function of the row and the column of an element, then an integer operator with a number.
struct CompositionDraft::Term {
    enum Start { row, column, sum, distance, number, last_column } start;
    const char *op = "";
    int64_t operand = drawn;
};
struct CompositionDraft::Mask {
    const char *compare;
    Term left, right;
};
const CompositionDraft::Mask CompositionDraft::masks[mask_forms] = {
    {"ge", {Term::row}, {Term::column}},                                                     // tril
    {"le", {Term::row}, {Term::column}},                                                     // triu
    {"ge", {Term::row}, {Term::column, "add"}},                                              // tril of another diagonal
    {"ge", {Term::row}, {Term::number}},                                                     // rows
    {"lt", {Term::column}, {Term::number}},                                                  // columns
    {"eq", {Term::row}, {Term::column}},                                                     // eye
    {"le", {Term::distance}, {Term::number}},                                                // band
    {"eq", {Term::sum, "rem", 2}, {Term::number, "", 0}},                                    // checkerboard
    {"eq", {Term::row, "div"}, {Term::column, "div"}},                                       // blocks
    {"lt", {Term::row}, {Term::column, "div"}},                                              // a slope
    {"eq", {Term::column}, {Term::last_column}},                                             // the last column
    {"gt", {Term::column, "shift_right_logical", 4}, {Term::row, "shift_right_logical", 5}}, // steps
};

ValueId CompositionDraft::side(const Term &term, int64_t offset, int64_t row, int64_t column) {
    const auto number = double(term.operand == drawn ? offset : term.operand);
    const auto start = [&] {
        switch (term.start) {
        case Term::row: return count_along(row);
        case Term::column: return count_along(column);
        case Term::sum: return add("add", {count_along(row), count_along(column)});
        case Term::distance: return add("abs", {add("sub", {count_along(row), count_along(column)})});
        case Term::number: return broadcast(builder_.constant(number, Dtype::i32));
        case Term::last_column: break;
        }
        const ValueId size = builder_.size(shape()[size_t(column)], Dtype::i32);
        return broadcast(add("sub", {size, builder_.constant(1, Dtype::i32)}));
    }();
    return *term.op ? with_number(term.op, start, number) : start;
}

ValueId CompositionDraft::mask(size_t form) {
    const Mask &mask = masks[form];
    const bool is_last = rank() == 2 || coin();
    const int64_t column = is_last ? rank() - 1 : 1 + below(rank() - 1), row = is_last ? rank() - 2 : below(column);
    const int64_t offset = pick(offsets);
    const ValueId left = side(mask.left, offset, row, column);
    return add(mask.compare, {left, side(mask.right, offset, row, column)});
}

ValueId CompositionDraft::reduced(Reduction form) {
    enum Axes { every, last, first };
    struct Row {
        Axes axes;
        const char *before, *op, *after = ""; ///< elementwise, reducing, elementwise
    };
    static const Row rows[reduction_forms] = {{every, "", "reduce_sum"},
                                              {every, "", "reduce_max"},
                                              {every, "", "reduce_min"},
                                              {every, "abs", "reduce_sum"},
                                              {every, "square", "reduce_sum", "sqrt"},
                                              {every, "", "mean"},
                                              {every, "", "argmax"},
                                              {every, "gt", "reduce_or"},
                                              {every, "lt", "reduce_and"},
                                              {every, "is_finite", "reduce_and"},
                                              {last, "", "reduce_sum"},
                                              {last, "", "reduce_max"},
                                              {first, "", "reduce_sum"},
                                              {first, "square", "mean"},
                                              {every, "", ""}};
    static const double limits[] = {-1, 0.5, 3, 1e6};
    const auto &[axes, before, op, after] = rows[form];
    Integers reduced(static_cast<size_t>(rank()));
    std::iota(reduced.begin(), reduced.end(), 0);
    if (axes != every) reduced = {axes == last ? rank() - 1 : 0};
    ValueId x = value_;
    if (*before) x = form == any || form == all ? with_number(before, x, pick(limits)) : add(before, {x});
    if (form == arg_max) {
        needs_elements_ = true;
        const ValueId line = add("reshape", {x}, {{"shape", to_attribute(Extents{element_count(shape())})}});
        return add(op, {line}, {{"axis", int64_t(0)}});
    }
    if (*op) x = add(op, {x}, {{"axes", to_attribute(reduced)}});
    return *after ? add(after, {x}) : x;
}

} // namespace scalide

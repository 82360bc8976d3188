#include "expr/base_operators.h"
#include "expr/error.h"
#include "expr/operator_rows.h"
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace scalide {

namespace {

constexpr ShapeWords words[] = {
    {Shape::elementwise, "elementwise", "out[i] = f(a[i], b[i], ...); all shapes are equal (`which` of select_n may be a scalar)"},
    {Shape::movement, "movement", "out[i] = in[g(i)], or a fill value: reshape, transpose, pad; in gather, g reads indices"},
    {Shape::source, "source", "no operands: constant, iota"},
    {Shape::reduce, "reduce", "reduces axes: reduce_sum, argmax"},
    {Shape::scan, "scan", "out[i] reduces the elements up to i along an axis: cumsum"},
    {Shape::scatter, "scatter", "a copy of an array with updates at given indices"},
    {Shape::sort, "sort", "the sorted order of elements along an axis: argsort"},
    {Shape::contract, "contract", "sums of products over axes of two arrays: dot_general"},
    {Shape::window, "window", "out[i] reduces window i: reduce_window_sum, convolutions"},
    {Shape::collective, "collective", "elements of arrays of all ranks of a group: exchange, collect"},
};

} // namespace

std::span<const ShapeWords> shape_words() { return words; }

std::string_view to_string(Shape shape) { return std::ranges::find(words, shape, &ShapeWords::shape)->name; }

std::span<const BaseOperator> base_operators() {
    static const std::vector<BaseOperator> rows = [] {
        std::vector<BaseOperator> all;
        for (const auto part : {elementwise_operators(), array_operators()}) all.insert(all.end(), part.begin(), part.end());
        return all;
    }();
    return rows;
}

const BaseOperator *find_base_operator(std::string_view name) {
    static const std::unordered_map<std::string_view, const BaseOperator *> by_name = [] {
        std::unordered_map<std::string_view, const BaseOperator *> rows;
        for (const BaseOperator &row : base_operators()) rows.emplace(row.name, &row);
        return rows;
    }();
    const auto row = by_name.find(name);
    return row == by_name.end() ? nullptr : row->second;
}

const BaseOperator &base_operator(std::string_view name) {
    const BaseOperator *row = find_base_operator(name);
    if (row == nullptr) throw InternalError("internal error: '" + std::string(name) + "' is no base operator");
    return *row;
}

bool moves_elements(const BaseOperator &op) {
    return op.shape == Shape::movement || op.shape == Shape::collective || (op.shape == Shape::scatter && op.fold.empty());
}

bool is_collective(std::string_view op) {
    const BaseOperator *row = find_base_operator(op);
    return row != nullptr && row->shape == Shape::collective;
}

bool folds_in_any_order(const BaseOperator &op) { return !op.fold.empty() && !op.gives_place && base_operator(op.fold).is_idempotent; }

int operator_cost(std::string_view op) {
    const BaseOperator *row = find_base_operator(op);
    return row == nullptr ? 1 : row->cost;
}

} // namespace scalide

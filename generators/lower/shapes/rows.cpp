#include "lower/shapes/rows.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "ir/shape.h"
#include "lower/shapes/axis_links.h"
#include <algorithm>
#include <numeric>
#include <set>

namespace scalide {
namespace {

/// The shape of the reductions' operands and its number of row axes, both without axes of extent 1.
struct Space {
    Extents shape;
    int row_axes = 0;
};

/// Finds the iteration space. Reductions of whole arrays may occur next to row reductions; they decide only if there is no other reduction.
Space find_space(const Program &program) {
    Space space;
    for (const Node &node : program.nodes) {
        if (is_reduction(node)) {
            const Extents shape = without_ones(program.type(node.operands[0]).shape);
            const int rows = int(without_ones(program.type(node.results[0]).shape).size());
            if (rows > space.row_axes || (rows == space.row_axes && shape.size() > space.shape.size())) {
                space = {shape, rows};
            }
        }
    }
    return space;
}

class RowMerger {
public:
    explicit RowMerger(const Program &program) : program_(program) {
        const Space space = find_space(program);
        space_ = space.shape;
        rows_ = {space_.begin(), space_.begin() + space.row_axes};
        columns_ = {space_.begin() + space.row_axes, space_.end()};
    }

    Program merge() {
        start();
        for (const Argument &argument : program_.arguments) {
            copy_argument(argument);
        }
        for (const Node &node : program_.nodes) {
            copy(node);
        }
        for (Result result : program_.results) {
            result.value = get(result.value, merged_shape(program_.type(result.value).shape));
            merged_.results.push_back(result);
        }
        return std::move(merged_);
    }

private:
    void start() {
        merged_.name = program_.name;
        merged_.attributes = program_.attributes;
        merged_.symbols = program_.symbols;
        fresh_.assign(program_.values.size(), -1);
    }

    Extents merged_shape(const Extents &shape) const {
        Extents merged = rows_.empty() ? Extents{} : Extents{element_count(rows_)};
        const Extents walked = without_ones(shape);
        if (walked == space_) {
            merged.push_back(element_count(columns_));
            return merged;
        }
        return walked == rows_ ? merged : shape;
    }

    /// True if the operand's axes become the first axes of the result, in order.
    bool leads(const Node &node) const {
        const Extents &from = program_.type(node.operands[0]).shape, &to = program_.type(node.results[0]).shape;
        const AxisLink link = first_link(program_, node);
        std::ptrdiff_t next = 0;
        for (size_t axis = 0; axis < from.size(); axis++) {
            if (from[axis] == Extent(1)) {
                continue;
            }
            const int place = link.sides[0].axes[axis];
            if (place < 0 || std::ssize(without_ones({to.begin(), to.begin() + place})) != next++) {
                return false;
            }
        }
        return true;
    }

    /// True for movement that reads a row, or an element, of its operand to compute the same row or element of its result. Along single
    /// axes, its index would consist of quotients and remainders, and Halide does not see that these give the row itself.
    bool stays_in_rows(const Node &node) const {
        constexpr std::string_view operators[] = {"broadcast_in_dim", "reshape", "transpose"};
        if (std::find(std::begin(operators), std::end(operators), node.op) == std::end(operators)) {
            return false;
        }
        const Extents from = without_ones(program_.type(node.operands[0]).shape), to = without_ones(program_.type(node.results[0]).shape);
        return (from == rows_ || from == space_) && (to == rows_ || to == space_) && leads(node);
    }

    /// True if the node works element by element on merged axes. Other nodes move elements along single axes.
    bool is_merged(const Node &node) const {
        const BaseOperator *op = find_base_operator(node.op);
        return op->shape == Shape::elementwise || op->shape == Shape::reduce || stays_in_rows(node);
    }

    /// Merges the axes of an argument if no node needs them.
    void copy_argument(Argument argument) {
        Type type = program_.type(argument.value);
        bool is_moved = false;
        for (const Node &node : program_.nodes) {
            is_moved = is_moved || (!is_merged(node) && std::count(node.operands.begin(), node.operands.end(), argument.value) != 0);
        }
        if (!is_moved) {
            type.shape = merged_shape(type.shape);
        }
        const ValueId old = argument.value;
        argument.value = fresh_[old] = add_value(merged_, program_.value_name(old), type);
        merged_.arguments.push_back(argument);
    }

    /// Returns the new value of `old`, in this shape.
    ValueId get(ValueId old, const Extents &shape) {
        const Type &type = merged_.type(fresh_[old]);
        if (type.shape == shape) {
            return fresh_[old];
        }
        ValueId &reshaped = reshaped_[{fresh_[old], shape}];
        if (reshaped == 0) {
            Node node;
            node.op = "reshape";
            node.operands = {fresh_[old]};
            node.attributes["shape"] = to_attribute(shape);
            reshaped = add_node(merged_, node, {{type.dtype, shape}}, program_.value_name(old))[0];
        }
        return reshaped;
    }

    void copy(Node node) {
        const ValueId old = node.results[0];
        Type type = program_.type(old);
        const bool merges = is_merged(node);
        const bool is_over_rows = is_reduction(node) && leaves_columns(program_.type(node.operands[0]).shape, reduced_axes(node));
        for (ValueId &operand : node.operands) {
            const Extents &shape = program_.type(operand).shape;
            operand = get(operand, merges ? merged_shape(shape) : shape);
        }
        if (merges) {
            merge_attributes(node, type, is_over_rows);
        }
        node.results.clear();
        fresh_[old] = add_node(merged_, node, {type}, program_.value_name(old))[0];
    }

    /// Sets `type` to the merged type of the result and adapts axes. `is_over_rows`: the node reduces the rows.
    void merge_attributes(Node &node, Type &type, bool is_over_rows) {
        type.shape = merged_shape(type.shape);
        const Extents &shape = merged_.type(node.operands[0]).shape;
        if (is_reduction(node) && node.attributes.contains("axis")) {
            node.attributes["axis"] = int64_t(is_over_rows ? 0 : type.rank());
        } else if (is_reduction(node)) {
            node.attributes["axes"] = to_attribute(is_over_rows ? count_from(0, 1) : count_from(type.rank(), int(shape.size())));
        } else if (find_base_operator(node.op)->shape == Shape::movement) {
            node.op = shape == type.shape ? "reshape" : "broadcast_in_dim";
            node.attributes = {{"shape", to_attribute(type.shape)}};
            if (shape != type.shape) {
                node.attributes["dims"] = to_attribute(count_from(0, int(shape.size())));
            }
        }
    }

    static std::vector<int64_t> count_from(int first, int end) {
        std::vector<int64_t> numbers(end - first);
        std::iota(numbers.begin(), numbers.end(), first);
        return numbers;
    }

    const Program &program_;
    Extents space_, rows_, columns_;
    Program merged_;
    std::vector<ValueId> fresh_;
    std::map<std::pair<ValueId, Extents>, ValueId> reshaped_;
};

} // namespace

Program merge_rows(const Program &program) { return RowMerger(program).merge(); }

} // namespace scalide

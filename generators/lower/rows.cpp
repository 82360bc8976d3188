#include "lower/rows.h"
#include "expr/base_operators.h"
#include "lower/reduction.h"
#include <numeric>
#include <set>

namespace scalide {
namespace {

/// The shape of the reductions' operands, and how many of its axes are rows.
struct Space {
    Extents shape;
    int row_axes = 0;
};

/// Reductions of whole arrays, which may stand beside those of rows, tell only of kernels that have no other.
Space find_space(const Program &program) {
    Space space;
    for (const Node &node : program.nodes) {
        if (is_reduction(node)) {
            const int rows = program.type(node.results[0]).rank(), rank = program.type(node.operands[0]).rank();
            if (rows > space.row_axes || (rows == space.row_axes && rank > int(space.shape.size()))) {
                space = {program.type(node.operands[0]).shape, rows};
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

    bool is_needed() const { return rows_.size() > 1 || columns_.size() > 1; }

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
        if (shape == space_) {
            merged.push_back(element_count(columns_));
            return merged;
        }
        return shape == rows_ ? merged : shape;
    }

    /// A broadcast of one value a row to the row's elements.
    bool is_row_broadcast(const Node &node) const {
        std::vector<int64_t> axes(rows_.size());
        std::iota(axes.begin(), axes.end(), 0);
        return node.op == "broadcast_in_dim" && program_.type(node.results[0]).shape == space_ &&
               to_integers(node.attributes.at("dims")) == axes;
    }

    /// Works index by index on merged axes; everything else moves elements along single axes.
    bool is_merged(const Node &node) const {
        const BaseOperator *op = find_base_operator(node.op);
        return op->shape == Shape::elementwise || op->shape == Shape::reduce || is_row_broadcast(node);
    }

    /// An argument is merged itself when nothing needs its axes.
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

    /// The new value of `old`, in this shape.
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
        for (ValueId &operand : node.operands) {
            const Extents &shape = program_.type(operand).shape;
            operand = get(operand, merges ? merged_shape(shape) : shape);
        }
        if (merges) {
            merge_attributes(node, type);
        }
        node.results.clear();
        fresh_[old] = add_node(merged_, node, {type}, program_.value_name(old))[0];
    }

    /// `type` becomes the merged type of the result.
    void merge_attributes(Node &node, Type &type) {
        type.shape = merged_shape(type.shape);
        if (is_reduction(node) && node.attributes.count("axis")) {
            node.attributes["axis"] = int64_t(type.rank());
        } else if (is_reduction(node)) {
            const int rank = merged_.type(node.operands[0]).rank();
            std::vector<int64_t> axes;
            for (int axis = type.rank(); axis < rank; axis++) {
                axes.push_back(axis);
            }
            node.attributes["axes"] = to_attribute(axes);
        } else if (node.op == "broadcast_in_dim") {
            node.attributes["dims"] = to_attribute(rows_.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{0});
            node.attributes["shape"] = to_attribute(type.shape);
        }
    }

    const Program &program_;
    Extents space_, rows_, columns_;
    Program merged_;
    std::vector<ValueId> fresh_;
    std::map<std::pair<ValueId, Extents>, ValueId> reshaped_;
};

} // namespace

Program merge_rows(const Program &program) {
    RowMerger merger(program);
    return merger.is_needed() ? merger.merge() : program;
}

} // namespace scalide

#pragma once
#include "expr/base_operators.h"
#include "kinds/access.h"

namespace scalide {

/// A kernel as the functions of its kind look at it. Shapes are without axes of extent 1.
class KernelView {
public:
    /// Every node is a base operator with one result (kernel_kinds.cpp has checked it).
    explicit KernelView(const Program &kernel);

    const Program &program() const { return program_; }
    const std::vector<Node> &nodes() const { return program_.nodes; }
    static Shape walk(const Node &node) { return find_base_operator(node.op)->shape; }
    const Extents &shape(ValueId value) const { return shapes_[value]; }
    const Extents &shape(const Node &node) const { return shapes_[node.results[0]]; }

    /// True for a node that does more than compute or move one element: a reduction, a product, a scan, a window ...
    static bool is_walk_of_its_own(const Node &node);
    /// The value follows from such a node, or is its result.
    bool is_after(ValueId value) const { return after_[value]; }
    bool is_after(const Node &node) const { return after_[node.results[0]]; }
    /// What a node reads follows from such a node.
    bool reads_after(const Node &node) const;
    /// The node reads all of that at its own index.
    bool reads_after_in_place(const Node &node) const;

    /// A reduction of all elements.
    bool folds_all(const Node &node) const { return walk(node) == Shape::reduce && shape(node).empty(); }
    /// The axes that a reduction folds, ascending, of the operand's own shape.
    static std::vector<int64_t> folded_axes(const Node &node);
    /// They stand behind all that are left, axes of extent 1 not counted.
    bool folds_trailing(const Node &node) const;
    /// They stand before all that are left.
    bool folds_leading(const Node &node) const;

private:
    const Program &program_;
    std::vector<Extents> shapes_; ///< by value
    std::vector<bool> after_;     ///< by value
};

/// True for operators that are about formats (convert_element_type, bitcast_convert_type): they alone compute on narrow floats.
bool converts(const BaseOperator &op);

/// `<op>.<result>: <requirement>, got <got>`: what is wrong with a node.
std::string say(const KernelView &kernel, const Node &node, const std::string &requirement, const std::string &got);
/// The shape of a value as messages have it: `[b, 10]`.
std::string say_shape(const Extents &shape);

/// The contract of a kind beyond what all kernels have to be: why a kernel is none of that kind, empty when it is one. One function a
/// kind; kernel_kinds.h says what may stand in each.
std::string why_no_scalar(const KernelView &kernel);
std::string why_no_map(const KernelView &kernel);
std::string why_no_transpose(const KernelView &kernel);
std::string why_no_tiled(const KernelView &kernel);
std::string why_no_row(const KernelView &kernel);
std::string why_no_column(const KernelView &kernel);
std::string why_no_full(const KernelView &kernel);
std::string why_no_contract(const KernelView &kernel);
std::string why_no_scan(const KernelView &kernel);
std::string why_no_scatter(const KernelView &kernel);
std::string why_no_sort(const KernelView &kernel);
std::string why_no_window(const KernelView &kernel);

} // namespace scalide

#pragma once
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "kinds/access.h"

namespace scalide {

/// A kernel with the facts that its kind's check needs. Shapes omit axes of extent 1.
class KernelView {
public:
    /// Every node must be a base operator with one result; kernel_kinds.cpp checks this first.
    explicit KernelView(const Program &kernel);

    const Program &program() const { return program_; }
    const std::vector<Node> &nodes() const { return program_.nodes; }
    static Shape walk(const Node &node) { return find_base_operator(node.op)->shape; }
    const Extents &shape(ValueId value) const { return shapes_[value]; }
    const Extents &shape(const Node &node) const { return shapes_[node.results[0]]; }

    /// True for a node that does more than compute or move single elements: a reduction, matmul, scan, window and so on.
    static bool is_walk_of_its_own(const Node &node);
    /// True if the value is computed by such a node or depends on one.
    bool is_after(ValueId value) const { return after_[value]; }
    bool is_after(const Node &node) const { return after_[node.results[0]]; }
    /// True if an operand of the node is such a value.
    bool reads_after(const Node &node) const;
    /// True if the node reads all such operands at its own index.
    bool reads_after_in_place(const Node &node) const;

    /// True for a reduction of all elements.
    bool folds_all(const Node &node) const { return is_reduction(node) && shape(node).empty(); }

private:
    const Program &program_;
    std::vector<Extents> shapes_; ///< by value
    std::vector<bool> after_;     ///< by value
};

/// True for operators that convert formats (convert_element_type, bitcast_convert_type). Only they compute with low-precision floats.
bool converts(const BaseOperator &op);

/// Formats what is wrong with a node: `<op>.<result>: <requirement>, got <got>`.
std::string say(const KernelView &kernel, const Node &node, const std::string &requirement, const std::string &got);
/// Formats a shape for messages: `[b, 10]`.
std::string say_shape(const Extents &shape);

/// Check the contract of each kind, in addition to the contract of all kernels. They return why a kernel is not of that kind; empty if it
/// is. README.md describes what each kind may contain.
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
std::string why_no_small(const KernelView &kernel);

} // namespace scalide

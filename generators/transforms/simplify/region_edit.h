#pragma once
#include "rulebook/builder.h"
#include "transforms/simplify/facts.h"
#include <functional>

namespace scalide {

/// A node with regions that rules change. Its operands are values of the program that grows before the node. Its regions are copies,
/// because nodes may share them. Arguments and results have the numbers that they have now; rules remove them.
class RegionEdit {
public:
    /// `is_read`: by result of the node, whether something reads it.
    RegionEdit(const Node &node, std::vector<bool> is_read, Builder &builder, Facts &facts);

    Node node; ///< operator, operands and attributes
    std::vector<Program> regions;
    Builder &builder; ///< adds nodes before the node
    Facts &facts;     ///< about values before the node

    bool is_loop() const;
    Program &body() { return regions.back(); }
    const Program &body() const { return regions.back(); }
    size_t argument_count() const { return body().arguments.size(); }
    size_t result_count() const { return body().results.size(); }
    bool is_read(size_t result) const { return is_read_[original_[result]]; }
    /// Returns the operand of an argument; -1 for `step`.
    ValueId operand(size_t argument) const;
    /// True for an argument that is the operand itself in each step.
    bool is_capture(size_t argument) const;
    /// True for a loop that runs all steps of its length.
    bool runs_all_steps() const { return node.op == "scan" && !node.attributes.contains("count"); }

    /// Removes an argument that no region reads, and its operand.
    void drop_argument(size_t argument);
    /// Removes a result. The argument of a carry stays as a capture of the operand.
    void drop_result(size_t result);
    /// Readers of the result read `value`, which comes before the node. Removes the result.
    void give(size_t result, ValueId value);
    /// Readers of the result read result `same`, an earlier one. Removes the result.
    void merge_results(size_t result, size_t same);
    /// Adds a capture to all regions, or an element to the body of a loop. Returns its number.
    size_t add_capture(ValueId operand, const std::string &name);
    size_t add_element(ValueId operand, const std::string &name);
    /// Returns the stack of a value of the body of a loop, [length, ...]: that of a result, or of one that this adds.
    ValueId add_stack(ValueId value);
    /// True for a result of which add_stack() returned the stack.
    bool is_stacked(size_t result) const { return stacks_[original_[result]] >= 0; }
    /// `add` adds nodes with the builder. They come after the node.
    void add_after(const std::function<void()> &add);
    /// Adds the stack of the numbers of the steps before the node: 0, 1 ...
    ValueId step_numbers();
    /// Makes an element `step`, or a capture of another operand. Regions must read the argument by its new type.
    void make_step(size_t argument);
    void make_capture(size_t argument, ValueId operand);
    /// Readers of an argument read the value that `make` adds at the start of a region.
    void replace_argument(Program &region, size_t argument, const std::function<ValueId(Builder &builder, ValueId argument)> &make);

    /// Removes the nodes of regions that nothing reads.
    void remove_dead_nodes();
    /// Adds the node, unless it has no results. `made` are the results that it had first. Returns a value for each of them; -1 for one that
    /// nothing reads.
    std::vector<ValueId> finish(const std::vector<Value> &made);

private:
    std::vector<bool> is_read_;    ///< by original result
    std::vector<ValueId> given_;   ///< by original result; -1: a result of the node, or unread
    std::vector<size_t> same_;     ///< by original result: the original result that it equals
    std::vector<size_t> original_; ///< by result
    std::vector<ValueId> stacks_;  ///< by original result: what add_stack() returned; -1 if it did not
    std::vector<Node> after_;
};

} // namespace scalide

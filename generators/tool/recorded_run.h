#pragma once
#include "interpret/interpret.h"
#include <compare>
#include <map>
#include <set>

namespace scalide {

/// A value of a program or of one of its regions.
struct ValueRef {
    const Program *program = nullptr;
    ValueId value = -1;
    auto operator<=>(const ValueRef &) const = default;
};

/// What depends on what in a program with regions. The program must outlive the graph.
class ValueGraph {
public:
    explicit ValueGraph(const Program &program);

    const Program &program() const { return program_; }
    /// True for the program and its regions, but not for the value of a composite.
    bool knows(const Program &program) const { return producers_.contains(&program); }
    /// Returns the program and its regions.
    std::vector<const Program *> programs() const;
    const std::vector<int> &producers_of(const Program &program) const { return producers_.at(&program); }
    /// Returns nullptr for an argument.
    const Node *producer(const ValueRef &value) const;
    /// Returns the values that a value is computed from. An argument of a region comes from an operand of the node. A value that a loop
    /// carries comes from the value before the first step and from the previous step.
    std::vector<ValueRef> sources(const ValueRef &value) const;
    /// True if the value depends on an argument.
    bool varies(const ValueRef &value) const { return varies_.contains(value); }

private:
    struct Owner {
        const Program *program;
        const Node *node;
    };
    void add(const Program &program);
    std::vector<ValueRef> of_region_result(const Node &node, const ValueRef &value) const;
    std::vector<ValueRef> of_region_argument(const ValueRef &value) const;

    const Program &program_;
    std::map<const Program *, std::vector<int>> producers_;
    std::map<const Program *, Owner> owners_; ///< of regions
    std::set<ValueRef> varies_;
};

/// `exact`: in f64 without rounding, and without the limits before a conversion, so that forms of a tensor that differ only by rounding and
/// by scales have the same numbers. `stored`: the numbers of compiled kernels.
enum class RecordedNumbers { exact, stored };

/// The float values of one run of the interpreter. Values in a loop are those of its last step.
class RecordedRun {
public:
    RecordedRun(const ValueGraph &graph, const std::vector<Array> &inputs, const Rulebook &rulebook, RecordedNumbers numbers);

    /// Returns nullptr if the value did not run or is no float.
    const Array *find(const ValueRef &value) const;
    /// Returns the values in the order in which they ran first, after the arguments.
    const std::vector<ValueRef> &order() const { return order_; }
    const std::vector<Array> &outputs() const { return outputs_; }

private:
    void record(const ValueRef &value, const Array &array);

    std::map<ValueRef, Array> values_;
    std::vector<ValueRef> order_;
    std::vector<Array> outputs_;
};

} // namespace scalide

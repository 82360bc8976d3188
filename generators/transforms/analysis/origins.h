#pragma once
#include "transforms/analysis/directions.h"
#include <optional>

namespace scalide {

/// Returns the operand whose values the node only stores in another form: rounded, widened, reshaped, limited to the largest number of a
/// format, or multiplied or divided by a scalar (a scale). Returns -1 if the node computes.
ValueId formed_operand(const Program &program, const std::vector<int> &producers, const Node &node);

/// An operand of `min` or `max` that the node limits to the largest number of a format, as scaled_by does before a conversion. Of a select
/// between limited numbers and others: the limited numbers.
struct Limited {
    ValueId operand = -1;
    double largest = 0; ///< the largest number of the format
};

/// Returns the operand that a node limits, or nothing if the node is no such limit.
std::optional<Limited> limited_operand(const Program &program, const std::vector<int> &producers, const Node &node);

/// Where a value of a later pass comes from.
struct Origin {
    /// A tensor of the user's program (an argument or a value) if the value is its rounded, moved or rescaled copy or its amax. Otherwise
    /// the operator that computes the value, with its scope: `block1/attention/dot_general`.
    std::string tensor;
    Location location;               ///< of the argument or of the node
    std::string op = {}, scope = {}; ///< of the node that computes the tensor; empty for an argument
    Direction direction = Direction::none;

    /// True if the tensor has no name of the user, so that it is called by its operator.
    bool is_unnamed() const { return !op.empty() && tensor == path(); }
    /// Returns the operator with its scope, such as `block1/attention/dot_general`.
    std::string path() const { return scope.empty() ? op : scope + "/" + op; }
};

/// Finds the origins of values in a program of base operators.
class Origins {
public:
    /// `program` is the program of the directions, or one of its regions. Both must outlive the object.
    Origins(const Program &program, const Directions &directions);
    Origin of(ValueId value) const;

private:
    void measure(const Node &node);
    ValueId copied(const Node &node) const;
    /// `tensor` may be empty: then the operator and its scope are the name.
    Origin computed(const std::string &tensor, const Node &node) const;

    const Program &program_;
    const Directions &directions_;
    const std::vector<int> producers_;
    std::vector<int> arguments_;             ///< by value: the index of the argument; -1: it is no argument
    std::map<std::string, ValueId> by_name_; ///< all values
    std::vector<bool> constants_;            ///< by value: it depends on no argument
    std::vector<ValueId> magnitudes_;        ///< by value: the tensor whose magnitudes it has; -1: none
    std::vector<ValueId> measured_;          ///< by value: the tensor whose amax or norm alone decides it; -1: none
};

/// Returns the origins of all values by name. A result of the program has its own name, and the new value of an inout argument has the name
/// of the argument.
std::map<std::string, Origin> origins_by_name(const Program &program);

} // namespace scalide

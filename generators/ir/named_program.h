#pragma once
#include "ir/program.h"
#include <optional>
#include <unordered_map>

namespace scalide {

/// An operand in program text: a value, or a number that becomes a constant.
struct NamedOperand {
    ValueId value = -1;
    Attribute number;
};

/// A program under construction, with an index of its values by name.
class NamedProgram {
public:
    /// Returns the value with this name, or -1.
    ValueId find(const std::string &name) const;
    /// Adds a value with a new name.
    ValueId define(const std::string &name, Type type);

    /// Appends operands to `node`. A number becomes a `constant` node. Its dtype is the dtype of the first operand that is not bool;
    /// otherwise bool if there is a bool operand, else f32. It is broadcast to the shape of the first operand with axes. It stays a scalar
    /// if shapes are unknown, and for base operators that are not elementwise (the fill value of a pad). The names of new values start with
    /// `name`.
    void add_operands(Node &node, const std::vector<NamedOperand> &operands, const std::string &name);

    /// Gives the constants of add_operands their final names. Call it when all other names are known.
    void name_constants();

    Program program;

private:
    ValueId add_constant(const Node &like, const Attribute &number, const Type &type, const std::string &name);
    ValueId add_helper(Node node, const std::string &name, Type type);

    std::unordered_map<std::string, ValueId> names_;
    std::vector<ValueId> helpers_;
};

} // namespace scalide

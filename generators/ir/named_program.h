#pragma once
#include "ir/program.h"
#include <optional>
#include <unordered_map>

namespace scalide {

/// An operand as the text has it: a value, or a number that becomes a constant.
struct NamedOperand {
    ValueId value = -1;
    Attribute number;
};

/// A program that grows node by node, with its values by name.
class NamedProgram {
public:
    /// The value of that name, or -1.
    ValueId find(const std::string &name) const;
    /// A value of a name that is not taken yet.
    ValueId define(const std::string &name, Type type);

    /// Appends to `node` its operands. A number becomes a `constant` node of the dtype of the first value that is not a bool (of a bool
    /// when there is no other, f32 when there is none), broadcast to the shape of the first value with axes. It stays rank 0 where
    /// shapes are unknown and for base operators that are not elementwise (the fill of a pad). `name` starts the names of these values.
    void add_operands(Node &node, const std::vector<NamedOperand> &operands, const std::string &name);

    /// Names what add_operands made, now that all other names are known.
    void name_constants();

    Program program;

private:
    ValueId add_constant(const Node &like, const Attribute &number, const Type &type, const std::string &name);
    ValueId add_helper(Node node, const std::string &name, Type type);

    std::unordered_map<std::string, ValueId> names_;
    std::vector<ValueId> helpers_;
};

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Returns the result types of an operator for operands of these types. Completes the attributes: adds defaults and counts axes from the
/// front. Throws UserError at `where` if the operands or attributes do not fit: a wrong number or class of operands, different dtypes with
/// the same letter, a violated constraint (`where`), an unknown or missing attribute. `names` are the names of the operands in messages.
std::vector<Type> infer_result_types(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where,
                                     const std::vector<std::string> &names = {});

/// Appends nodes to a program. Types come from the rules. New nodes get the scope, role and location of the builder.
class Builder {
public:
    Builder(const Rulebook &rulebook, Program &program) : rulebook_(rulebook), program_(program) {}

    /// New nodes get the scope, role and location of `node`.
    void stamp_like(const Node &node);
    void set_role(Role role) { role_ = role; }

    /// Appends a node and returns its results. Throws UserError if the operands or attributes do not fit the rule.
    std::vector<ValueId> add(const std::string &op, const std::vector<ValueId> &operands, Attributes attributes = {},
                             const std::string &name = "");
    /// Appends a node of an operator with one result.
    ValueId add_one(const std::string &op, const std::vector<ValueId> &operands, Attributes attributes = {}, const std::string &name = "");

    /// Appends a scalar `constant`. NaN and infinities are allowed.
    ValueId constant(double value, Dtype dtype = Dtype::f32);
    /// Appends a scalar with the value of an extent: a `size` node, or a constant for a static extent.
    ValueId size(const Extent &extent, Dtype dtype = Dtype::f32);
    /// Broadcasts `value` to `shape` as NumPy does. Returns `value` if the shapes are equal. For rule text and the DSL only.
    ValueId broadcast(ValueId value, const Extents &shape);
    /// Broadcasts the operands of an elementwise operator to their common shape, as NumPy does. Operands of other operators stay as they
    /// are. Throws UserError if the shapes do not broadcast.
    std::vector<ValueId> broadcast_operands(const Rule &rule, std::vector<ValueId> operands);
    /// Casts a value. Returns it if it has this dtype.
    ValueId convert(ValueId value, Dtype dtype);
    /// Returns the operands with i32 instead of i64 where the rule takes an index. An index beyond the range of i32 becomes the nearest
    /// i32, which is out of range of every axis.
    std::vector<ValueId> narrowed(const Rule &rule, std::vector<ValueId> operands);

    const Rulebook &rulebook() const { return rulebook_; }
    Program &program() { return program_; }
    const Type &type(ValueId value) const { return program_.type(value); }
    /// The place in the source of a user that new nodes get.
    const Location &location() const { return location_; }

private:
    const Rulebook &rulebook_;
    Program &program_;
    std::string scope_;
    Role role_ = Role::primal;
    Location location_;
};

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Result types of `op` on operands of these types, and its attributes with defaults filled in and axes made non-negative.
/// Throws UserError at `where` when the operands do not fit: wrong count or class, tied dtypes that differ, a constraint
/// (`<file>:<line>: dot_general.where.c1: contracting extents must match, got [5] and [6]. ...`), an unknown or missing attribute.
std::vector<Type> infer_result_types(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where);

/// Appends nodes to a program; types come from the rules. Holds the scope, role and location that new nodes get.
class Builder {
public:
    Builder(const Rulebook &rulebook, Program &program) : rulebook_(rulebook), program_(program) {}

    /// Nodes made from here on look as if written at `node`: its scope, role and location.
    void stamp_like(const Node &node);
    void set_role(Role role) { role_ = role; }

    std::vector<ValueId> add(const std::string &op, const std::vector<ValueId> &operands, Attributes attributes = {},
                             const std::string &name = "");
    /// add() for operators with one result.
    ValueId add_one(const std::string &op, const std::vector<ValueId> &operands, Attributes attributes = {}, const std::string &name = "");

    /// Rank-0 `constant`; NaN and infinities allowed.
    ValueId constant(double value, Dtype dtype = Dtype::f32);
    /// Rank-0 `size`: the value of an extent, a constant when it is static.
    ValueId size(const Extent &extent, Dtype dtype = Dtype::f32);
    /// `value` broadcast to `shape` by trailing alignment, rank-0 and extent-1 axes growing (rule text and DSL only); itself when equal.
    ValueId broadcast(ValueId value, const Extents &shape);
    /// convert_element_type; itself when it has that dtype.
    ValueId convert(ValueId value, Dtype dtype);

    const Rulebook &rulebook() const { return rulebook_; }
    Program &program() { return program_; }
    const Type &type(ValueId value) const { return program_.type(value); }

private:
    const Rulebook &rulebook_;
    Program &program_;
    std::string scope_;
    Role role_ = Role::primal;
    Location location_;
};

} // namespace scalide

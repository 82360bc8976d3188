#pragma once
#include "expr/error.h"
#include "ir/attribute.h"
#include "ir/names.h"
#include "ir/type.h"
#include <memory>

namespace scalide {

/// Index into Program::values.
using ValueId = int;

/// Which side of a differentiation a node belongs to: policies tell primal from cotangent operands by it.
enum class Role : uint8_t { primal, cotangent };

/// What an array is a part of, once propagate_scales has split scaled arrays into data and scale. Nothing else says so: any array may have
/// any name. Of an argument or a result `of` is the array that a caller knows, a whole one has none, and the scale stands right behind the
/// data. Of a value it is the tensor of the source that the value is a form of (rounded, rescaled), for who looks at it (scalide_trace).
struct ArrayPart {
    enum class Kind : uint8_t { whole, data, scale }; // scalide_part has the same numbers
    Kind kind = Kind::whole;
    std::string of; ///< the name of the scaled array

    bool is_scale() const { return kind == Kind::scale; }
    /// The name of the array, where `own` is that of the argument, result or value.
    const std::string &array(const std::string &own) const { return of.empty() ? own : of; }
    bool operator==(const ArrayPart &) const = default;
};

/// One array: an argument or the result of exactly one node. Names are unique in a program, and may be any text (is_name).
struct Value {
    std::string name;
    Type type;
    ArrayPart part = {};
};

/// One operation. `op` is a LAX name (a rule) or `call`, whose attribute `program` names a sub-program.
struct Node {
    std::string op;
    std::vector<ValueId> operands;
    Attributes attributes;
    std::vector<ValueId> results;
    std::string scope; ///< "mlp/0": from `scope` blocks; policies match it by glob
    Role role = Role::primal;
    Location location;
};

/// A parameter of a program. An inout argument is overwritten by the Result that names it. One with an initial value is state that the
/// policy brings along, not the program: its elements have that value before the first run.
struct Argument {
    ValueId value = -1;
    bool scaled = false; ///< carries its own scale (before propagate_scales, which makes two parts of it)
    bool inout = false;
    ArrayPart part = {};
    Location location = {}; ///< where it is declared
    std::optional<int64_t> initial = {};
};

/// A value that leaves a program, as a new array, or as what the inout argument number `argument` holds afterwards.
struct Result {
    std::string name;
    ValueId value = -1;
    bool scaled = false;
    int argument = -1;
    ArrayPart part = {};
};

/// A named extent, with the values it may take.
struct Symbol {
    std::string name;
    int64_t minimum = 0, maximum = 2147483647, multiple = 1;
    bool operator==(const Symbol &) const = default;
};

/// An array program in single-assignment form: nodes stand in an order in which they can run. A model, its gradient, its scaled
/// form and a kernel are all Programs; a pass is a function from Program to Program.
struct Program {
    std::string name;
    Attributes attributes;       ///< settings of the program: strategy, rounding; of a kernel: kind ...
    std::vector<Symbol> symbols; ///< all that stand in types and attributes, with or without bounds
    std::vector<Argument> arguments;
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<Result> results;
    std::vector<Program> programs; ///< sub-programs, each before its first use; they have none of their own
    Names names;                   ///< of `values`: use rename_value, or make it anew where names change otherwise

    const Type &type(ValueId value) const { return values[value].type; }
    const std::string &value_name(ValueId value) const { return values[value].name; }
    /// Sub-program by name; throws InternalError when there is none.
    const Program &program(const std::string &name) const;
};

/// Adds a value with a fresh name: `name` itself, or `name` followed by the first free number.
ValueId add_value(Program &program, const std::string &name, Type type, ArrayPart part = {});
/// Gives a value another name; false, and nothing is changed, where a value has it.
bool rename_value(Program &program, ValueId value, const std::string &name);
/// Appends a node and its result values (named after `name`, or after the operator when it is empty). Returns the results.
std::vector<ValueId> add_node(Program &program, Node node, const std::vector<Type> &types, const std::string &name = "");

/// Adds to `symbols`, with default bounds, each symbol in the type of an argument that is not there yet. Whoever builds a program
/// calls it when the arguments are there.
void declare_symbols(Program &program);

/// For each value the number of its uses: operands and results of the program.
std::vector<int> count_uses(const Program &program);
/// For each value the index of the node that makes it; -1 for arguments.
std::vector<int> producers(const Program &program);

/// Equal up to locations and value numbering: same text.
bool equal(const Program &a, const Program &b);

/// A copy whose values are numbered afresh and named by their order (`%` free: a0 a1 .. for arguments, v0 v1 .. for others) and
/// whose unused values are gone. Scope, role and location are gone, dead nodes too; the name is `kernel`, results are
/// r0 r1 .., sub-programs p0 p1 ..; symbols keep their names. Two kernels that do the same have the same canonical text; it is the
/// cache key.
Program canonical(const Program &program);

} // namespace scalide

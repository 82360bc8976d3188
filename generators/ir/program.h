#pragma once
#include "expr/error.h"
#include "ir/attribute.h"
#include "ir/names.h"
#include "ir/type.h"
#include <memory>

namespace scalide {

/// Index into Program::values.
using ValueId = int;

/// Whether a node belongs to the forward pass (primal) or to a gradient (cotangent). Rules of policies match it.
enum class Role : uint8_t { primal, cotangent };

/// The component of a scaled array that a value holds. propagate_scales splits scaled arrays into data and scale. Only this struct tells
/// them apart: names do not matter. For an argument or a result, `of` is the name of the scaled array; it is empty for a whole array, and
/// the scale directly follows the data. For another value, `of` is the tensor of the source program, of which the value is a rounded or
/// rescaled copy; scalide_trace reports it.
struct ArrayPart {
    enum class Kind : uint8_t { whole, data, scale }; // scalide_part has the same numbers
    Kind kind = Kind::whole;
    std::string of; ///< the name of the scaled array

    bool is_scale() const { return kind == Kind::scale; }
    /// Returns the name of the array. `own` is the name of the argument, result or value.
    const std::string &array(const std::string &own) const { return of.empty() ? own : of; }
    bool operator==(const ArrayPart &) const = default;
};

/// One array: an argument, or a result of exactly one node. Names are unique in a program and may be any text (is_name).
struct Value {
    std::string name;
    Type type;
    ArrayPart part = {};
};

struct Program;

/// A program that a node owns: the body of a loop, or a branch (ir/regions.h). It has no symbols and no sub-programs of its own, but uses
/// the symbols and sub-programs of the outermost program. Values of other programs reach it through its arguments alone.
using Region = std::shared_ptr<const Program>;

/// One operation. `op` is the name of a rule, or `call`; the attribute `program` of a call names a sub-program.
struct Node {
    std::string op;
    std::vector<ValueId> operands = {};
    Attributes attributes = {};
    std::vector<ValueId> results = {};
    std::string scope = {}; ///< "mlp/0": from `scope` blocks; policies match it by glob
    Role role = Role::primal;
    Location location = {};
    std::vector<Region> regions = {};
};

/// Where an argument gets its elements: from the caller in each run, once at bind (`constant`), or from the prepare program of its program
/// (`prepared`, see transforms/constants/split_constants.h). Only a main program has constants. In a region, `each` is an element of the
/// operand's first axis, and `step` the number of this element, i32[]; another argument is the operand itself.
enum class Supply : uint8_t { run, constant, prepared, each, step };

/// An argument of a program. A Result overwrites an inout argument. An argument with an initial value is state that the policy adds: its
/// elements have that value before the first run.
struct Argument {
    ValueId value = -1;
    bool scaled = false; ///< a scaled array; propagate_scales splits it into data and scale
    bool inout = false;
    ArrayPart part = {};
    Location location = {}; ///< where it is declared
    std::optional<int64_t> initial = {};
    Supply supply = Supply::run;
};

/// A result of a program: a new array, or the new value of inout argument number `argument`.
struct Result {
    std::string name;
    ValueId value = -1;
    bool scaled = false;
    int argument = -1;
    ArrayPart part = {};
};

/// Where a symbol gets its value: from the extents of arguments, or from a group of ranks. scalide_symbol_source has the same numbers.
enum class SymbolSource : uint8_t {
    arguments,
    ranks, ///< the number of ranks of the group, which has the name of the symbol
    rank,  ///< the number of this rank in `group`, from 0
    chunk, ///< the elements of an array for each rank of `group`: `divided` / ranks, rounded up
};

/// A group has at most so many ranks.
constexpr int64_t most_ranks = 65536;

/// A named extent, with the values it may take.
struct Symbol {
    std::string name;
    int64_t minimum = 0, maximum = 2147483647, multiple = 1;
    std::vector<int64_t> likely = {}; ///< values that are frequent; a hint
    SymbolSource source = SymbolSource::arguments;
    std::string group = {}; ///< rank, chunk: the symbol of the group
    Extent divided = {};    ///< chunk
    bool operator==(const Symbol &) const = default;
    /// Returns true if the symbol may have this value.
    bool allows(int64_t value) const { return value >= minimum && value <= maximum && value % multiple == 0; }
};

/// An array program in single-assignment form. The order of the nodes is an order in which they can run. A model, its gradient, its scaled
/// form and a kernel are all Programs. A pass is a function from Program to Program.
struct Program {
    std::string name;
    Attributes attributes;       ///< settings of the program: strategy, rounding; of a kernel: kind ...
    std::vector<Symbol> symbols; ///< all symbols in types and attributes
    std::vector<Argument> arguments;
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<Result> results;
    std::vector<Program> programs; ///< sub-programs, each before its first use; sub-programs have no sub-programs
    Names names; ///< index of the names of `values`. Use rename_value, or build it again if you change names in another way

    const Type &type(ValueId value) const { return values[value].type; }
    const std::string &value_name(ValueId value) const { return values[value].name; }
    /// Returns a sub-program by name. Throws InternalError if it does not exist.
    const Program &program(const std::string &name) const;
};

/// Adds a value with a new name: `name`, or `name` with the first free number.
ValueId add_value(Program &program, const std::string &name, Type type, ArrayPart part = {});
/// Renames a value. Returns false and changes nothing if another value has the name.
bool rename_value(Program &program, ValueId value, const std::string &name);
/// Appends a node and its result values, and returns the results. Their names start with `name`, or with the operator if it is empty.
std::vector<ValueId> add_node(Program &program, Node node, const std::vector<Type> &types, const std::string &name = "");

/// Declares each symbol in the types of arguments that is not declared yet, with default bounds. Code that builds a program calls it after
/// it added the arguments.
void declare_symbols(Program &program);

/// Returns the program with numbers instead of these symbols, in the types of its values and in attributes, also of regions. It does not
/// declare these symbols. Sub-programs do not change.
Program with_values(Program program, const Extent::Bindings &values);

/// Returns for each value the number of its uses as an operand or as a result of the program.
std::vector<int> count_uses(const Program &program);
/// Returns for each value the index of the node that produces it; -1 for arguments.
std::vector<int> producers(const Program &program);

/// Marks the values on which marked values depend. `marked` has one element for each value.
void mark_sources(const Program &program, std::vector<bool> &marked);

/// Returns true if the programs have the same text. Locations and value numbers do not matter.
bool equal(const Program &a, const Program &b);

/// Returns the canonical form of a kernel: kernels that do the same have the same text, which is the cache key. The program is named
/// `kernel`, arguments a0 a1 .., other values v0 v1 .., results r0 r1 .., sub-programs p0 p1 ..; symbols keep their names. Unused nodes and
/// values, scopes, roles and locations are removed.
Program canonical(const Program &program);

} // namespace scalide

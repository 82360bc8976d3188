#pragma once
#include "rulebook/instance.h"
#include <functional>
#include <map>

namespace scalide {

/// Computes the results of a node in another way, by nodes at the end of the program. Returns the new results.
using Remake = std::function<std::vector<ValueId>(Builder &builder, const Node &node)>;

/// Replaces node number `index` by the nodes that `remake` appends. They compute the same values, so ids and names stay. If `remake`
/// returns a value that already existed, readers use that value instead. Returns these replacements.
std::map<ValueId, ValueId> replace_node(Program &program, const Rulebook &rulebook, size_t index, const Remake &remake);

/// Returns how a node is replaced; empty if it stays.
using ChooseRemake = std::function<Remake(const Program &, const Node &)>;

/// Does the same for every node for which `choose` returns a Remake, in program order. New nodes are passed to `choose` too.
void replace_nodes(Program &program, const Rulebook &rulebook, const ChooseRemake &choose);

/// Appends the nodes of `body`, whose arguments are the operands of `call` in `program`. They get the scope and role of `call`. Returns the
/// values of the results.
std::vector<ValueId> append_body(Program &program, const Program &body, const Node &call);

/// Replaces a value by another one in the nodes and results of a program.
void replace_value(Program &program, ValueId old, ValueId fresh);

/// Readers of an argument read the value that `make` adds at the start of the program. `like`: the new nodes get its scope, role and place.
void replace_argument(Program &program, const Rulebook &rulebook, ValueId argument, const Node &like,
                      const std::function<ValueId(Builder &builder)> &make);

/// Adds a result that is no carry. Its name is `name`, or starts with it.
void add_result(Program &program, const std::string &name, ValueId value);

/// Joins scopes: `mlp/0` within `encoder` is `encoder/mlp/0`.
std::string scope_within(const std::string &outer, const std::string &inner);

/// A Remake: expands a composite to its `value`.
std::vector<ValueId> expand_value(Builder &builder, const Node &node);

} // namespace scalide

#pragma once
#include "rulebook/instance.h"
#include <functional>
#include <map>

namespace scalide {

/// Makes the results of a node anew, at the end of the program, and returns them.
using Remake = std::function<std::vector<ValueId>(Builder &builder, const Node &node)>;

/// Puts the nodes that `remake` makes in the place of node number `index`. They make the same values (ids and names stay), but where
/// `remake` returned a value that was there before: then this one is read instead. Returns what is read instead of what.
std::map<ValueId, ValueId> replace_node(Program &program, const Rulebook &rulebook, size_t index, const Remake &remake);

/// How a node is made anew; empty when it stays.
using ChooseRemake = std::function<Remake(const Program &, const Node &)>;

/// The same for all nodes for which `choose` gives a Remake, from the first on; what one made is looked at next.
void replace_nodes(Program &program, const Rulebook &rulebook, const ChooseRemake &choose);

/// Appends the nodes of `body`, a program whose arguments are the operands of `call` in `program`, in the scope and role of `call`.
/// Returns what became of its results.
std::vector<ValueId> append_body(Program &program, const Program &body, const Node &call);

/// The `value` of the composite that `node` is: a Remake.
std::vector<ValueId> expand_value(Builder &builder, const Node &node);

} // namespace scalide

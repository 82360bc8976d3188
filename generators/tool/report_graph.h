#pragma once
#include "ir/program.h"
#include <nlohmann/json_fwd.hpp>

namespace scalide {

/// Returns the graph of a program in two levels. `svg` shows the scopes. `scopes` is a list with the name, the operators as text, and the
/// SVG of the operators. Bodies of loops and branches are scopes of their own. `dot` of graphviz lays the graphs out. If it is not
/// installed, or if a graph is too large, its SVG is null, and `reason` says why.
nlohmann::ordered_json describe_graph(const Program &program);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include <nlohmann/json_fwd.hpp>

namespace scalide {

/// Returns the graph of a program in two levels. `scopes` is a list with name, operators (as text) and the SVG of the operators; `svg`
/// shows the scopes. `dot` of graphviz lays the graphs out. If it is not installed, or if a graph is too large, its SVG is null, and
/// `reason` says why.
nlohmann::ordered_json describe_graph(const Program &program);

} // namespace scalide

#include "tool/report_graph.h"
#include "emit/files.h"
#include "emit/process.h"
#include "tool/tables.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace scalide {

namespace {

using GraphJson = nlohmann::ordered_json;

/// dot takes 0.1 s for a graph of 100 operators, and its time grows with the square (Zen 5, 2026-11-29). Larger graphs are also unreadable.
constexpr size_t most_operators = 120, most_scopes = 80, most_laid_out = 2000;
constexpr int dot_seconds = 60;

/// The nodes of one scope of a program or of a region, forward or gradient.
struct GraphScope {
    std::string name;
    const Program *program;
    std::vector<size_t> nodes;
    int parent = -1; ///< the scope with the loop or branch that owns the region
};

/// Returns the first parts of a scope.
std::string outer_scope(const std::string &scope, size_t parts) {
    size_t end = 0;
    for (size_t i = 0; i < parts && end != std::string::npos; i++) end = scope.find('/', i == 0 ? 0 : end + 1);
    return scope.substr(0, end);
}

std::string scope_name(const Node &node, size_t parts) {
    const std::string scope = outer_scope(node.scope, parts);
    return (scope.empty() ? "(no scope)" : scope) + (node.role == Role::cotangent ? " (gradient)" : "");
}

/// Appends the scopes of a program, then the scopes of the loops and branches in it. `owner` is the name of the loop: "scan h: ".
void append_scopes(const Program &program, size_t parts, const std::string &owner, int parent, std::vector<GraphScope> &scopes) {
    std::map<std::string, size_t> known;
    std::vector<std::pair<size_t, size_t>> with_regions; // node, scope
    for (size_t i = 0; i < program.nodes.size(); i++) {
        const auto [found, is_new] = known.try_emplace(scope_name(program.nodes[i], parts), scopes.size());
        if (is_new) scopes.push_back({owner + found->first, &program, {}, parent});
        scopes[found->second].nodes.push_back(i);
        if (!program.nodes[i].regions.empty()) with_regions.emplace_back(i, found->second);
    }
    for (const auto &[index, scope] : with_regions) {
        const Node &node = program.nodes[index];
        for (size_t r = 0; r < node.regions.size(); r++) {
            const std::string number = node.regions.size() > 1 ? fmt::format(" {}", r) : "";
            append_scopes(*node.regions[r], parts,
                          fmt::format("{} {}{}: ", node.op, node.results.empty() ? "" : program.value_name(node.results[0]), number),
                          static_cast<int>(scope), scopes);
        }
    }
}

/// Returns the deepest scopes of which a picture can show all.
std::vector<GraphScope> readable_scopes(const Program &program) {
    std::vector<GraphScope> best;
    append_scopes(program, 1, "", -1, best);
    for (size_t parts = 2; parts <= 8; parts++) {
        std::vector<GraphScope> deeper;
        append_scopes(program, parts, "", -1, deeper);
        if (deeper.size() > most_scopes) break;
        best = std::move(deeper);
    }
    return best;
}

std::string dot_text(const std::string &text) {
    std::string escaped;
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') escaped += '\\';
        escaped += letter == '\n' ? ' ' : letter;
    }
    return escaped;
}

constexpr const char *dot_head =
    "digraph \"\" {{\n bgcolor=transparent; rankdir=TB; nodesep=0.25; ranksep=0.35; id=\"{}\";\n"
    " node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11, height=0.3, margin=\"0.12,0.06\"];\n"
    " edge [arrowsize=0.6];\n";

/// Appends the edges between the scopes of one program: `scopes` maps its nodes to numbers of scopes.
void append_edges(const Program &program, const std::map<size_t, size_t> &scopes, std::set<std::pair<size_t, size_t>> &edges) {
    const std::vector<int> producer = producers(program);
    for (const auto &[node, scope] : scopes)
        for (const ValueId operand : program.nodes[node].operands)
            if (const int from = producer[static_cast<size_t>(operand)]; from >= 0)
                if (const size_t other = scopes.at(static_cast<size_t>(from)); other != scope) edges.emplace(other, scope);
}

std::string overview_dot(const std::vector<GraphScope> &scopes) {
    std::string text = fmt::format(dot_head, "graph-scopes");
    std::map<const Program *, std::map<size_t, size_t>> scope_of;
    for (size_t s = 0; s < scopes.size(); s++) {
        for (const size_t node : scopes[s].nodes) scope_of[scopes[s].program][node] = s;
        const size_t count = scopes[s].nodes.size();
        text += fmt::format(" n{} [id=\"scope-{}\", class=\"scope\", label=\"{}\\n{} operator{}\"];\n", s, s, dot_text(scopes[s].name),
                            count, count == 1 ? "" : "s");
        if (scopes[s].parent >= 0) text += fmt::format(" n{} -> n{} [style=dashed];\n", scopes[s].parent, s);
    }
    std::set<std::pair<size_t, size_t>> edges;
    for (const auto &[program, nodes] : scope_of) append_edges(*program, nodes, edges);
    for (const auto &[from, to] : edges) text += fmt::format(" n{} -> n{};\n", from, to);
    return text + "}\n";
}

std::string result_type(const Program &program, const Node &node) {
    return node.results.empty() ? "" : to_string(program.type(node.results[0]));
}

std::string scope_dot(const GraphScope &scope, size_t number) {
    const Program &program = *scope.program;
    const std::set<size_t> inside(scope.nodes.begin(), scope.nodes.end());
    const std::vector<int> producer = producers(program);
    std::string text = fmt::format(dot_head, fmt::format("graph-scope-{}", number));
    std::set<std::string> outside;
    for (const size_t index : scope.nodes) {
        const Node &node = program.nodes[index];
        text += fmt::format(" n{} [label=\"{}\\n{}\", tooltip=\"{}\"];\n", index, dot_text(node.op), dot_text(result_type(program, node)),
                            dot_text(short_place(node.location, "")));
        for (const ValueId operand : node.operands) {
            const int from = producer[static_cast<size_t>(operand)];
            if (from >= 0 && inside.contains(static_cast<size_t>(from))) {
                text += fmt::format(" n{} -> n{};\n", from, index);
                continue;
            }
            const std::string name = program.value_name(operand);
            if (outside.insert(name).second) text += fmt::format(" v{} [label=\"{}\", class=\"outside\"];\n", operand, dot_text(name));
            text += fmt::format(" v{} -> n{};\n", operand, index);
        }
    }
    return text + "}\n";
}

/// Returns the SVG element of a file that dot wrote, without its declarations.
std::string svg_element(const std::string &text) {
    const size_t begin = text.find("<svg");
    return begin == std::string::npos ? "" : text.substr(begin);
}

/// Runs dot once on several graphs. Returns their SVGs in order, or the reason why there are none.
std::vector<std::string> lay_out(const std::vector<std::string> &graphs, std::string &reason) {
    if (graphs.empty()) return {};
    const WorkFolder work(std::filesystem::temp_directory_path() / "scalide-report");
    std::vector<std::string> command{"dot", "-Tsvg", "-O"};
    for (size_t i = 0; i < graphs.size(); i++) {
        command.push_back((work / fmt::format("{}.gv", i)).string());
        write_file(command.back(), graphs[i]);
    }
    const ChildResult result = run_command(command, {.jobs = 1, .seconds = dot_seconds, .output_bytes = 4096});
    if (!result.ok) {
        reason = "The program 'dot', which lays out the graphs, did not run: " + result.reason + ". Install graphviz to see them.";
        return {};
    }
    std::vector<std::string> pictures;
    for (size_t i = 0; i < graphs.size(); i++) pictures.push_back(svg_element(read_file(work / fmt::format("{}.gv.svg", i))));
    return pictures;
}

GraphJson operators_json(const GraphScope &scope) {
    const Program &program = *scope.program;
    GraphJson rows = GraphJson::array();
    for (const size_t index : scope.nodes) {
        const Node &node = program.nodes[index];
        std::string line = node.results.empty() ? "" : program.value_name(node.results[0]) + " " + result_type(program, node) + " = ";
        line += node.op;
        for (const ValueId operand : node.operands) line += " " + program.value_name(operand);
        rows.push_back({line, short_place(node.location, "-")});
    }
    return rows;
}

} // namespace

GraphJson describe_graph(const Program &program) {
    const std::vector<GraphScope> scopes = readable_scopes(program);
    const bool has_overview = scopes.size() <= most_scopes;
    std::vector<std::string> graphs;
    if (has_overview) graphs.push_back(overview_dot(scopes));
    std::vector<bool> is_drawn(scopes.size());
    size_t budget = most_laid_out;
    for (size_t s = 0; s < scopes.size(); s++) {
        if (scopes[s].nodes.size() > std::min(most_operators, budget)) continue;
        budget -= scopes[s].nodes.size();
        is_drawn[s] = true;
        graphs.push_back(scope_dot(scopes[s], s));
    }
    std::string reason = fmt::format("Scopes with more than {} operators are not drawn.", most_operators);
    const std::vector<std::string> pictures = lay_out(graphs, reason);
    auto next = pictures.begin();
    const auto take = [&](bool is_wanted) { return is_wanted && next != pictures.end() ? GraphJson(*next++) : GraphJson(nullptr); };
    GraphJson graph = {{"svg", take(has_overview)}, {"scopes", GraphJson::array()}};
    for (size_t s = 0; s < scopes.size(); s++)
        graph["scopes"].push_back({{"name", scopes[s].name}, {"svg", take(is_drawn[s])}, {"operators", operators_json(scopes[s])}});
    graph["reason"] = reason;
    return graph;
}

} // namespace scalide

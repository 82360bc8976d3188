#include "transforms/analysis/splice.h"
#include <algorithm>
#include <span>

namespace scalide {

namespace {

using Renamed = std::map<ValueId, ValueId>;

void rename(std::vector<ValueId> &values, const Renamed &renamed) {
    for (ValueId &value : values) {
        const auto found = renamed.find(value);
        if (found != renamed.end()) value = found->second;
    }
}

bool is_made_by(std::span<const Node> nodes, ValueId value) {
    return std::ranges::any_of(nodes, [&](const Node &node) { return std::ranges::count(node.results, value) > 0; });
}

/// Makes a node, and the nodes of its regions, a part of a gradient.
void mark_cotangent(Node &node) {
    node.role = Role::cotangent;
    for (Region &region : node.regions) {
        Program marked = *region;
        std::ranges::for_each(marked.nodes, mark_cotangent);
        region = std::make_shared<const Program>(std::move(marked));
    }
}

} // namespace

void replace_value(Program &program, ValueId old, ValueId fresh) {
    for (Node &node : program.nodes) std::ranges::replace(node.operands, old, fresh);
    for (Result &result : program.results)
        if (result.value == old) result.value = fresh;
}

void replace_argument(Program &program, const Rulebook &rulebook, ValueId argument, const Node &like,
                      const std::function<ValueId(Builder &builder)> &make) {
    const auto first = static_cast<ptrdiff_t>(program.nodes.size());
    Builder builder(rulebook, program);
    builder.stamp_like(like);
    const ValueId fresh = make(builder);
    std::vector<Node> added(program.nodes.begin() + first, program.nodes.end());
    program.nodes.erase(program.nodes.begin() + first, program.nodes.end());
    replace_value(program, argument, fresh);
    program.nodes.insert(program.nodes.begin(), added.begin(), added.end());
}

void add_result(Program &program, const std::string &name, ValueId value) {
    std::string free = name;
    const auto is_taken = [&] { return std::ranges::find(program.results, free, &Result::name) != program.results.end(); };
    for (int number = 1; is_taken(); number++) free = name + std::to_string(number);
    program.results.push_back({free, value});
}

std::string scope_within(const std::string &outer, const std::string &inner) {
    return outer.empty() || inner.empty() ? outer + inner : outer + "/" + inner;
}

std::vector<ValueId> append_body(Program &program, const Program &body, const Node &call) {
    std::vector<ValueId> map(body.values.size(), -1);
    for (size_t i = 0; i < call.operands.size(); i++) map[body.arguments[i].value] = call.operands[i];
    for (const Node &node : body.nodes) {
        Node fresh = node;
        for (ValueId &operand : fresh.operands) operand = map[operand];
        for (ValueId &result : fresh.results) {
            map[result] = add_value(program, body.value_name(result), body.type(result), body.values[result].part);
            result = map[result];
        }
        fresh.scope = scope_within(call.scope, node.scope);
        if (call.role == Role::cotangent) mark_cotangent(fresh);
        program.nodes.push_back(std::move(fresh));
    }
    std::vector<ValueId> results;
    for (const Result &result : body.results) results.push_back(map[result.value]);
    return results;
}

namespace {

/// Appends the nodes that `remake` emits for a node, with the node's own values as results. Returns the values that readers must replace.
Renamed remake_node(Program &program, const Rulebook &rulebook, const Node &node, const Remake &remake) {
    const size_t first = program.nodes.size();
    Builder builder(rulebook, program);
    builder.stamp_like(node);
    const std::vector<ValueId> made = remake(builder, node);

    const std::span<Node> nodes = std::span(program.nodes).subspan(first);
    Renamed taken_over, aliases;
    for (size_t i = 0; i < made.size(); i++) {
        const bool is_new = is_made_by(nodes, made[i]) && !taken_over.contains(made[i]);
        if (is_new) taken_over[made[i]] = node.results[i];
    }
    for (size_t i = 0; i < made.size(); i++) {
        const auto found = taken_over.find(made[i]);
        const ValueId value = found == taken_over.end() ? made[i] : found->second;
        if (value != node.results[i]) aliases[node.results[i]] = value;
    }
    for (Node &fresh : nodes) {
        rename(fresh.operands, taken_over);
        rename(fresh.results, taken_over);
    }
    return aliases;
}

void rename_results(Program &program, const Renamed &aliases) {
    for (Result &result : program.results) {
        const auto found = aliases.find(result.value);
        if (found != aliases.end()) result.value = found->second;
    }
}

} // namespace

std::map<ValueId, ValueId> replace_node(Program &program, const Rulebook &rulebook, size_t index, const Remake &remake) {
    const Node node = program.nodes[index];
    const size_t first = program.nodes.size();
    const Renamed aliases = remake_node(program, rulebook, node, remake);
    const auto at = [&](size_t i) { return program.nodes.begin() + static_cast<ptrdiff_t>(i); };
    std::rotate(at(index), at(first), program.nodes.end());
    program.nodes.erase(at(index + program.nodes.size() - first));
    for (size_t i = index; i < program.nodes.size(); i++) rename(program.nodes[i].operands, aliases);
    rename_results(program, aliases);
    return aliases;
}

void replace_nodes(Program &program, const Rulebook &rulebook, const ChooseRemake &choose) {
    std::vector<Node> waiting(std::move_iterator(program.nodes.rbegin()), std::move_iterator(program.nodes.rend()));
    program.nodes.clear();
    Renamed aliases;
    while (!waiting.empty()) {
        Node node = std::move(waiting.back());
        waiting.pop_back();
        rename(node.operands, aliases);
        const Remake remake = choose(program, node);
        if (!remake) {
            program.nodes.push_back(std::move(node));
            continue;
        }
        const size_t first = program.nodes.size();
        aliases.merge(remake_node(program, rulebook, node, remake));
        for (; program.nodes.size() > first; program.nodes.pop_back()) waiting.push_back(std::move(program.nodes.back()));
    }
    rename_results(program, aliases);
}

std::vector<ValueId> expand_value(Builder &builder, const Node &node) {
    std::vector<ScaledValue> operands;
    for (const ValueId operand : node.operands) operands.push_back({operand});
    return Instance(builder, builder.rulebook().rule(node.op, node.location), std::move(operands), node.attributes).value();
}

} // namespace scalide

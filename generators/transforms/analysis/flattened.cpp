#include "transforms/analysis/flattened.h"
#include "ir/regions.h"
#include <algorithm>

namespace scalide {

namespace {

using FlatValues = std::vector<ValueId>;

class Flattening {
public:
    explicit Flattening(Program &flat) : flat_(flat) {}

    /// Appends the nodes of a program whose arguments are `values`, and returns its results.
    FlatValues append(const Program &program, const FlatValues &values, FlatNodes &nodes) {
        FlatValues map(program.values.size(), -1);
        for (size_t i = 0; i < values.size(); i++) map[size_t(program.arguments[i].value)] = values[i];
        nodes = {};
        for (const Node &node : program.nodes) {
            Node fresh = node;
            for (ValueId &operand : fresh.operands) operand = map[size_t(operand)];
            nodes.regions.emplace_back(node.regions.size());
            FlatValues results;
            if (node.regions.empty()) {
                nodes.last.push_back(static_cast<int>(flat_.nodes.size()));
                results = add(program, node, std::move(fresh));
            } else {
                nodes.last.push_back(-1);
                results = of_regions(node, fresh.operands, nodes.regions.back());
            }
            for (size_t r = 0; r < results.size(); r++) map[size_t(node.results[r])] = results[r];
        }
        nodes.first = nodes.last;
        FlatValues results;
        for (const Result &result : program.results) results.push_back(map[size_t(result.value)]);
        return results;
    }

private:
    FlatValues of_regions(const Node &node, const FlatValues &operands, std::vector<FlatNodes> &nodes) {
        if (node.op == "straight") return append(*node.regions[0], operands, nodes[0]);
        return find_region_kind(node.op)->is_loop ? loop(node, operands, nodes) : branches(node, operands, nodes);
    }

    FlatValues add(const Program &program, const Node &node, Node fresh) {
        for (size_t r = 0; r < node.results.size(); r++) {
            const Value &value = program.values[size_t(node.results[r])];
            fresh.results[r] = add_value(flat_, value.name, value.type, value.part);
        }
        flat_.nodes.push_back(fresh);
        return fresh.results;
    }

    ValueId add(const Node &like, const std::string &op, const FlatValues &operands, const Type &type) {
        const Node node{.op = op, .operands = operands, .scope = like.scope, .role = like.role, .location = like.location};
        return add_node(flat_, node, {type})[0];
    }

    FlatValues loop(const Node &node, const FlatValues &operands, std::vector<FlatNodes> &nodes) {
        const LoopView view(node);
        const Program &body = *node.regions.back();
        FlatValues carries, results;
        std::vector<FlatValues> steps;
        for (size_t i = 0; i < body.arguments.size(); i++)
            if (view.carries[i] >= 0) carries.push_back(operands[size_t(view.operands[i])]);
        if (node.op == "while") append(*node.regions[0], operands, nodes[0]);
        FlatNodes first;
        for (FlatNodes *copy : {&first, &nodes.back()}) {
            FlatValues arguments;
            for (size_t i = 0; i < body.arguments.size(); i++)
                arguments.push_back(argument(node, view, i, view.operands[i] < 0 ? -1 : operands[size_t(view.operands[i])], carries));
            steps.push_back(append(body, arguments, *copy));
            carries.assign(steps.back().begin(), steps.back().begin() + view.carry_count);
        }
        take_first(nodes.back(), first);
        for (size_t r = carries.size(); r < node.results.size(); r++)
            results.push_back(add(node, "concatenate", {steps[0][r], steps[1][r]}, stacked(flat_.type(steps[0][r]), 2)));
        carries.insert(carries.end(), results.begin(), results.end());
        return carries;
    }

    ValueId argument(const Node &node, const LoopView &view, size_t i, ValueId operand, const FlatValues &carries) {
        const Program &body = *node.regions.back();
        const Type &type = body.type(body.arguments[i].value);
        if (view.carries[i] >= 0) return carries[size_t(view.carries[i])];
        if (operand < 0) return add(node, "constant", {}, type);
        return body.arguments[i].supply == Supply::each ? add(node, "slice", {operand}, type) : operand;
    }

    /// Nodes in a loop in the body have four copies: the first one of the first step comes first.
    static void take_first(FlatNodes &nodes, const FlatNodes &first) {
        nodes.first = first.first;
        for (size_t i = 0; i < nodes.regions.size(); i++)
            for (size_t r = 0; r < nodes.regions[i].size(); r++) take_first(nodes.regions[i][r], first.regions[i][r]);
    }

    FlatValues branches(const Node &node, const FlatValues &operands, std::vector<FlatNodes> &nodes) {
        const FlatValues arguments(operands.begin() + 1, operands.end());
        std::vector<FlatValues> made;
        for (size_t i = 0; i < node.regions.size(); i++) made.push_back(append(*node.regions[i], arguments, nodes[i]));
        FlatValues results;
        for (size_t r = 0; r < node.results.size(); r++) {
            FlatValues cases{operands[0]};
            for (const FlatValues &branch : made) cases.push_back(branch[r]);
            results.push_back(add(node, "select_n", cases, flat_.type(cases[1])));
        }
        return results;
    }

    Program &flat_;
};

} // namespace

Flat flattened(const Program &program) {
    Flat flat;
    flat.program.name = program.name;
    flat.program.attributes = program.attributes;
    flat.program.symbols = program.symbols;
    FlatValues arguments;
    for (const Argument &argument : program.arguments) {
        const Value &value = program.values[size_t(argument.value)];
        arguments.push_back(add_value(flat.program, value.name, value.type, value.part));
        flat.program.arguments.push_back(argument);
        flat.program.arguments.back().value = arguments.back();
    }
    const FlatValues results = Flattening(flat.program).append(program, arguments, flat.nodes);
    flat.program.results = program.results;
    for (size_t i = 0; i < results.size(); i++) flat.program.results[i].value = results[i];
    return flat;
}

} // namespace scalide

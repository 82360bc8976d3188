#include "tool/recorded_run.h"
#include "interpret/operation.h"
#include "ir/regions.h"
#include "transforms/analysis/origins.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns the number of the operand that the node only rounds, or limits to the numbers of a format.
std::optional<size_t> rounded_operand(const ValueGraph &graph, const Operation &operation) {
    if (operation.program == nullptr || !graph.knows(*operation.program)) return {};
    if (operation.op == "round_by_bits") return 0;
    const auto limited = limited_operand(*operation.program, graph.producers_of(*operation.program), *operation.node);
    if (!limited) return {};
    return std::ranges::find(operation.node->operands, limited->operand) - operation.node->operands.begin();
}

} // namespace

ValueGraph::ValueGraph(const Program &program) : program_(program) { add(program); }

void ValueGraph::add(const Program &program) {
    producers_[&program] = producers(program);
    for (const Argument &argument : program.arguments) varies_.insert({&program, argument.value});
    for (const Node &node : program.nodes) {
        for (const Region &region : node.regions) {
            owners_[region.get()] = {&program, &node};
            add(*region);
        }
        const auto is_varying = [&](ValueId operand) { return varies({&program, operand}); };
        if (!node.regions.empty() || std::ranges::any_of(node.operands, is_varying))
            for (const ValueId result : node.results) varies_.insert({&program, result});
    }
}

std::vector<const Program *> ValueGraph::programs() const {
    std::vector<const Program *> found;
    for (const auto &[program, producers] : producers_) found.push_back(program);
    return found;
}

const Node *ValueGraph::producer(const ValueRef &value) const {
    const int place = producers_.at(value.program)[value.value];
    return place < 0 ? nullptr : &value.program->nodes[place];
}

std::vector<ValueRef> ValueGraph::sources(const ValueRef &value) const {
    const Node *node = producer(value);
    if (node == nullptr) return of_region_argument(value);
    if (!node->regions.empty()) return of_region_result(*node, value);
    std::vector<ValueRef> found;
    for (const ValueId operand : node->operands) found.push_back({value.program, operand});
    return found;
}

/// The results of a loop are its carries, in the order of the arguments, and then its stacks. The results of another node with regions are
/// the results of each region.
std::vector<ValueRef> ValueGraph::of_region_result(const Node &node, const ValueRef &value) const {
    const auto place = static_cast<size_t>(std::ranges::find(node.results, value.value) - node.results.begin());
    std::vector<ValueRef> found;
    if (!find_region_kind(node.op)->is_loop) {
        for (const Region &region : node.regions)
            if (place < region->results.size()) found.push_back({region.get(), region->results[place].value});
        return found;
    }
    const Program &body = *node.regions.back();
    std::vector<ValueId> carries, stacks;
    for (const Argument &argument : body.arguments) {
        const auto number = static_cast<int>(&argument - body.arguments.data());
        const auto result = std::ranges::find(body.results, number, &Result::argument);
        if (argument.inout && result != body.results.end()) carries.push_back(result->value);
    }
    for (const Result &result : body.results)
        if (result.argument < 0) stacks.push_back(result.value);
    carries.insert(carries.end(), stacks.begin(), stacks.end());
    if (place < carries.size()) found.push_back({&body, carries[place]});
    return found;
}

std::vector<ValueRef> ValueGraph::of_region_argument(const ValueRef &value) const {
    const auto owner = owners_.find(value.program);
    if (owner == owners_.end()) return {};
    const Node &node = *owner->second.node;
    const auto argument = std::ranges::find(value.program->arguments, value.value, &Argument::value);
    if (argument->supply == Supply::step) return {};
    const auto number = static_cast<size_t>(argument - value.program->arguments.begin());
    std::vector<ValueRef> found{{owner->second.program, node.operands[operand_of(node, *value.program, number)]}};
    if (argument->inout && find_region_kind(node.op)->is_loop)
        for (const Result &result : value.program->results)
            if (result.argument == static_cast<int>(number)) found.push_back({value.program, result.value});
    return found;
}

RecordedRun::RecordedRun(const ValueGraph &graph, const std::vector<Array> &inputs, const Rulebook &rulebook, RecordedNumbers numbers) {
    const Program &program = graph.program();
    const bool is_exact = numbers == RecordedNumbers::exact;
    for (size_t i = 0; i < inputs.size(); i++) record({&program, program.arguments[i].value}, inputs[i]);
    const auto run = [&](Operation &operation) {
        const auto rounded = is_exact ? rounded_operand(graph, operation) : std::nullopt;
        if (!rounded) return find_run(operation.op)(operation);
        operation.results[0].data = operation.operand(*rounded).data;
    };
    outputs_ = interpret(program, inputs, rulebook, is_exact ? Mode::real : Mode::stored, run,
                         [&](const Program &owner, const Node &node, const std::vector<Array> &results) {
                             if (!graph.knows(owner)) return;
                             for (size_t i = 0; i < results.size(); i++) record({&owner, node.results[i]}, results[i]);
                         });
}

const Array *RecordedRun::find(const ValueRef &value) const {
    const auto found = values_.find(value);
    return found == values_.end() ? nullptr : &found->second;
}

void RecordedRun::record(const ValueRef &value, const Array &array) {
    if (!is_float(array.dtype)) return;
    const auto [entry, is_new] = values_.insert_or_assign(value, array);
    if (is_new) order_.push_back(value);
}

} // namespace scalide

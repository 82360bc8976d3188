#include "transforms/expand/collectives.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "ir/regions.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int64_t most_sent_to_all = 64;

/// The operators that have a form by chunks.
constexpr std::string_view divided[] = {"all_reduce", "all_reduce_as", "all_reduce_max", "broadcast_from"};

/// Returns the operator that works by chunks; empty for other operators.
std::string by_chunks(const Node &node) { return std::ranges::find(divided, node.op) == std::end(divided) ? "" : node.op + "_by_chunks"; }

/// The maximum over one group after the other.
std::vector<ValueId> reduce_over_groups(Builder &builder, const Node &node) {
    ValueId value = node.operands[0];
    for (const Extent &group : to_extents(node.attributes.at("groups")))
        value = builder.add_one("all_reduce_max", {value}, {{"group", group}});
    return {value};
}

bool is_grouped(const Node &node) {
    return (is_collective(node.op) && node.op != "all_reduce_max_over") || node.op == "axis_index" || !by_chunks(node).empty();
}

const Extent &group_of(const Node &node) { return node.attributes.at("group").integer; }

/// The elements that chunks divide: 0 for other nodes. Arrays whose extents have symbols go to all ranks at once.
int64_t divided_elements(const Program &program, const Node &node) {
    if (by_chunks(node).empty() || group_of(node).is_static()) return 0;
    Extent count = 1;
    for (const Extent &extent : program.type(node.operands[0]).shape) count = count * extent;
    return count.is_static() && count.value() > most_sent_to_all ? count.value() : 0;
}

const Symbol *find_symbol(const Program &program, SymbolSource source, const std::string &group, const Extent &divided = 0) {
    const auto found = std::ranges::find_if(
        program.symbols, [&](const Symbol &each) { return each.source == source && each.group == group && each.divided == divided; });
    return found == program.symbols.end() ? nullptr : &*found;
}

void add_symbol(Program &program, SymbolSource source, const std::string &group, const Extent &divided, int64_t maximum) {
    if (find_symbol(program, source, group, divided)) return;
    const std::string word = source == SymbolSource::rank ? ".rank" : ".chunk" + to_string(divided);
    Symbol symbol{.name = group + word, .maximum = maximum, .source = source, .group = group, .divided = divided};
    while (std::ranges::find(program.symbols, symbol.name, &Symbol::name) != program.symbols.end()) symbol.name += "_";
    program.symbols.push_back(symbol);
}

void check_group(const Program &program, const Node &node) {
    const std::string name = to_string(group_of(node));
    const auto found = std::ranges::find(program.symbols, name, &Symbol::name);
    if (found != program.symbols.end() && found->source == SymbolSource::ranks) return;
    throw UserError({node.location, node.op + ".group", "must be a group of ranks", name,
                     "Declare it in the head of the program, as in: program " + program.name + " [" + name + " ranks] (...)"});
}

} // namespace

bool has_groups(const Program &program) {
    return std::ranges::find(program.symbols, SymbolSource::ranks, &Symbol::source) != program.symbols.end();
}

void remove_reductions_of_one_rank(Program &program) {
    const std::vector<int> makers = producers(program);
    for (Node &node : program.nodes) {
        const int maker = node.operands.size() == 1 ? makers[static_cast<size_t>(node.operands[0])] : -1;
        if (maker < 0 || (node.op != "reduce_sum" && node.op != "reduce_max")) continue;
        const Node &from = program.nodes[static_cast<size_t>(maker)];
        const bool is_alone = is_collective(from.op) && group_of(from).is_static();
        if (!is_alone || reduced_axes(node) != std::vector<int64_t>{0}) continue;
        node.op = "reshape";
        node.attributes = reshape_attributes(program.type(node.results[0]).shape);
    }
}

std::set<std::string> sized_collectives() {
    std::set<std::string> ops{"axis_index"};
    ops.insert(std::begin(divided), std::end(divided));
    return ops;
}

void add_group_symbols(Program &program) {
    visit_programs(Program(program), [&](const Program &owner) {
        for (const Node &node : owner.nodes) {
            if (!is_grouped(node) || group_of(node).is_static()) continue;
            check_group(program, node);
            const std::string group = to_string(group_of(node));
            if (node.op == "axis_index") add_symbol(program, SymbolSource::rank, group, 0, most_ranks - 1);
            if (const int64_t count = divided_elements(owner, node)) add_symbol(program, SymbolSource::chunk, group, count, count);
        }
    });
}

Remake collective_remake(const Program &program, const Node &node) {
    if (node.op == "all_reduce_max_over") return reduce_over_groups;
    if (!is_grouped(node)) return {};
    if (group_of(node).is_static()) {
        if (node.op == "axis_index") return [](Builder &builder, const Node &) { return std::vector{builder.constant(0, Dtype::i32)}; };
        if (!is_collective(node.op)) return {};
        const Extents shape = program.type(node.results[0]).shape;
        return [shape](Builder &builder, const Node &alone) {
            const bool is_same = builder.type(alone.operands[0]).shape == shape;
            return is_same ? alone.operands : builder.add("reshape", alone.operands, reshape_attributes(shape));
        };
    }
    const std::string group = to_string(group_of(node));
    if (node.op == "axis_index") {
        const Symbol *rank = find_symbol(program, SymbolSource::rank, group);
        internal_check(rank != nullptr, "expand: the rank of " + group);
        return [name = rank->name](Builder &builder, const Node &) { return std::vector{builder.size(Extent::symbol(name), Dtype::i32)}; };
    }
    const int64_t count = divided_elements(program, node);
    if (count == 0) return {};
    const Symbol *chunk = find_symbol(program, SymbolSource::chunk, group, count);
    internal_check(chunk != nullptr, "expand: the chunk of " + group);
    return [name = chunk->name](Builder &builder, const Node &whole) {
        Attributes attributes = whole.attributes;
        attributes["chunk"] = Extent::symbol(name);
        return builder.add(by_chunks(whole), whole.operands, attributes);
    };
}

} // namespace scalide

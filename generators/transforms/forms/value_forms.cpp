#include "transforms/forms/value_forms.h"
#include "ir/regions.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

/// Adds the extents of the axes of an operand that a dot_general neither contracts nor takes as a batch.
void add_free_extents(const Program &program, ValueId operand, const std::vector<int64_t> &batch, const std::vector<int64_t> &contract,
                      std::set<Extent> &extents) {
    const Extents &shape = program.type(operand).shape;
    Extent count = 1;
    for (const int64_t axis : other_axes(std::ssize(shape), batch, contract)) count = count * shape[axis];
    if (!count.is_static()) extents.insert(count);
}

/// Returns the symbolic numbers of rows and of columns of all matmuls.
std::set<Extent> rows_and_columns(const Program &program) {
    std::set<Extent> extents;
    visit_programs(program, [&](const Program &owner) {
        for (const Node &node : owner.nodes) {
            if (node.op != "dot_general") continue;
            const DotAxes axes = dot_axes(node);
            add_free_extents(owner, node.operands[0], axes.lhs_batch, axes.lhs_contract, extents);
            add_free_extents(owner, node.operands[1], axes.rhs_batch, axes.rhs_contract, extents);
        }
    });
    return extents;
}

/// Returns the values that make an extent 1, or nothing if there are none.
Extent::Bindings values_of_one(const Program &program, const Extent &extent) {
    Extent::Bindings values;
    for (const std::string &name : extent.symbols()) values[name] = 1;
    const bool is_allowed = std::ranges::all_of(program.symbols, [&](const Symbol &s) { return !values.contains(s.name) || s.allows(1); });
    const bool is_one = extent.with_values(values) == Extent(1);
    return is_allowed && is_one && values.size() <= most_form_symbols ? values : Extent::Bindings();
}

/// Returns each choice of one likely value for every symbol of an extent. Empty if a symbol has none.
std::vector<Extent::Bindings> likely_together(const Program &program, const Extent &extent) {
    std::vector<Extent::Bindings> choices{{}};
    for (const Symbol &symbol : program.symbols) {
        if (std::ranges::count(extent.symbols(), symbol.name) == 0) continue;
        std::vector<Extent::Bindings> longer;
        for (const Extent::Bindings &choice : choices) {
            for (const int64_t value : symbol.likely) {
                longer.push_back(choice);
                longer.back()[symbol.name] = value;
            }
        }
        choices = std::move(longer);
    }
    return extent.symbols().size() <= most_form_symbols ? choices : std::vector<Extent::Bindings>();
}

} // namespace

std::vector<Extent::Bindings> value_forms(const Program &program) {
    const std::set<Extent> extents = rows_and_columns(program);
    const bool updates = std::ranges::any_of(program.arguments, &Argument::inout);
    std::vector<Extent::Bindings> forms;
    const auto add = [&](const Extent::Bindings &values) {
        if (!values.empty() && std::ranges::find(forms, values) == forms.end()) forms.push_back(values);
    };
    for (const Symbol &symbol : program.symbols) {
        const auto counts = [&](const Extent &extent) { return std::ranges::count(extent.symbols(), symbol.name) > 0; };
        if (std::ranges::none_of(extents, counts)) continue;
        for (const int64_t value : symbol.likely) add({{symbol.name, value}});
    }
    for (const Symbol &symbol : program.symbols)
        if (symbol.source == SymbolSource::ranks && symbol.allows(1)) add({{symbol.name, 1}});
    for (const Extent &extent : extents)
        for (const Extent::Bindings &values : likely_together(program, extent)) add(values);
    for (const Extent &extent : extents)
        if (!updates) add(values_of_one(program, extent));
    std::ranges::stable_sort(forms, std::greater(), &Extent::Bindings::size);
    return forms;
}

Extent::Bindings with_group_values(const Program &program, Extent::Bindings values) {
    for (const Symbol &symbol : program.symbols) {
        const auto group = values.find(symbol.group);
        if (group == values.end() || group->second != 1) continue;
        values[symbol.name] = symbol.source == SymbolSource::rank ? 0 : symbol.divided.value();
    }
    return values;
}

std::optional<Program> with_interface_of(const Program &general, Program form) {
    const auto is_same = [](const Argument &a, const Argument &b) {
        return a.inout == b.inout && a.part == b.part && a.initial == b.initial && a.supply == b.supply;
    };
    if (!std::ranges::equal(general.arguments, form.arguments, is_same) || general.results.size() != form.results.size()) return {};
    const auto take_type = [&](ValueId from, ValueId to) {
        if (general.type(from).dtype != form.type(to).dtype || general.type(from).rank() != form.type(to).rank()) return false;
        form.values[to].type = general.type(from);
        return true;
    };
    for (size_t i = 0; i < form.arguments.size(); i++)
        if (!take_type(general.arguments[i].value, form.arguments[i].value)) return {};
    for (size_t i = 0; i < form.results.size(); i++)
        if (!take_type(general.results[i].value, form.results[i].value)) return {};
    form.symbols = general.symbols;
    return form;
}

} // namespace scalide

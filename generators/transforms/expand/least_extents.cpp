#include "transforms/expand/least_extents.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// The extent of an axis of the first operand, and the least extent that the operator needs.
struct Need {
    std::string attribute; ///< the attribute that requires them
    Extent extent, least;
};

using Needs = std::vector<Need>;

Needs of_place(const Program &program, const Node &node) {
    return {{"axis", program.type(node.operands[0]).shape[node.attributes.at("axis").integer.value()], 1}};
}

Needs of_sizes(const Program &program, const Node &node, const std::string &attribute) {
    const Extents &shape = program.type(node.operands[0]).shape;
    const std::vector<Attribute> &sizes = node.attributes.at(attribute).list;
    Needs needs;
    for (size_t axis = 0; axis < shape.size(); axis++) needs.push_back({attribute, shape[axis], sizes[axis].integer});
    return needs;
}

/// True if the result has no elements whenever this axis has none. Then nothing is read.
bool is_empty_with(const Extent &extent, const Extent &count) {
    return extent.is_static() ? extent.value() == 0 && count == Extent(0) : count.divide(extent).has_value();
}

Needs of_gather(const Program &program, const Node &node) {
    const Extent count = element_count(program.type(node.results[0]).shape);
    Needs needs = of_sizes(program, node, "slice_sizes");
    std::erase_if(needs, [&](const Need &need) { return need.least == Extent(1) && is_empty_with(need.extent, count); });
    return needs;
}

/// A window of updates has the operand's axes that are neither inserted nor batching.
Needs of_scatter(const Program &program, const Node &node) {
    const Extents &shape = program.type(node.operands[0]).shape, &updates = program.type(node.operands[2]).shape;
    const auto integers = [&](const char *name) { return to_integers(node.attributes.at(name)); };
    const std::vector<int64_t> window = integers("update_window_dims"),
                               kept = other_axes(std::ssize(shape), integers("inserted_window_dims"), integers("operand_batching_dims"));
    Needs needs;
    for (size_t i = 0; i < kept.size(); i++) needs.push_back({"updates", shape[kept[i]], updates[window[i]]});
    return needs;
}

Needs of_limits(const Program &program, const Node &node) { return of_sizes(program, node, "limit"); }

Needs of_slice(const Program &program, const Node &node) { return of_sizes(program, node, "sizes"); }

Needs of_update(const Program &program, const Node &node) {
    const Extents &shape = program.type(node.operands[0]).shape, &update = program.type(node.operands[1]).shape;
    Needs needs;
    for (size_t axis = 0; axis < shape.size(); axis++) needs.push_back({"update", shape[axis], update[axis]});
    return needs;
}

/// n elements have n - 1 gaps. If gaps are filled and n is not static, n must be at least 1.
Needs of_pad(const Program &program, const Node &node) {
    const Extents &shape = program.type(node.operands[0]).shape;
    const Padding pad = padding(node);
    Needs needs;
    for (size_t axis = 0; axis < shape.size(); axis++)
        if (pad.interior[axis] != 0 && !shape[axis].is_static()) needs.push_back({"interior", shape[axis], 1});
    return needs;
}

struct NeedsRow {
    std::string_view op;
    Needs (*needs)(const Program &, const Node &);
};

constexpr NeedsRow needs_rows[] = {{"argmax", of_place},
                                   {"argmin", of_place},
                                   {"dynamic_slice", of_slice},
                                   {"gather", of_gather},
                                   {"pad", of_pad},
                                   {"slice", of_limits},
                                   {"dynamic_update_slice", of_update},
                                   {"scatter", of_scatter},
                                   {"scatter_add", of_scatter},
                                   {"scatter_mul", of_scatter},
                                   {"scatter_min", of_scatter},
                                   {"scatter_max", of_scatter}};

/// Ranges of symbols, which operators narrow.
class Ranges {
public:
    explicit Ranges(std::vector<Symbol> &symbols) : symbols_(symbols) {}

    /// Raises the minima of the symbols of `surplus` until it is not negative; `surplus` grows with each symbol. Returns false if minima of
    /// single symbols cannot ensure this.
    bool raise(const Extent &surplus) {
        if (value(surplus, &Symbol::minimum) >= 0) return true;
        const std::vector<std::string> names = surplus.symbols();
        for (const std::string &name : names) raise_to(name, 1);
        if (value(surplus, &Symbol::minimum) < 0 && names.size() == 1)
            raise_to(names[0], first_value(names[0], [&](int64_t n) { return value_at(surplus, {{names[0], n}}) >= 0; }));
        return value(surplus, &Symbol::minimum) >= 0;
    }

    /// Lowers the maximum of the only symbol of `surplus` until it is not negative; `surplus` falls with the symbol. Returns false if there
    /// are several symbols or no such maximum.
    bool lower(const Extent &surplus) {
        if (value(surplus, &Symbol::maximum) >= 0) return true;
        const std::vector<std::string> names = surplus.symbols();
        if (names.size() != 1) return false;
        Symbol &lowered = symbol(names[0]);
        const int64_t most = first_value(names[0], [&](int64_t n) { return value_at(surplus, {{names[0], n}}) < 0; }) - 1;
        lowered.maximum = std::max(lowered.minimum, most / lowered.multiple * lowered.multiple);
        return value(surplus, &Symbol::maximum) >= 0;
    }

    /// Returns a lower bound of the extent for all values within the ranges.
    double least(const Extent &extent) {
        return sum_of(extent, [&](const std::string &name, int64_t coefficient) {
            return coefficient > 0 ? symbol(name).minimum : symbol(name).maximum;
        });
    }

private:
    Symbol &symbol(const std::string &name) { return *std::ranges::find(symbols_, name, &Symbol::name); }

    void raise_to(const std::string &name, int64_t least) {
        Symbol &raised = symbol(name);
        const int64_t steps = (least + raised.multiple - 1) / raised.multiple;
        raised.minimum = std::max(raised.minimum, std::min(steps * raised.multiple, raised.maximum));
    }

    /// Returns the least value in a symbol's range that has a property. All greater values must have it too. Returns the largest value if
    /// none has it.
    template<typename Property>
    int64_t first_value(const std::string &name, const Property &has) {
        int64_t low = symbol(name).minimum, high = symbol(name).maximum;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (has(middle))
                high = middle;
            else
                low = middle + 1;
        }
        return low;
    }

    double value(const Extent &extent, int64_t Symbol::*end) {
        Extent::Bindings bindings;
        for (const std::string &name : extent.symbols()) bindings[name] = symbol(name).*end;
        return value_at(extent, bindings);
    }

    static double value_at(const Extent &extent, const Extent::Bindings &bindings) {
        return sum_of(extent, [&](const std::string &name, int64_t) { return bindings.at(name); });
    }

    /// Evaluates the extent with `at(name, coefficient of the term)` as the value of each symbol.
    template<typename At>
    static double sum_of(const Extent &extent, const At &at) {
        double sum = 0;
        for (const auto &[monomial, coefficient] : extent.terms()) {
            double term = static_cast<double>(coefficient);
            for (const std::string &name : monomial) term *= static_cast<double>(at(name, coefficient));
            sum += term;
        }
        return sum;
    }

    std::vector<Symbol> &symbols_;
};

/// Returns how many terms with symbols have this sign.
int terms_of(const Extent &extent, int sign) {
    const Extent::Terms terms = extent.terms();
    return int(std::ranges::count_if(terms, [&](const auto &term) { return !term.first.empty() && term.second * sign > 0; }));
}

/// True if ranges of single symbols cannot express the requirement: the difference of two symbols, or a number minus several symbols.
bool is_open(const Extent &surplus) { return terms_of(surplus, -1) > 0 && (terms_of(surplus, 1) > 0 || surplus.symbols().size() > 1); }

bool narrow(Ranges &ranges, const Extent &surplus) {
    return is_open(surplus) || (terms_of(surplus, -1) == 0 ? ranges.raise(surplus) : ranges.lower(surplus));
}

/// Calls `visit(node, need)` for each need of each node.
template<typename Visit>
void for_each_need(const Program &program, const Visit &visit) {
    for (const Node &node : program.nodes) {
        for (const Region &region : node.regions) for_each_need(*region, visit);
        const auto *row = std::ranges::find(needs_rows, node.op, &NeedsRow::op);
        if (row == std::end(needs_rows)) continue;
        for (const Need &need : row->needs(program, node)) visit(node, need);
    }
}

} // namespace

void require_elements(Program &program) {
    Ranges ranges(program.symbols);
    for_each_need(program, [&](const Node &node, const Need &need) {
        const Extent surplus = need.extent - need.least;
        if (narrow(ranges, surplus)) return;
        throw UserError({node.location, node.op + "." + need.attribute,
                         "the axis must have at least " + to_string(need.least) + (need.least == Extent(1) ? " element" : " elements"),
                         to_string(need.extent), surplus.is_static() ? "" : "Give the symbols a range, such as n in 1..1000"});
    });
}

std::string to_string(const Requirement &requirement) {
    return to_string(requirement.extent) + " must be at least " + to_string(requirement.least);
}

std::vector<Requirement> open_requirements(const Program &program) {
    std::vector<Symbol> symbols = program.symbols;
    std::vector<Requirement> open;
    for_each_need(program, [&](const Node &node, const Need &need) {
        const Extent surplus = need.extent - need.least;
        const Requirement requirement{node.op + "." + need.attribute, need.extent, need.least};
        if (is_open(surplus) && Ranges(symbols).least(surplus) < 0 && std::ranges::find(open, requirement) == open.end())
            open.push_back(requirement);
    });
    return open;
}

} // namespace scalide

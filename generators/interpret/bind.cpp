#include "interpret/bind.h"
#include "ir/words.h"
#include <algorithm>

namespace scalide {

namespace {

/// An extent of an argument and the value that it must have.
struct Equation {
    Extent extent;
    int64_t value = 0;
    std::string subject; ///< `<program>.<argument>`
};

[[noreturn]] void fail(const std::string &subject, const std::string &requirement, const std::string &got) {
    throw UserError({Location(), subject, requirement, got, ""});
}

/// An extent as factor * symbol + rest, where the symbol is the only unknown one. The factor is 0 if the extent does not have this form.
struct Linear {
    std::string symbol;
    int64_t factor = 0, rest = 0;
    bool is_linear = true;
};

Linear linear_form(const Extent &extent, const Extent::Bindings &known) {
    Linear form;
    for (const auto &[monomial, coefficient] : extent.terms()) {
        int64_t product = coefficient;
        std::vector<std::string> unknown;
        for (const std::string &symbol : monomial) {
            const auto found = known.find(symbol);
            if (found == known.end()) {
                unknown.push_back(symbol);
            } else {
                product *= found->second;
            }
        }
        if (unknown.empty()) {
            form.rest += product;
            continue;
        }
        if (unknown.size() > 1 || (!form.symbol.empty() && form.symbol != unknown[0])) form.is_linear = false;
        form.symbol = unknown[0];
        form.factor += product;
    }
    return form;
}

/// Returns true if the equation determined the value of a new symbol.
bool solve(const Equation &equation, Extent::Bindings &known) {
    const Linear form = linear_form(equation.extent, known);
    if (!form.is_linear || form.factor == 0) return false;
    const int64_t product = equation.value - form.rest;
    if (product % form.factor != 0 || product / form.factor < 0)
        fail(equation.subject, "the extent must have the form " + to_string(equation.extent), std::to_string(equation.value));
    known[form.symbol] = product / form.factor;
    return true;
}

std::vector<Equation> check_types(const Program &program, const std::vector<Array> &inputs) {
    if (inputs.size() != program.arguments.size())
        fail(program.name, "the number of arguments must be " + std::to_string(program.arguments.size()), std::to_string(inputs.size()));
    std::vector<Equation> equations;
    for (size_t i = 0; i < inputs.size(); i++) {
        const Value &value = program.values[program.arguments[i].value];
        const Array &input = inputs[i];
        const std::string subject = subject_of(program.name, value.name);
        if (input.dtype != value.type.dtype)
            fail(subject, "dtype must be " + std::string(to_string(value.type.dtype)), std::string(to_string(input.dtype)));
        if (input.shape.size() != value.type.shape.size())
            fail(subject, "rank must be " + std::to_string(value.type.rank()), std::to_string(input.shape.size()));
        int64_t count = 1;
        for (size_t axis = 0; axis < input.shape.size(); axis++) {
            equations.push_back({value.type.shape[axis], input.shape[axis], subject});
            count *= input.shape[axis];
        }
        if (count != static_cast<int64_t>(input.data.size()))
            fail(subject, "the number of elements must be " + std::to_string(count), std::to_string(input.data.size()));
    }
    return equations;
}

/// A group that no argument is divided over has one rank.
void bind_group_symbols(const Program &program, Extent::Bindings &bindings) {
    for (const Symbol &symbol : program.symbols) {
        if (symbol.source == SymbolSource::ranks) bindings.emplace(symbol.name, 1);
        if (symbol.source == SymbolSource::rank) bindings.emplace(symbol.name, 0);
        if (symbol.source != SymbolSource::chunk) continue;
        const int64_t ranks = bindings.at(symbol.group), elements = symbol.divided.evaluate(bindings);
        bindings[symbol.name] = elements / ranks + (elements % ranks > 0);
    }
}

void check_symbols(const Program &program, const Extent::Bindings &bindings) {
    for (const Symbol &symbol : program.symbols) {
        const auto found = bindings.find(symbol.name);
        if (found == bindings.end()) fail(program.name + "." + symbol.name, "the extents of the arguments give the symbol no value", "");
        const int64_t value = found->second;
        if (value < symbol.minimum || value > symbol.maximum || value % symbol.multiple != 0)
            fail(program.name + "." + symbol.name,
                 "must be in " + std::to_string(symbol.minimum) + ".." + std::to_string(symbol.maximum) + " step " +
                     std::to_string(symbol.multiple),
                 std::to_string(value));
    }
}

Attribute evaluate(const Attribute &attribute, const Extent::Bindings &bindings) {
    Attribute result = attribute;
    if (attribute.kind == Attribute::Kind::integer && !attribute.integer.is_static()) result.integer = attribute.integer.evaluate(bindings);
    for (Attribute &element : result.list) element = evaluate(element, bindings);
    return result;
}

} // namespace

Extent::Bindings bind_extents(const Program &program, const std::vector<Array> &inputs) {
    const std::vector<Equation> equations = check_types(program, inputs);
    Extent::Bindings bindings;
    while (std::ranges::any_of(equations, [&](const Equation &equation) { return solve(equation, bindings); })) {
    }
    bind_group_symbols(program, bindings);
    check_symbols(program, bindings);
    for (const Equation &equation : equations) {
        const int64_t extent = equation.extent.evaluate(bindings);
        if (extent == equation.value) continue;
        const std::string value = equation.extent.is_static() ? "" : " = " + std::to_string(extent);
        fail(equation.subject, "the extent must be " + to_string(equation.extent) + value, std::to_string(equation.value));
    }
    return bindings;
}

std::vector<int64_t> evaluate(const Extents &shape, const Extent::Bindings &bindings) {
    std::vector<int64_t> extents;
    for (const Extent &extent : shape) extents.push_back(extent.evaluate(bindings));
    return extents;
}

Attributes evaluate(const Attributes &attributes, const Extent::Bindings &bindings) {
    Attributes result;
    for (const auto &[name, attribute] : attributes) result[name] = evaluate(attribute, bindings);
    return result;
}

} // namespace scalide

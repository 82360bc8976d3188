#include "transforms/calls/bind_symbols.h"
#include "ir/regions.h"
#include <algorithm>

namespace scalide {

namespace {

using Bindings = std::map<std::string, Extent>;

Extent replaced(const Extent &extent, const Bindings &bindings) {
    Extent sum;
    for (const auto &[monomial, coefficient] : extent.terms()) {
        Extent product = coefficient;
        for (const std::string &symbol : monomial) {
            const auto found = bindings.find(symbol);
            product = product * (found == bindings.end() ? Extent::symbol(symbol) : found->second);
        }
        sum = sum + product;
    }
    return sum;
}

Attribute replaced(const Attribute &attribute, const Bindings &bindings) {
    Attribute result = attribute;
    result.integer = replaced(attribute.integer, bindings);
    for (Attribute &element : result.list) element = replaced(element, bindings);
    return result;
}

/// Replaces symbols in types and attributes.
Program with_extents(Program program, const Bindings &bindings) {
    for (Value &value : program.values)
        for (Extent &extent : value.type.shape) extent = replaced(extent, bindings);
    for (Node &node : program.nodes)
        for (const auto &[name, attribute] : Attributes(node.attributes)) node.attributes[name] = replaced(attribute, bindings);
    return program;
}

/// Derives n from an equation such as `2*n = extent`.
void learn(const Extent &pattern, const Extent &extent, Bindings &bindings) {
    const Extent::Terms terms = pattern.terms();
    if (pattern.is_static() || terms.size() != 1) return;
    const auto &[monomial, coefficient] = *terms.begin();
    if (monomial.size() != 1) return;
    if (const auto quotient = extent.divide(Extent(coefficient))) bindings.emplace(monomial[0], *quotient);
}

std::string list_of(const std::vector<Type> &types) {
    std::string text;
    for (const Type &type : types) text += (text.empty() ? "" : ", ") + to_string(type);
    return text;
}

/// True if `symbol` may take every value of `extent`.
bool is_within(const Extent &extent, const Symbol &symbol, const std::vector<Symbol> &caller_symbols) {
    if (symbol == Symbol{symbol.name}) return true;
    if (extent.is_static())
        return extent.value() >= symbol.minimum && extent.value() <= symbol.maximum && extent.value() % symbol.multiple == 0;
    const auto same = std::ranges::find_if(caller_symbols, [&](const Symbol &own) { return Extent::symbol(own.name) == extent; });
    return same != caller_symbols.end() && same->minimum >= symbol.minimum && same->maximum <= symbol.maximum &&
           same->multiple % symbol.multiple == 0;
}

} // namespace

Program bind_symbols(const Node &call, const Program &callee, const std::vector<Type> &operands,
                     const std::vector<Symbol> &caller_symbols) {
    std::vector<Type> wanted;
    for (const Argument &argument : callee.arguments) wanted.push_back(callee.type(argument.value));
    Bindings bindings;
    for (size_t i = 0; i < std::min(wanted.size(), operands.size()); i++)
        for (size_t axis = 0; axis < std::min(wanted[i].shape.size(), operands[i].shape.size()); axis++)
            learn(wanted[i].shape[axis], operands[i].shape[axis], bindings);
    for (Type &type : wanted)
        for (Extent &extent : type.shape) extent = replaced(extent, bindings);
    if (wanted != operands)
        throw UserError({call.location, call.op + ".operands", "must match the arguments of " + callee.name + ", " + list_of(wanted),
                         list_of(operands), ""});
    Program bound = callee;
    for (const Symbol &symbol : callee.symbols) {
        const auto extent = bindings.find(symbol.name);
        if (extent != bindings.end() && !is_within(extent->second, symbol, caller_symbols))
            throw UserError({call.location, call.op + ".operands",
                             "the extent must be within the bounds of symbol " + symbol.name + " of " + callee.name,
                             to_string(extent->second), ""});
    }
    bound = map_regions(std::move(bound), [&](Program region) { return with_extents(std::move(region), bindings); });
    return with_extents(std::move(bound), bindings);
}

} // namespace scalide

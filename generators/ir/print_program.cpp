#include "ir/print.h"
#include "ir/text.h"
#include "ir/words.h"

#include <algorithm>

namespace scalide {

namespace {

constexpr size_t longest_header = 138; // longest header that is printed on one line, without the " {" after it

/// Begins each line of a node in a text whose lines get locations. A text of a program has no other control characters than line breaks.
constexpr char node_mark = '\x1f';

/// Calls print(item, text) for each item and puts commas between items.
template<typename Items, typename Print>
std::string join(const Items &items, const Print &print) {
    std::string text;
    bool first = true;
    for (const auto &item : items) {
        if (!first) text += ", ";
        first = false;
        text += print(item);
    }
    return text;
}

/// Returns ` data of x`, ` scale of x` or ` form of x`; nothing for an array that is not a part of a tensor.
std::string print_part(const ArrayPart &part) {
    if (part == ArrayPart()) return "";
    const char *const words[] = {" form of ", " data of ", " scale of "};
    return words[static_cast<int>(part.kind)] + name_to_string(part.of);
}

class Printer {
public:
    /// `outer`: the symbols of the program around a region. If `places` is given, it gets the location of each node, and the line of each
    /// node begins with node_mark.
    explicit Printer(const Program &program, std::set<std::string> outer = {}, std::vector<Location> *places = nullptr);
    std::string print() const;
    std::string print_region(const std::string &indent) const;

private:
    std::string header() const;
    std::string arguments() const;
    std::string results() const;
    std::string body(const std::string &indent) const;
    std::string attributes() const; ///< with a leading blank
    std::string symbols() const;
    std::string symbol(const Symbol &symbol) const;
    std::string argument(const Argument &argument) const;
    std::string result(const Result &result) const;
    std::string node(const Node &node, const std::string &indent) const;
    std::string types(const Node &node) const;
    std::string names(const std::vector<ValueId> &values) const;

    const Program &program_;
    std::set<std::string> argument_symbols_; ///< symbols in the types of arguments
    std::set<std::string> symbols_;          ///< all symbols
    std::vector<Location> *places_;
};

Printer::Printer(const Program &program, std::set<std::string> outer, std::vector<Location> *places)
    : program_(program), symbols_(std::move(outer)), places_(places) {
    for (const Argument &argument : program.arguments) {
        for (const Extent &extent : program.type(argument.value).shape) {
            const std::vector<std::string> names = extent.symbols();
            argument_symbols_.insert(names.begin(), names.end());
        }
    }
    symbols_.insert(argument_symbols_.begin(), argument_symbols_.end());
    for (const Symbol &symbol : program.symbols) symbols_.insert(symbol.name);
}

std::string Printer::print() const { return header() + " {\n" + body("  ") + "}\n"; }

/// Returns `body(..) -> (..) {`, the nodes and `}`, without a line break at the end.
std::string Printer::print_region(const std::string &indent) const {
    const std::string name = indent + name_to_string(program_.name);
    std::string header = name + arguments() + " " + results();
    if (header.size() > longest_header) header = name + "\n" + indent + "    " + arguments() + "\n" + indent + "    " + results();
    return header + " {\n" + body(indent + "  ") + indent + "}";
}

std::string Printer::body(const std::string &indent) const {
    std::string text, scope;
    const auto enter = [&](const std::string &next) {
        if (next == scope) return;
        if (!scope.empty()) text += indent + "}\n";
        if (!next.empty()) text += indent + "scope " + quote(next) + " {\n";
        scope = next;
    };
    for (const Node &line : program_.nodes) {
        enter(line.scope);
        const std::string inner = scope.empty() ? indent : indent + "  ";
        if (places_) {
            places_->push_back(line.location);
            text += node_mark;
        }
        text += inner + node(line, inner) + "\n";
    }
    enter("");
    return text;
}

std::string Printer::header() const {
    const std::string settings = attributes() + symbols();
    const std::string start = "program " + name_to_string(program_.name) + settings;
    const std::string line = start + (settings.empty() ? "" : " ") + arguments() + " " + results();
    return line.size() <= longest_header ? line : start + "\n    " + arguments() + "\n    " + results();
}

std::string Printer::arguments() const {
    return "(" + join(program_.arguments, [&](const Argument &each) { return argument(each); }) + ")";
}

std::string Printer::results() const {
    return "-> (" + join(program_.results, [&](const Result &each) { return result(each); }) + ")";
}

std::string Printer::attributes() const { return program_.attributes.empty() ? "" : " " + to_string(program_.attributes, symbols_); }

std::string Printer::symbols() const {
    std::vector<Symbol> bounded;
    for (const Symbol &symbol : program_.symbols) {
        if (symbol != Symbol{symbol.name} || !argument_symbols_.contains(symbol.name)) bounded.push_back(symbol);
    }
    if (bounded.empty()) return "";
    return " [" + join(bounded, [&](const Symbol &each) { return symbol(each); }) + "]";
}

std::string Printer::symbol(const Symbol &symbol) const {
    const Symbol free{symbol.name};
    std::string text = symbol.name;
    if (symbol.minimum != free.minimum || symbol.maximum != free.maximum) {
        text += " in " + std::to_string(symbol.minimum) + ".." + std::to_string(symbol.maximum);
    }
    if (symbol.multiple != free.multiple) text += " step " + std::to_string(symbol.multiple);
    if (!symbol.likely.empty()) text += " likely [" + join(symbol.likely, [](int64_t value) { return std::to_string(value); }) + "]";
    switch (symbol.source) {
    case SymbolSource::arguments: break;
    case SymbolSource::ranks: text += " ranks"; break;
    case SymbolSource::rank: text += " rank of " + symbol.group; break;
    case SymbolSource::chunk: text += " chunk " + to_string(symbol.divided) + " of " + symbol.group; break;
    }
    return text;
}

std::string Printer::argument(const Argument &argument) const {
    const Value &value = program_.values[argument.value];
    const char *const supplies[] = {"", " constant", " prepared", " each", " step"};
    return name_to_string(value.name) + ": " + to_string(value.type) + (argument.scaled ? " scaled" : "") + print_part(argument.part) +
           (argument.inout ? " inout" : "") + (argument.initial ? " from " + std::to_string(*argument.initial) : "") +
           supplies[static_cast<int>(argument.supply)];
}

std::string Printer::result(const Result &result) const {
    const Value &value = program_.values[result.value];
    const std::string of = " = " + name_to_string(value.name);
    if (result.argument >= 0) return name_to_string(program_.value_name(program_.arguments[result.argument].value)) + of;
    return name_to_string(result.name) + ": " + to_string(value.type) + (result.scaled ? " scaled" : "") + print_part(result.part) +
           (result.name == value.name ? "" : of);
}

std::string Printer::node(const Node &node, const std::string &indent) const {
    const std::string attributes = to_string(node.attributes, symbols_);
    const std::string line = names(node.results) + " = " + node.op + "(" + names(node.operands) + ")" +
                             (attributes.empty() ? "" : " " + attributes) + types(node) +
                             (node.role == Role::cotangent ? " cotangent" : "");
    std::string regions;
    for (const Region &region : node.regions)
        regions += (regions.empty() ? " with\n" : ",\n") + Printer(*region, symbols_, places_).print_region(indent + "  ");
    return line + regions;
}

std::string Printer::types(const Node &node) const {
    const auto is_bare = [&](const Value &value) { return is_unknown(value.type) && value.part == ArrayPart(); };
    if (std::ranges::all_of(node.results, [&](ValueId value) { return is_bare(program_.values[value]); })) return "";
    return " : " +
           join(node.results, [&](ValueId value) { return to_string(program_.type(value)) + print_part(program_.values[value].part); });
}

std::string Printer::names(const std::vector<ValueId> &values) const {
    return join(values, [&](ValueId value) { return name_to_string(program_.value_name(value)); });
}

} // namespace

namespace {

std::string print_all(const Program &program, std::vector<Location> *places) {
    std::string text;
    for (const Program &callee : program.programs) text += Printer(callee, {}, places).print() + "\n";
    return text + Printer(program, {}, places).print();
}

} // namespace

std::string to_string(const Program &program) { return print_all(program, nullptr); }

std::vector<PrintedLine> to_lines(const Program &program) {
    std::vector<Location> places;
    const std::string text = print_all(program, &places);
    std::vector<PrintedLine> lines;
    auto place = places.begin();
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
        end = text.find('\n', begin);
        const bool is_node = text[begin] == node_mark;
        lines.push_back({text.substr(begin + is_node, end - begin - is_node), is_node ? *place++ : Location()});
    }
    return lines;
}

} // namespace scalide

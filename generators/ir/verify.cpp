#include "ir/verify.h"

#include "ir/regions.h"
#include "ir/text.h"
#include "ir/words.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <unordered_set>

namespace scalide {

namespace {

constexpr const char *name_rule = "the name must be UTF-8 without zero bytes, and not empty",
                     *plain_name_rule = "the name must consist of letters, digits and _ . $";
constexpr int64_t largest_extent = 2147483647;
constexpr double most_counted = 0x1p53; // elements that passes count, in coefficients of 64 bits
constexpr int most_axes = 8;            // of the runtime's arrays (SCALIDE_MAX_RANK)

/// The facts of an argument or a result that check_parts() needs.
struct NamedPart {
    const std::string &name;
    ValueId value;
    bool scaled;
    const ArrayPart &part;
};

/// `owner.field`: the subject of a message.
struct Subject {
    const std::string &owner;
    std::string_view field;
    std::string text() const { return subject_of(owner, field); }
};

class Verifier {
public:
    /// Calls may use `callees`, the sub-programs before this program.
    Verifier(const Program &program, std::span<const Program> callees, const std::string &after)
        : program_(program), callees_(callees), after_(after), made_(program.values.size(), false) {}
    void run();
    /// Verifies the program that a caller binds: its arguments must determine its symbols.
    void run_outermost();

private:
    void check_symbols();
    void check_group(const Symbol &symbol, const std::string &subject) const;
    void check_arguments();
    void check_supply(const Argument &argument) const;
    void check_node(const Node &node);
    void check_call(const Node &node, const Attribute &attribute);
    void check_regions(const Node &node);
    void check_results();
    void check_result(const Result &result);
    void check_inout(const Result &result);
    void check_symbol_sources();
    void check_parts(const std::vector<NamedPart> &parts) const;

    void make(ValueId value, const Subject &field);
    void check_made(ValueId value, const Subject &field) const;
    void check_type(const Type &type, const Subject &subject) const;
    void check_count(ValueId array, const Subject &subject) const;
    void check_countable(const Type &type, const Subject &subject) const;
    void check_rank(ValueId array, const Subject &subject);
    Location place_of(ValueId value) const;
    void check_known(const Extent &extent, const Subject &subject) const;
    void check_known(const Attribute &attribute, const Subject &subject) const;
    void check_types(const std::vector<ValueId> &values, const std::vector<Type> &expected, const std::string &field) const;

    void require(bool holds, const std::string &subject, const std::string &requirement, const std::string &got) const {
        if (!holds) refuse(subject, requirement, got);
    }
    /// For checks that every node passes in every build. The text of the message is built only if the check fails.
    template<typename Got>
    void require(bool holds, const Subject &subject, std::string_view requirement, const Got &got) const {
        if (!holds) refuse(subject.text(), std::string(requirement), got());
    }
    [[noreturn]] void refuse(const std::string &subject, const std::string &requirement, const std::string &got,
                             const std::string &way_out = "") const;

    const Program &program_;
    std::span<const Program> callees_;
    const std::string &after_;
    Location location_; ///< of the current node
    bool is_outermost_ = false, is_region_ = false;
    std::vector<bool> made_;
    std::unordered_set<std::string_view> names_;
    std::set<std::string> symbols_;
};

void Verifier::run() {
    require(is_name(program_.name), "program", name_rule, quote(program_.name));
    check_symbols();
    check_arguments();
    for (const auto &[name, attribute] : program_.attributes) check_known(attribute, {program_.name, name});
    for (const Node &node : program_.nodes) check_node(node);
    location_ = {};
    check_results();
}

void Verifier::run_outermost() {
    is_outermost_ = true;
    run();
    if (after_.empty()) check_symbol_sources();
}

void Verifier::check_symbols() {
    for (const Symbol &symbol : program_.symbols) {
        const std::string subject = subject_of(program_.name, symbol.name);
        require(is_plain_name(symbol.name), subject, plain_name_rule, quote(symbol.name));
        require(symbols_.insert(symbol.name).second, subject, "must be declared once", "twice");
        const std::string range = std::to_string(symbol.minimum) + ".." + std::to_string(symbol.maximum);
        const bool ordered = 0 <= symbol.minimum && symbol.minimum <= symbol.maximum && symbol.maximum <= largest_extent;
        require(ordered, subject, "the range must be within 0..2147483647", range);
        require(symbol.multiple >= 1, subject, "the step must be at least 1", std::to_string(symbol.multiple));
        for (const int64_t value : symbol.likely)
            require(symbol.allows(value), subject, "a likely value must be a multiple of the step in " + range, std::to_string(value));
        check_group(symbol, subject);
    }
}

/// A symbol of a group stands after the symbol of the group's number of ranks, and after the symbols of what is divided.
void Verifier::check_group(const Symbol &symbol, const std::string &subject) const {
    if (symbol.source == SymbolSource::ranks)
        require(symbol.minimum >= 1 && symbol.maximum <= most_ranks, subject, "a group has 1 to 65536 ranks",
                std::to_string(symbol.minimum) + ".." + std::to_string(symbol.maximum));
    if (symbol.source != SymbolSource::rank && symbol.source != SymbolSource::chunk) return;
    const auto group = std::ranges::find(program_.symbols, symbol.group, &Symbol::name);
    require(group != program_.symbols.end() && group->source == SymbolSource::ranks && symbols_.contains(symbol.group), subject,
            "must be of a group, a symbol with `ranks` that is declared before", symbol.group);
    for (const std::string &of : symbol.divided.symbols())
        require(symbols_.contains(of), subject, "must divide symbols that are declared before", of);
}

void Verifier::check_arguments() {
    std::vector<NamedPart> parts;
    for (const Argument &argument : program_.arguments) {
        make(argument.value, {program_.name, "arguments"});
        check_count(argument.value, {program_.name, program_.value_name(argument.value)});
        check_rank(argument.value, {program_.name, program_.value_name(argument.value)});
        check_supply(argument);
        parts.push_back({program_.value_name(argument.value), argument.value, argument.scaled, argument.part});
    }
    check_parts(parts);
}

// A run does not write constants, and a sub-program gets its arguments from its caller.
void Verifier::check_supply(const Argument &argument) const {
    const bool is_of_region = argument.supply == Supply::each || argument.supply == Supply::step;
    internal_check(is_region_ || !is_of_region, "each and step are arguments of regions");
    if (argument.supply == Supply::run || is_of_region) return;
    const std::string argument_name = program_.value_name(argument.value);
    if (argument.inout)
        throw UserError(statement(argument.location, subject_of(program_.name, argument_name) + " cannot be both inout and constant",
                                  "Remove one of the words"));
    if (!is_outermost_)
        throw UserError(statement(argument.location, subject_of(program_.name, argument_name) + " is constant in a sub-program",
                                  "Declare the argument of the main program as constant instead"));
}

void Verifier::check_node(const Node &node) {
    location_ = node.location;
    if (!is_plain_name(node.op)) refuse(program_.name, "the name of an operator must consist of letters, digits and _ . $", quote(node.op));
    require(!node.results.empty(), {node.op, "results"}, "a node must have at least one result", [] { return ""; });
    for (const ValueId operand : node.operands) check_made(operand, {node.op, "operands"});
    for (const auto &[name, attribute] : node.attributes) check_known(attribute, {node.op, name});
    for (const ValueId result : node.results) make(result, {node.op, "results"});
    const auto callee = node.attributes.find("program");
    require(node.op != "call" || callee != node.attributes.end(), {node.op, "program"}, "must be the name of a sub-program",
            [] { return ""; });
    if (callee != node.attributes.end()) check_call(node, callee->second);
    if (find_region_kind(node.op) != nullptr || !node.regions.empty()) check_regions(node);
}

/// Regions use the symbols and the sub-programs of this program, and no names of it.
void Verifier::check_regions(const Node &node) {
    require(find_region_kind(node.op) != nullptr, {node.op, "regions"}, "only loops and branches own programs",
            [&] { return name_to_string(node.regions[0]->name); });
    for (const Region &region : node.regions) {
        internal_check(region->symbols.empty() && region->programs.empty(),
                       "region " + region->name + " has symbols or programs of its own");
        Verifier verifier(*region, callees_, after_);
        verifier.symbols_ = symbols_;
        verifier.is_region_ = true;
        verifier.run();
    }
    try {
        check_types(node.results, region_result_types(program_, node), node.op + ".results");
    } catch (const UserError &error) {
        if (after_.empty()) throw;
        throw InternalError("internal error: after " + after_ + ": " + error.what());
    }
}

// A program attribute must name a sub-program. A call must match its signature.
void Verifier::check_call(const Node &node, const Attribute &attribute) {
    const auto callee = std::ranges::find(callees_, attribute.word, &Program::name);
    require(callee != callees_.end(), node.op + ".program", "must be the name of a sub-program that is defined before",
            to_string(attribute));
    if (node.op != "call") return;
    std::vector<Type> operands, results;
    for (const Argument &argument : callee->arguments) operands.push_back(callee->type(argument.value));
    for (const Result &result : callee->results) results.push_back(callee->type(result.value));
    check_types(node.operands, operands, "call.operands");
    check_types(node.results, results, "call.results");
}

void Verifier::check_results() {
    std::unordered_set<std::string> names;
    std::vector<NamedPart> parts;
    for (const Result &result : program_.results) {
        require(names.insert(result.name).second, subject_of(program_.name, result.name), "the name of a result must be unique", "");
        check_result(result);
        check_count(result.value, {program_.name, result.name});
        check_rank(result.value, {program_.name, result.name});
        parts.push_back({result.name, result.value, result.scaled, result.part});
    }
    check_parts(parts);
    std::vector<int> counts(program_.arguments.size(), 0);
    for (const Result &result : program_.results)
        if (result.argument >= 0) counts[result.argument]++;
    for (size_t i = 0; i < counts.size(); i++) {
        const Argument &argument = program_.arguments[i];
        const Subject subject{program_.name, program_.value_name(argument.value)};
        require(argument.inout || counts[i] == 0, subject, "an argument that is a result must be inout", [] { return ""; });
        require(!argument.inout || counts[i] == 1, subject, "an inout argument must be exactly one result",
                [&] { return std::to_string(counts[i]) + " results"; });
    }
}

void Verifier::check_result(const Result &result) {
    const std::string subject = subject_of(program_.name, result.name);
    require(is_name(result.name), subject, name_rule, quote(result.name));
    check_made(result.value, {program_.name, result.name});
    const bool in_range = result.argument >= -1 && result.argument < static_cast<int>(program_.arguments.size());
    require(in_range, subject, "must be an argument or -1", std::to_string(result.argument));
    if (result.argument >= 0) check_inout(result);
}

void Verifier::check_inout(const Result &result) {
    const Argument &argument = program_.arguments[result.argument];
    const Value &before = program_.values[argument.value];
    const Value &after = program_.values[result.value];
    const std::string subject = subject_of(program_.name, result.name);
    require(result.name == before.name, subject, "must have the name of its argument", name_to_string(before.name));
    const std::string type = to_string(after.type) + " (" + name_to_string(after.name) + ")";
    require(before.type == after.type, subject, "must have the type of the inout argument, " + to_string(before.type), type);
    require(result.scaled == argument.scaled, subject, "must be scaled exactly if its argument is scaled",
            result.scaled ? "scaled" : "plain");
    require(result.part == argument.part, subject, "must be the same part as its argument", "");
}

// A split array is its data, directly followed by its scale. Names of arrays that a caller sees must be unique.
void Verifier::check_parts(const std::vector<NamedPart> &parts) const {
    std::unordered_set<std::string> arrays;
    for (size_t i = 0; i < parts.size(); i++) {
        const auto &[name, value, scaled, part] = parts[i];
        const std::string subject = subject_of(program_.name, name), of = name_to_string(part.of), array = name_to_string(part.array(name));
        const auto is_part = [&](size_t j, ArrayPart::Kind kind) {
            return j < parts.size() && parts[j].part == ArrayPart{kind, parts[i].part.of};
        };
        const bool is_whole = part.kind == ArrayPart::Kind::whole;
        require(is_whole ? part.of.empty() : is_name(part.of), subject, "must be a whole array, or the data or scale of a named array",
                (is_whole ? "a form of " : "a part of ") + of);
        require(is_whole || !scaled, subject, "must not be scaled, because it is a part of " + of, "scaled");
        if (part.is_scale()) {
            require(program_.type(value) == Type{Dtype::f32, {}}, subject, "must be f32[], because it is a scale",
                    to_string(program_.type(value)));
            require(i > 0 && is_part(i - 1, ArrayPart::Kind::data), subject, "must directly follow the data of " + of, "");
        } else {
            require(is_whole || is_part(i + 1, ArrayPart::Kind::scale), subject, "must be directly followed by the scale of " + of, "");
            require(arrays.insert(part.array(name)).second, subject, "the name of its array must be unique", array);
        }
    }
}

void Verifier::make(ValueId value, const Subject &field) {
    const bool in_range = value >= 0 && value < static_cast<ValueId>(made_.size());
    require(in_range, field, "must be the index of a value", [&] { return std::to_string(value); });
    const Value &made = program_.values[value];
    const auto name = [&] { return name_to_string(made.name); };
    require(!made_[value], field, "each value must be defined once", name);
    require(is_name(made.name), field, name_rule, [&] { return quote(made.name); });
    require(made.part == ArrayPart() || is_name(made.part.of), {program_.name, made.name}, "must be a part of a named array",
            [&] { return quote(made.part.of); });
    require(names_.insert(made.name).second, field, "the name must be unique", name);
    check_type(made.type, {program_.name, made.name});
    if (after_.empty()) check_countable(made.type, {program_.name, made.name});
    made_[value] = true;
}

void Verifier::check_made(ValueId value, const Subject &field) const {
    const bool in_range = value >= 0 && value < static_cast<ValueId>(made_.size());
    require(in_range, field, "must be the index of a value", [&] { return std::to_string(value); });
    require(made_[value], field, "must be defined before it is used", [&] { return name_to_string(program_.value_name(value)); });
}

void Verifier::check_type(const Type &type, const Subject &subject) const {
    require(!is_unknown(type), subject, "must have a type", [] { return ""; });
    const auto got = [&] { return to_string(type); };
    require(type.dtype != Dtype::f64 || type.is_scalar(), subject, "must be a scalar, because it is f64 (f32 arrays are possible)", got);
    for (const Extent &extent : type.shape) {
        check_known(extent, subject);
        const bool fits = !extent.is_static() || (extent.value() >= 0 && extent.value() <= largest_extent);
        require(fits, subject, "must have extents from 0 to 2147483647", [&] { return to_string(extent); });
    }
}

void Verifier::check_count(ValueId array, const Subject &subject) const {
    double count = 1; // symbolic extents are checked at bind
    for (const Extent &extent : program_.type(array).shape) count *= extent.is_static() ? double(extent.value()) : 1;
    if (count > double(most_elements))
        refuse(subject.text(), "must have at most " + std::to_string(most_elements) + " elements", to_string(program_.type(array)),
               "Split the array");
}

/// Checks that passes can count the elements. Kernels may iterate over more elements than an array may have.
void Verifier::check_countable(const Type &type, const Subject &subject) const {
    double count = 1; // the coefficients of a product are at most the product of the sums of coefficients
    for (const Extent &extent : type.shape) {
        double sum = 0;
        for (const auto &[monomial, coefficient] : extent.terms()) sum += std::abs(double(coefficient));
        count *= std::max(sum, 1.0);
    }
    require(count < most_counted, subject, "must have fewer than 2^53 elements even if all symbols are 1", [&] { return to_string(type); });
}

/// Checks the rank of arguments and results. Values between kernels may have any rank.
void Verifier::check_rank(ValueId array, const Subject &subject) {
    const Type &type = program_.type(array);
    if (!after_.empty() || type.rank() <= most_axes) return;
    location_ = place_of(array);
    refuse(subject.text(), "must have at most " + std::to_string(most_axes) + " axes", to_string(type), "Reshape the array");
}

/// Returns the symbol of an extent such as `4*b`, from which bind computes its value; empty for other extents.
std::string sole_symbol(const Extent &extent) {
    const Extent::Terms terms = extent.terms();
    if (terms.size() != 1) return "";
    const auto &[monomial, coefficient] = *terms.begin();
    return monomial.size() == 1 && coefficient > 0 ? monomial[0] : "";
}

/// Checks that an axis of an argument determines each symbol.
void Verifier::check_symbol_sources() {
    std::set<std::string> known;
    for (const Argument &argument : program_.arguments)
        for (const Extent &extent : program_.type(argument.value).shape) known.insert(sole_symbol(extent));
    for (const Symbol &symbol : program_.symbols) {
        if (known.contains(symbol.name) || symbol.source != SymbolSource::arguments) continue;
        const auto uses = [&](const Argument &argument) {
            return std::ranges::any_of(program_.type(argument.value).shape,
                                       [&](const Extent &extent) { return std::ranges::count(extent.symbols(), symbol.name) > 0; });
        };
        const auto user = std::ranges::find_if(program_.arguments, uses);
        const bool is_used = user != program_.arguments.end();
        location_ = is_used ? user->location : Location();
        const std::string got = is_used ? name_to_string(program_.value_name(user->value)) + ": " + to_string(program_.type(user->value))
                                        : "no argument with it";
        refuse(subject_of(program_.name, symbol.name),
               "must be alone on an axis of an argument (" + symbol.name + ", or 4*" + symbol.name +
                   "), so that the argument gives its value",
               got);
    }
}

/// Returns the location of a value's node, or of the argument.
Location Verifier::place_of(ValueId value) const {
    for (const Node &node : program_.nodes)
        if (std::ranges::find(node.results, value) != node.results.end()) return node.location;
    const auto argument = std::ranges::find(program_.arguments, value, &Argument::value);
    return argument == program_.arguments.end() ? Location() : argument->location;
}

void Verifier::check_known(const Extent &extent, const Subject &subject) const {
    if (extent.is_static()) return;
    for (const std::string &symbol : extent.symbols())
        require(symbols_.contains(symbol), subject, "extents may contain only symbols of the arguments", [&] { return symbol; });
}

void Verifier::check_known(const Attribute &attribute, const Subject &subject) const {
    check_known(attribute.integer, subject);
    for (const Attribute &element : attribute.list) check_known(element, subject);
}

void Verifier::check_types(const std::vector<ValueId> &values, const std::vector<Type> &expected, const std::string &field) const {
    const std::string count = std::to_string(expected.size());
    require(values.size() == expected.size(), field, "the number must be that of its program, " + count, std::to_string(values.size()));
    for (size_t i = 0; i < values.size(); i++) {
        const Value &value = program_.values[values[i]];
        const std::string requirement = "number " + std::to_string(i) + " must be " + to_string(expected[i]);
        require(value.type == expected[i], field, requirement, to_string(value.type) + " (" + name_to_string(value.name) + ")");
    }
}

void Verifier::refuse(const std::string &subject, const std::string &requirement, const std::string &got,
                      const std::string &way_out) const {
    const UserError error({location_, subject, requirement, got, way_out});
    if (after_.empty()) throw error;
    throw InternalError("internal error: after " + after_ + ": " + error.what());
}

} // namespace

void verify(const Program &program, const std::string &after) {
    const std::span<const Program> programs(program.programs);
    std::unordered_set<std::string> names;
    for (size_t i = 0; i < programs.size(); i++) {
        const Program &callee = programs[i];
        internal_check(callee.programs.empty(), "sub-program " + callee.name + " has sub-programs of its own");
        internal_check(names.insert(callee.name).second, "two sub-programs have the name " + callee.name);
        Verifier(callee, programs.first(i), after).run();
    }
    Verifier(program, programs, after).run_outermost();
}

} // namespace scalide

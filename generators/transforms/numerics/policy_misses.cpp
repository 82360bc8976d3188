#include "transforms/numerics/policy_misses.h"
#include "rulebook/nearest.h"
#include <algorithm>

namespace scalide {

namespace {

using Place = PolicyRule::Place;

constexpr size_t most_named = 12;
constexpr const char *allowed = "If the rule may match nothing, add 'optional: true'";

bool has_own_names(Place place) { return place == Place::argument || place == Place::program_result; }

/// A rule has one word for all operands, or one word for each.
bool operands_match(const PolicyRule &row, const PolicyPlace &place) {
    if (row.operands.size() > 1 && row.operands.size() != place.operands.size()) return false;
    for (size_t i = 0; i < place.operands.size(); i++) {
        const std::string &word = row.operands[row.operands.size() == 1 ? 0 : i];
        if (word != "any" && !std::ranges::count(place.operands[i], word)) return false;
    }
    return true;
}

/// True for an argument and for the result that overwrites it.
bool is_argument(const PolicyPlace &place) {
    return place.place == Place::argument || (place.place == Place::program_result && std::ranges::count(place.roles, "inout") > 0);
}

/// A `keep` rule matches scopes of nodes and names of arguments. A name matches the argument itself, and nodes of matmuls that multiply it.
bool keeps(const PolicyRule &row, const PolicyPlace &place) {
    if (is_argument(place)) return glob_matches(row.which, place.name);
    const auto fits = [&](const std::string &name) { return glob_matches(row.which, name); };
    return fits(place.scope) || std::ranges::any_of(place.arguments, fits);
}

bool which_matches(const PolicyRule &row, const PolicyPlace &place) {
    if (row.place == Place::keep) return keeps(row, place) && (row.operands.empty() || operands_match(row, place));
    if (row.place == Place::node) return operands_match(row, place);
    if (row.which.empty() || row.which == "any") return true;
    const std::vector<std::string> &words = place_words(row.place);
    if (std::ranges::count(words, row.which)) return std::ranges::count(place.roles, row.which) > 0;
    return has_own_names(row.place) ? glob_matches(row.which, place.name) : row.which == place.name;
}

bool op_matches(const PolicyRule &row, const PolicyPlace &place) { return row.ops.empty() || std::ranges::count(row.ops, place.op) > 0; }

bool scope_matches(const PolicyRule &row, const PolicyPlace &place) { return glob_matches(row.scope, place.scope); }

bool layer_matches(const PolicyRule &row, const PolicyPlace &place) {
    const auto is_in = [&](const std::string &layer) { return std::ranges::count(place.layer.layers, layer) > 0; };
    return row.layers.empty() || std::ranges::any_of(row.layers, is_in);
}

bool dtype_matches(const PolicyRule &row, const PolicyPlace &place) {
    return row.dtypes.empty() || std::ranges::all_of(place.dtypes, [&](Dtype dtype) { return std::ranges::count(row.dtypes, dtype) > 0; });
}

bool size_matches(const PolicyRule &row, const PolicyPlace &place) {
    return !row.size_below || std::ranges::any_of(place.layer.arrays, [&](const Extents &shape) {
        const Extent count = element_count(shape);
        return count.is_static() && count.value() < *row.size_below;
    });
}

bool multiple_matches(const PolicyRule &row, const PolicyPlace &place) {
    return !row.not_multiple_of || std::ranges::any_of(place.layer.extents, [&](const Extent &extent) {
        return extent.is_static() && extent.value() % *row.not_multiple_of != 0;
    });
}

bool contracted_matches(const PolicyRule &row, const PolicyPlace &place) {
    const std::optional<Extent> &terms = place.layer.contracted;
    return !row.contracted_below || (terms && terms->is_static() && terms->value() < *row.contracted_below);
}

/// `compute` does not reach updates of parameters and of other state.
bool model_matches(const PolicyRule &row, const PolicyPlace &place) { return !row.compute || !place.is_update; }

/// The field of a row that chooses a place, what the message calls it, and the title of the names that the program has there.
struct PlaceWords {
    std::string field, noun, title;
};

const PlaceWords &words_of(Place place) {
    static const std::map<Place, PlaceWords> words = {{Place::argument, {"argument", "float argument", "Arguments"}},
                                                      {Place::operand, {"operand", "float operand", "Operands"}},
                                                      {Place::node, {"operands", "operator with float operands", "Operands"}},
                                                      {Place::node_result, {"result", "float result", "Results"}},
                                                      {Place::program_result, {"result", "float result", "Results"}},
                                                      {Place::keep, {"keep", "scope or float argument", "Scopes and arguments"}}};
    return words.at(place);
}

/// One condition of a rule: the check, and its texts for the message.
struct PlaceCondition {
    bool (*holds)(const PolicyRule &, const PolicyPlace &);
    std::string field, noun, text; ///< empty text: the row does not have this condition
    std::string title = {};        ///< of the names that the program has
    std::set<std::string> names = {};
};

std::string text_of(const PlaceCondition &condition) { return condition.field + ": " + condition.text; }

std::string number_text(const std::optional<int64_t> &number) { return number ? std::to_string(*number) : ""; }

std::string dtypes_text(const std::vector<Dtype> &dtypes) {
    std::vector<std::string> names;
    for (const Dtype dtype : dtypes) names.emplace_back(to_string(dtype));
    return joined(names);
}

/// Returns all conditions that a rule can have. The first three have names.
std::vector<PlaceCondition> all_conditions(const PolicyRule &row) {
    const auto &[field, noun, title] = words_of(row.place);
    const std::string which = row.place == Place::node ? joined(row.operands, " x ") : row.which;
    return {{which_matches, field, noun, which, title},
            {op_matches, "op", "operator on floats", joined(row.ops), "Operators"},
            {scope_matches, "scope", "float array in scope", row.scope, "Scopes"},
            {layer_matches, "layer", "matmul or convolution in the layer", joined(row.layers)},
            {dtype_matches, "dtype", "float array of dtype", dtypes_text(row.dtypes)},
            {size_matches, "size_below", "float array with a static size below", number_text(row.size_below)},
            {multiple_matches, "not_multiple_of", "matmul whose weight has rows or columns that are not a multiple of",
             number_text(row.not_multiple_of)},
            {contracted_matches, "contracted_below", "matmul with a static contracted extent below", number_text(row.contracted_below)},
            {model_matches, "compute", "operator outside of updates of state", row.compute ? "in the model or its gradient" : ""}};
}

std::vector<PlaceCondition> conditions_at(const PolicyRule &row, const std::vector<const PolicyPlace *> &places) {
    std::vector<PlaceCondition> conditions = all_conditions(row);
    for (const PolicyPlace *place : places) {
        const bool is_named = row.place != Place::keep || is_argument(*place);
        if (is_named || !place->scope.empty()) conditions[0].names.insert(is_named ? place->name : place->scope);
        if (!place->op.empty()) conditions[1].names.insert(place->op);
        if (!place->scope.empty()) conditions[2].names.insert(place->scope);
    }
    return conditions;
}

/// Returns the glob without wildcards and separators at its ends.
std::string letters_of(const std::string &glob) {
    const size_t first = glob.find_first_not_of("*/."), last = glob.find_last_not_of("*/.");
    return first == std::string::npos ? "" : glob.substr(first, last - first + 1);
}

/// Returns the names, their prefixes and their segments.
std::vector<std::string> parts_of(const std::set<std::string> &names) {
    std::set<std::string> parts = names;
    for (const std::string &name : names) {
        for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
            end = name.find_first_of("/.", begin);
            parts.insert(name.substr(begin, end - begin));
            parts.insert(name.substr(0, end));
        }
    }
    return {parts.begin(), parts.end()};
}

std::string way_out(const PlaceCondition &condition) {
    const std::string near = nearest(letters_of(condition.text), parts_of(condition.names));
    std::string text = near.empty() || near == condition.text ? "" : "Did you mean '" + near + "'? ";
    std::vector<std::string> names(condition.names.begin(), condition.names.end());
    const size_t more = names.size() - std::min(names.size(), most_named);
    names.resize(names.size() - more);
    if (names.empty()) return text + allowed;
    return text + condition.title + ": " + joined(names) + (more ? " and " + std::to_string(more) + " more" : "") + ". " + allowed;
}

} // namespace

bool row_matches(const PolicyRule &row, const PolicyPlace &place) {
    return (row.place == place.place || row.place == Place::keep) && which_matches(row, place) && op_matches(row, place) &&
           scope_matches(row, place) && layer_matches(row, place) && dtype_matches(row, place) && size_matches(row, place) &&
           multiple_matches(row, place) && contracted_matches(row, place) && model_matches(row, place) &&
           (row.tensor.empty() || row.tensor == place.tensor);
}

std::string conditions_of(const PolicyRule &row) {
    std::vector<std::string> texts;
    for (const PlaceCondition &condition : all_conditions(row))
        if (!condition.text.empty() && condition.field != "op" && condition.field != "compute") texts.push_back(text_of(condition));
    return joined(texts);
}

std::string missing_condition(const PolicyRule &row, const PolicyPlace &place) {
    std::vector<std::string> missing;
    if (row.place == place.place && op_matches(row, place))
        for (const PlaceCondition &condition : all_conditions(row))
            if (!condition.holds(row, place)) missing.push_back(text_of(condition));
    return missing.size() == 1 ? missing[0] : "";
}

Message describe_miss(const PolicyRule &row, const std::vector<PolicyPlace> &all, const std::string &program) {
    std::vector<const PolicyPlace *> places;
    for (const PolicyPlace &place : all)
        if (place.place == row.place || row.place == Place::keep) places.push_back(&place);
    const std::string matches_nothing = "this rule matches nothing: ";
    std::vector<std::string> fields;
    for (const PlaceCondition &condition : conditions_at(row, places)) {
        if (condition.text.empty()) continue;
        fields.push_back(condition.field);
        const bool holds = std::ranges::any_of(places, [&](const PolicyPlace *place) { return condition.holds(row, *place); });
        if (!holds)
            return statement(row.location,
                             matches_nothing + "program '" + program + "' has no " + condition.noun + " '" + condition.text + "'",
                             way_out(condition));
    }
    return statement(row.location,
                     matches_nothing + "no float array of program '" + program + "' meets all its conditions (" + joined(fields) + ")",
                     allowed);
}

Message describe_hidden(const PolicyRule &row, const std::set<int> &lines) {
    std::vector<std::string> words;
    for (const int line : lines) words.push_back(std::to_string(line));
    const std::string before = words.size() == 1 ? "line " + words[0] + " already matches" : "lines " + joined(words) + " already match";
    return statement(row.location, "this rule has no effect: " + before + " everything that it matches",
                     "Move it above line " + words[0] + ", delete it, or add 'optional: true'");
}

} // namespace scalide

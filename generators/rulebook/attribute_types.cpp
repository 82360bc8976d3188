#include "rulebook/attribute_types.h"
#include "ir/dtype.h"
#include "rulebook/nearest.h"
#include <algorithm>

namespace scalide {

namespace {

/// A symbol of the program reads as a word.
bool is_extent(const Attribute &value) { return value.kind == Attribute::Kind::integer || value.kind == Attribute::Kind::word; }
/// The symbol of a group. 1: there is one rank.
bool is_group(const Attribute &value) {
    const bool is_symbol = value.kind == Attribute::Kind::integer && value.integer.symbols().size() == 1;
    return value.kind == Attribute::Kind::word || (value.kind == Attribute::Kind::integer && value.integer == Extent(1)) ||
           (is_symbol && value.integer == Extent::symbol(value.integer.symbols()[0]));
}
bool is_static_integer(const Attribute &value) { return value.kind == Attribute::Kind::integer && value.integer.is_static(); }
bool is_number(const Attribute &value) { return value.kind == Attribute::Kind::number || is_static_integer(value); }
template<bool (*is_element)(const Attribute &)>
bool is_list(const Attribute &value) {
    return value.kind == Attribute::Kind::list && std::ranges::all_of(value.list, is_element);
}
bool is_pair_of_lists(const Attribute &value) {
    return is_list<is_list<is_static_integer>>(value) && (value.list.empty() || value.list.size() == 2);
}
bool is_pair(const Attribute &value) { return is_list<is_static_integer>(value) && value.list.size() == 2; }
bool is_word(const Attribute &value) { return value.kind == Attribute::Kind::word; }
bool is_padding(const Attribute &value) { return is_word(value) || is_list<is_pair>(value); }
bool is_dtype(const Attribute &value) { return is_word(value) && parse_dtype(value.word); }
bool is_flag(const Attribute &value) { return is_word(value) && (value.word == "true" || value.word == "false"); }

/// Attributes of these types must fit in 32 bits, because kernels index with 32 bits. Extents of other types, such as constants, are no
/// indices of arrays.
constexpr std::string_view types_of_32_bits[] = {"shape", "extent", "integers", "padding"};
constexpr int64_t largest = 2147483647;

bool is_within_32_bits(int64_t number) { return -largest <= number && number <= largest; }

bool counts_in_32_bits(const Attribute &value) {
    if (!is_within_32_bits(value.integer.constant())) return false;
    const auto is_small = [](const auto &term) { return is_within_32_bits(term.second); };
    if (!value.integer.is_static() && !std::ranges::all_of(value.integer.terms(), is_small)) return false;
    return std::ranges::all_of(value.list, counts_in_32_bits);
}

struct AttributeType {
    const char *name;
    bool (*fits)(const Attribute &);
    const char *requirement, *text;
};

constexpr AttributeType types[] = {
    {"axis", is_static_integer, "must be an axis, an integer", "an axis of the first operand; -1 is the last one"},
    {"axes", is_list<is_static_integer>, "must be a list of axes",
     "axes of the first operand, stored in order; left out of a call in a rule: all axes"},
    {"axis_pairs", is_pair_of_lists, "must be a pair of lists of axes",
     "two lists of equal length, axes of the first and of the second operand; [] means [[], []]"},
    {"permutation", is_list<is_static_integer>, "must be a list of axes", "a list that names each axis of the first operand once"},
    {"shape", is_list<is_extent>, "must be a list of extents", "a list of extents"},
    {"dtype", is_dtype, "must be a dtype", "a dtype; the default `promoted` is the widest dtype of the operands"},
    {"extent", is_extent, "must be an extent", "an extent: an integer, or an expression of symbols such as 2*b + 1"},
    {"group", is_group, "must be a symbol that is declared with ranks, such as [data ranks]",
     "a group of ranks: a symbol with `ranks`, or 1"},
    {"groups", is_list<is_group>, "must be a list of groups", "groups of ranks; left out: all groups of the program"},
    {"integer", is_static_integer, "must be an integer", "an integer"},
    {"number", is_number, "must be a number", "a real number"},
    {"integers", is_list<is_extent>, "must be a list of integers", "a list of integers or extents"},
    {"flag", is_flag, "must be true or false", "true or false"},
    {"word", is_word, "must be a word", "one of the keywords in `of`; called as a function, name(x), it is the operator <name>_<word>"},
    {"padding", is_padding, "must be a list of pairs [low, high]",
     "one of the keywords in `of`, or the padding before and after each axis: a list of pairs [low, high]"},
    {"name", is_word, "must be a name", "a name that the user chooses"},
    {"program", is_word, "must be the name of a program", "the name of a sub-program"},
};

} // namespace

std::vector<std::string> attribute_type_names() {
    std::vector<std::string> names;
    for (const AttributeType &type : types) names.emplace_back(type.name);
    return names;
}

std::string attribute_type_text(const std::string &type) { return std::ranges::find(types, type, &AttributeType::name)->text; }

std::string misfit(const AttributeSpec &spec, const Attribute &value) {
    const AttributeType &type = *std::ranges::find(types, spec.type, &AttributeType::name);
    const std::string choices = spec.choices.empty() ? "" : "must be one of " + joined(spec.choices);
    const std::string requirement = spec.type == "padding" ? choices + ", or a list of pairs [low, high]" : choices;
    if (spec.type == "number" && is_static_integer(value) && !is_exact_in_f64(value.integer.value()))
        return "must be a number that f64 represents exactly";
    if (!type.fits(value)) return spec.choices.empty() ? type.requirement : requirement;
    const bool counts_elements = std::ranges::find(types_of_32_bits, spec.type) != std::end(types_of_32_bits);
    if (counts_elements && !counts_in_32_bits(value)) return "must be integers from -2147483647 to 2147483647";
    const bool is_choice = spec.choices.empty() || !is_word(value) || std::ranges::find(spec.choices, value.word) != spec.choices.end();
    return is_choice ? "" : requirement;
}

} // namespace scalide

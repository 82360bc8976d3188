#include "ir/attribute.h"

#include "expr/error.h"
#include "ir/print.h"
#include "ir/words.h"

#include <bit>

namespace scalide {

namespace {

std::string list_to_string(const std::vector<Attribute> &list, const std::set<std::string> &symbols) {
    std::string text;
    for (const Attribute &element : list) text += (text.empty() ? "" : ", ") + to_string(element, symbols);
    return "[" + text + "]";
}

const std::vector<Attribute> &elements(const Attribute &attribute) {
    internal_check(attribute.kind == Attribute::Kind::list, "attribute " + to_string(attribute) + " is no list");
    return attribute.list;
}

template<typename Element>
Attribute make_list(const std::vector<Element> &values) {
    return Attribute(std::vector<Attribute>(values.begin(), values.end()));
}

Extent to_extent(const Attribute &attribute) {
    if (attribute.kind == Attribute::Kind::word) return Extent::symbol(attribute.word);
    internal_check(attribute.kind == Attribute::Kind::integer, "attribute " + to_string(attribute) + " is no extent");
    return attribute.integer;
}

int64_t to_integer(const Attribute &attribute) {
    internal_check(attribute.kind == Attribute::Kind::integer, "attribute " + to_string(attribute) + " is no integer");
    return attribute.integer.value();
}

} // namespace

bool Attribute::operator==(const Attribute &other) const {
    return kind == other.kind && integer == other.integer && std::bit_cast<uint64_t>(number) == std::bit_cast<uint64_t>(other.number) &&
           word == other.word && list == other.list;
}

const Attributes::Map Attributes::none;

Attributes::Map &Attributes::own() {
    if (map_.use_count() != 1) map_ = std::make_shared<Map>(map());
    return *map_;
}

Attribute to_attribute(const std::vector<int64_t> &values) { return make_list(values); }

Attribute to_attribute(const std::vector<Extent> &values) { return make_list(values); }

std::vector<int64_t> to_integers(const Attribute &attribute) {
    std::vector<int64_t> values;
    for (const Attribute &element : elements(attribute)) values.push_back(to_integer(element));
    return values;
}

std::vector<Extent> to_extents(const Attribute &attribute) {
    std::vector<Extent> values;
    for (const Attribute &element : elements(attribute)) values.push_back(to_extent(element));
    return values;
}

double to_number(const Attribute &attribute) {
    if (attribute.kind == Attribute::Kind::number) return attribute.number;
    return static_cast<double>(to_integer(attribute));
}

Overflow overflow_of(const Attributes &attributes, Overflow fallback) {
    const auto found = attributes.find("overflow");
    if (found == attributes.end()) return fallback;
    return found->second == Attribute("format") ? Overflow::format : Overflow::saturate;
}

std::string to_string(const Attribute &attribute, const std::set<std::string> &symbols) {
    switch (attribute.kind) {
    case Attribute::Kind::integer: return to_string(attribute.integer);
    case Attribute::Kind::number: return number_to_string(attribute.number);
    case Attribute::Kind::word: return word_to_string(attribute.word, symbols);
    case Attribute::Kind::list: return list_to_string(attribute.list, symbols);
    }
    throw InternalError("internal error: attribute of unknown kind");
}

std::string to_string(const Attributes &attributes, const std::set<std::string> &symbols) {
    std::string text;
    for (const auto &[name, attribute] : attributes) {
        text += (text.empty() ? "" : ", ") + name + ": " + to_string(attribute, symbols);
    }
    return text.empty() ? "" : "{" + text + "}";
}

std::string to_string(const Attribute &attribute) { return to_string(attribute, std::set<std::string>()); }

std::string to_string(const Attributes &attributes) { return to_string(attributes, std::set<std::string>()); }

} // namespace scalide

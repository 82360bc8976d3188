#pragma once
#include "ir/dtype.h"
#include "ir/extent.h"
#include <map>
#include <memory>

namespace scalide {

/// The value of one attribute of a node: an integer (or symbolic extent), a real number, a word or a list. Dtypes, true, false and names of
/// programs are words. Examples: `[[1], [0]]`, `0.5`, `f8_e4m3fn`, `[b, 64]`.
struct Attribute {
    enum class Kind { integer, number, word, list };
    Kind kind = Kind::integer;
    Extent integer;
    double number = 0;
    std::string word;
    std::vector<Attribute> list;

    Attribute() = default;
    Attribute(int value) : integer(value) {}
    Attribute(int64_t value) : integer(value) {}
    Attribute(Extent value) : integer(std::move(value)) {}
    Attribute(double value) : kind(Kind::number), number(value) {}
    Attribute(std::string value) : kind(Kind::word), word(std::move(value)) {}
    Attribute(const char *value) : kind(Kind::word), word(value) {}
    Attribute(std::vector<Attribute> value) : kind(Kind::list), list(std::move(value)) {}

    bool operator==(const Attribute &other) const; ///< numbers compare by bits, so that NaN equals itself
};

/// The attributes of a node or a program, sorted by name. Copies share one map until one of them changes, because every pass copies every
/// node but changes few attributes.
class Attributes {
public:
    using Map = std::map<std::string, Attribute>;
    using value_type = Map::value_type;
    using const_iterator = Map::const_iterator;
    using iterator = const_iterator; ///< changes go through operator[]

    Attributes() = default;
    Attributes(std::initializer_list<value_type> entries) : map_(std::make_shared<Map>(entries)) {}

    const_iterator begin() const { return map().begin(); }
    const_iterator end() const { return map().end(); }
    const_iterator find(const std::string &name) const { return map().find(name); }
    bool contains(const std::string &name) const { return map().contains(name); }
    /// Returns the attribute. Throws std::out_of_range if it does not exist.
    const Attribute &at(const std::string &name) const { return map().at(name); }
    size_t size() const { return map().size(); }
    bool empty() const { return map().empty(); }
    bool operator==(const Attributes &other) const { return map_ == other.map_ || map() == other.map(); }

    Attribute &operator[](const std::string &name) { return own()[name]; }
    /// Adds an attribute if none has this name.
    void try_emplace(const std::string &name, Attribute value) { own().try_emplace(name, std::move(value)); }
    void insert(const Attributes &others) { own().insert(others.begin(), others.end()); }
    void erase(const std::string &name) { own().erase(name); }

private:
    const Map &map() const { return map_ ? *map_ : none; }
    Map &own();

    static const Map none;
    std::shared_ptr<Map> map_; ///< null: no attributes
};

/// Converts a list of integers or extents to an attribute, and back. to_integers throws InternalError for anything but integers.
/// to_extents takes a word as a symbol.
Attribute to_attribute(const std::vector<int64_t> &values);
std::vector<int64_t> to_integers(const Attribute &attribute);
Attribute to_attribute(const std::vector<Extent> &values);
std::vector<Extent> to_extents(const Attribute &attribute);
/// Returns an integer or number attribute as f64. Throws InternalError for words, lists and symbolic extents.
double to_number(const Attribute &attribute);
/// Returns the attribute `overflow` of a conversion (saturate or format), or `fallback`.
Overflow overflow_of(const Attributes &attributes, Overflow fallback = Overflow::saturate);

/// Returns the text of an attribute. Numbers have all their digits; inf, -inf and nan parse back as numbers.
std::string to_string(const Attribute &attribute);
/// Returns text such as `{contract: [[1], [0]], preferred: f32}`, or "" without attributes.
std::string to_string(const Attributes &attributes);

} // namespace scalide

#pragma once
#include "ir/dtype.h"
#include "ir/extent.h"
#include <map>
#include <memory>

namespace scalide {

/// The value of one attribute of a node: an integer (or symbolic extent), a real number, a word (also dtypes, true, false and
/// program names) or a list. `[[1], [0]]`, `0.5`, `f8_e4m3fn`, `[b, 64]`.
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

/// The attributes of a node or a program by name, in the order of the names: a map that copies share until one of them changes, since every
/// pass copies every node and few change attributes (copying them was a tenth of all passes).
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
    /// Throws std::out_of_range where there is none.
    const Attribute &at(const std::string &name) const { return map().at(name); }
    size_t size() const { return map().size(); }
    bool empty() const { return map().empty(); }
    bool operator==(const Attributes &other) const { return map_ == other.map_ || map() == other.map(); }

    Attribute &operator[](const std::string &name) { return own()[name]; }
    /// Adds an attribute unless there is one of its name.
    void try_emplace(const std::string &name, Attribute value) { own().try_emplace(name, std::move(value)); }
    void insert(const Attributes &others) { own().insert(others.begin(), others.end()); }
    void erase(const std::string &name) { own().erase(name); }

private:
    const Map &map() const { return map_ ? *map_ : none; }
    Map &own();

    static const Map none;
    std::shared_ptr<Map> map_; ///< null: no attributes
};

/// A list of integers as an attribute, and back. The second throws InternalError on anything else or a symbolic extent.
/// A word in a list of extents is a symbol.
Attribute to_attribute(const std::vector<int64_t> &values);
std::vector<int64_t> to_integers(const Attribute &attribute);
Attribute to_attribute(const std::vector<Extent> &values);
std::vector<Extent> to_extents(const Attribute &attribute);
/// An integer or number attribute as f64. Throws InternalError on words, lists and symbolic extents.
double to_number(const Attribute &attribute);
/// What the attribute `overflow` of a conversion says, saturate or format; `fallback` where there is none.
Overflow overflow_of(const Attributes &attributes, Overflow fallback = Overflow::saturate);

/// Text of an attribute; numbers print with all their digits (inf, -inf, nan are words that parse back as numbers).
std::string to_string(const Attribute &attribute);
/// `{contract: [[1], [0]], preferred: f32}`; empty: "".
std::string to_string(const Attributes &attributes);

} // namespace scalide

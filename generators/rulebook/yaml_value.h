#pragma once
#include "expr/expression.h"
#include "ir/attribute.h"
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace scalide {

class YamlFields;
struct YamlTree;

/// A key that a map may have.
struct Key {
    std::string_view name;
    enum { optional, required } presence = optional;
};

/// A value in a YAML text that knows where it stands and what it is called: every message of rules and policies starts with
/// `<file>:<line>: <path>: `. Nothing past the readers sees YAML.
class YamlValue {
public:
    YamlValue(std::shared_ptr<const YamlTree> tree, std::string file, std::string path);

    const std::string &path() const { return path_; }
    /// The same value under another path.
    YamlValue called(const std::string &path) const { return {tree_, file_, path}; }
    Location location() const;

    bool is_text() const;
    bool is_list() const;
    bool is_map() const;

    /// Throws `unknown <noun> '<name>'` at this value.
    [[noreturn]] void fail_unknown(const std::string &noun, const std::string &name, const std::string &way_out) const;
    /// Throws `'<key>' <relation> '<other>'` at this value; the key is the last part of the path.
    [[noreturn]] void fail_relation(const std::string &relation, const std::string &other, const std::string &way_out = "") const;

    /// The readers below throw UserError when the value is of another kind.
    std::string text() const;
    double number() const;
    int64_t integer() const;
    bool flag() const;
    /// One of `words`.
    std::string word(const std::vector<std::string> &words) const;
    Expression expression() const;
    /// Integers, numbers, words and lists of them; a map or an alias is an error.
    Attribute attribute() const;
    std::vector<YamlValue> elements() const;
    std::vector<double> numbers() const;
    /// A text alone stands for a list of one.
    std::vector<std::string> texts() const;
    /// The text of a key of a map, empty when there is none: a first look, before the checks.
    std::string text_of(const std::string &key) const;
    /// In file order; a key given twice is an error.
    std::vector<std::pair<std::string, YamlValue>> entries() const;
    /// entries() with these keys only: unknown and missing ones are errors.
    YamlFields fields(const std::vector<Key> &keys) const;

    [[noreturn]] void fail(const std::string &requirement, const std::string &got = "", const std::string &way_out = "") const;
    /// "a list", "'word'" ..., for messages.
    std::string description() const;

private:
    std::shared_ptr<const YamlTree> tree_;
    std::string file_, path_;
};

/// The entries of a map with fixed keys.
class YamlFields {
public:
    explicit YamlFields(std::map<std::string, YamlValue> fields) : fields_(std::move(fields)) {}
    /// nullptr when the key is absent.
    const YamlValue *find(const std::string &key) const;

private:
    std::map<std::string, YamlValue> fields_;
};

/// The documents of a YAML text. Syntax errors, anchors and aliases throw UserError.
std::vector<YamlValue> parse_yaml(const std::string &yaml, const std::string &file);

/// A whole file as text. Throws UserError when it cannot be read or is larger than 1 MiB.
std::string read_text_file(const std::string &file);

} // namespace scalide

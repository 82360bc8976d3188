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

/// A key of a map.
struct Key {
    std::string_view name;
    enum { optional, required } presence = optional;
};

/// A value in a YAML text, with its location and path. So every message about rules and policies can start with `<file>:<line>: <path>: `.
/// Only the readers of rules and policies use YAML.
class YamlValue {
public:
    YamlValue(std::shared_ptr<const YamlTree> tree, std::string file, std::string path);

    const std::string &path() const { return path_; }
    /// Returns the same value with another path.
    YamlValue called(const std::string &path) const { return {tree_, file_, path}; }
    Location location() const;

    bool is_text() const;
    bool is_list() const;
    bool is_map() const;

    /// Throws `unknown <noun> '<name>'` at this value.
    [[noreturn]] void fail_unknown(const std::string &noun, const std::string &name, const std::string &way_out) const;
    /// Throws `'<key>' <relation> '<other>'` at this value; the key is the last part of the path.
    [[noreturn]] void fail_relation(const std::string &relation, const std::string &other, const std::string &way_out = "") const;

    /// The functions below throw UserError if the value is of another kind.
    std::string text() const;
    double number() const;
    int64_t integer() const;
    bool flag() const;
    /// Returns the text, which must be one of `words`.
    std::string word(const std::vector<std::string> &words) const;
    Expression expression() const;
    /// Returns an integer, a number, a word or a list of them. A map is an error.
    Attribute attribute() const;
    std::vector<YamlValue> elements() const;
    std::vector<double> numbers() const;
    /// Returns a list of texts. A single text is a list of one.
    std::vector<std::string> texts() const;
    /// Returns the text of a key of a map, or "". It makes no checks.
    std::string text_of(const std::string &key) const;
    /// Returns the entries of a map in the order of the file. A key that occurs twice is an error.
    std::vector<std::pair<std::string, YamlValue>> entries() const;
    /// Returns the entries of a map with these keys. Unknown keys and missing required keys are errors.
    YamlFields fields(const std::vector<Key> &keys) const;

    [[noreturn]] void fail(const std::string &requirement, const std::string &got = "", const std::string &way_out = "") const;
    /// Returns a description for messages, such as "a list" or "'word'".
    std::string description() const;

private:
    std::shared_ptr<const YamlTree> tree_;
    std::string file_, path_;
};

/// The entries of a map with known keys.
class YamlFields {
public:
    explicit YamlFields(std::map<std::string, YamlValue> fields) : fields_(std::move(fields)) {}
    /// Returns the value of a key, or nullptr.
    const YamlValue *find(const std::string &key) const;

private:
    std::map<std::string, YamlValue> fields_;
};

/// Returns the documents of a YAML text. Throws UserError for syntax errors, anchors and aliases.
std::vector<YamlValue> parse_yaml(const std::string &yaml, const std::string &file);

/// Returns the only document of a YAML text; its path is `name`. Throws UserError if there is another number of documents.
YamlValue parse_yaml_document(const std::string &yaml, const std::string &file, const std::string &name);

/// Returns the text of a file. Throws UserError if it cannot be read or is larger than 1 MiB.
std::string read_text_file(const std::string &file);

} // namespace scalide

#include "rulebook/yaml_value.h"
#include "rulebook/nearest.h"
#include "rulebook/yaml_tree.h"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace scalide {

namespace {

constexpr int deepest = 16;
constexpr std::streamoff largest = 1 << 20;

std::optional<double> parse_number(const std::string &text) {
    static const std::map<std::string, double> words = {{"inf", INFINITY},    {".inf", INFINITY}, {"-inf", -INFINITY},
                                                        {"-.inf", -INFINITY}, {"nan", NAN},       {".nan", NAN}};
    const auto word = words.find(text);
    if (word != words.end()) return word->second;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
    return number;
}

std::optional<int64_t> parse_integer(const std::string &text) {
    int64_t integer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return integer;
}

Attribute read_attribute(const YamlValue &value, int depth) {
    if (depth > deepest) value.fail("must be at most " + std::to_string(deepest) + " levels deep");
    if (value.is_list()) {
        std::vector<Attribute> list;
        for (const YamlValue &element : value.elements()) list.push_back(read_attribute(element, depth + 1));
        return list;
    }
    if (!value.is_text()) value.fail("must be a number, a word or a list", value.description());
    const std::string text = value.text();
    if (const auto integer = parse_integer(text)) return *integer;
    if (const auto number = parse_number(text)) return *number;
    return text;
}

} // namespace

const YamlValue *YamlFields::find(const std::string &key) const {
    const auto found = fields_.find(key);
    return found == fields_.end() ? nullptr : &found->second;
}

YamlValue::YamlValue(std::shared_ptr<const YamlTree> tree, std::string file, std::string path)
    : tree_(std::move(tree)), file_(std::move(file)), path_(std::move(path)) {}

Location YamlValue::location() const { return {file_, tree_->line}; }

bool YamlValue::is_text() const { return tree_->kind == YamlTree::Kind::text; }
bool YamlValue::is_list() const { return tree_->kind == YamlTree::Kind::list; }
bool YamlValue::is_map() const { return tree_->kind == YamlTree::Kind::map; }

void YamlValue::fail(const std::string &requirement, const std::string &got, const std::string &way_out) const {
    throw UserError({location(), path_, requirement, got, way_out});
}

void YamlValue::fail_unknown(const std::string &noun, const std::string &name, const std::string &way_out) const {
    throw UserError(unknown_name(location(), noun, name, way_out));
}

void YamlValue::fail_relation(const std::string &relation, const std::string &other, const std::string &way_out) const {
    throw UserError(relation_of(location(), path_.substr(path_.rfind('.') + 1), relation, other, way_out));
}

std::string YamlValue::description() const {
    if (is_list()) return "a list";
    if (is_map()) return "a map";
    return is_text() ? "'" + tree_->text + "'" : "nothing";
}

std::string YamlValue::text() const {
    if (!is_text() || tree_->text.empty()) fail("must be text", description());
    return tree_->text;
}

double YamlValue::number() const {
    const auto number = is_text() ? parse_number(tree_->text) : std::nullopt;
    if (!number) fail("must be a number", description());
    return *number;
}

int64_t YamlValue::integer() const {
    const auto integer = is_text() ? parse_integer(tree_->text) : std::nullopt;
    if (!integer) fail("must be an integer", description());
    return *integer;
}

bool YamlValue::flag() const { return word({"true", "false"}) == "true"; }

std::string YamlValue::word(const std::vector<std::string> &words) const {
    if (!is_text()) fail("must be a word", description());
    if (std::ranges::find(words, tree_->text) == words.end())
        fail("must be one of " + joined(words), description(), suggestion(tree_->text, words, ""));
    return tree_->text;
}

Expression YamlValue::expression() const {
    Location where = location();
    const bool spans_lines = text().find('\n') != std::string::npos;
    if (!spans_lines) where.column = tree_->column + tree_->is_quoted;
    try {
        return parse_expression(text(), where);
    } catch (const UserError &error) {
        Message message = error.message();
        message.subject = path_;
        throw UserError(message);
    }
}

Attribute YamlValue::attribute() const { return read_attribute(*this, 0); }

std::vector<YamlValue> YamlValue::elements() const {
    if (!is_list()) fail("must be a list", description());
    std::vector<YamlValue> elements;
    for (const auto &item : tree_->items) elements.push_back({item, file_, path_});
    return elements;
}

std::vector<double> YamlValue::numbers() const {
    std::vector<double> numbers;
    for (const YamlValue &element : elements()) numbers.push_back(element.number());
    return numbers;
}

std::vector<std::string> YamlValue::texts() const {
    if (is_text()) return {text()};
    if (!is_list()) fail("must be a word or a list of words", description());
    std::vector<std::string> texts;
    for (const YamlValue &element : elements()) texts.push_back(element.text());
    return texts;
}

std::string YamlValue::text_of(const std::string &key) const {
    if (!is_map()) return "";
    for (size_t i = 0; i < tree_->items.size(); i += 2)
        if (tree_->items[i]->text == key) return tree_->items[i + 1]->text;
    return "";
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::entries() const {
    if (!is_map()) fail("must be a map", description());
    std::vector<std::pair<std::string, YamlValue>> entries;
    std::map<std::string, int> lines;
    for (size_t i = 0; i < tree_->items.size(); i += 2) {
        const YamlValue key(tree_->items[i], file_, path_);
        if (!key.is_text()) key.fail("must have words as keys", key.description());
        const std::string name = key.text();
        const YamlValue named(tree_->items[i], file_, path_ + "." + name);
        const auto [first, is_new] = lines.emplace(name, key.location().line);
        if (!is_new) named.fail("this key is given twice, first on line " + std::to_string(first->second));
        entries.emplace_back(name, YamlValue(tree_->items[i + 1], file_, named.path()));
    }
    return entries;
}

YamlFields YamlValue::fields(const std::vector<Key> &keys) const {
    std::vector<std::string> names;
    for (const Key &key : keys) names.emplace_back(key.name);
    std::map<std::string, YamlValue> fields;
    for (auto &[name, value] : entries()) {
        // Without quotes, YAML splits {x: max(x, 0)} at the comma into the keys `x` and `0)`.
        const bool is_split = name.ends_with(')') && value.tree_->kind == YamlTree::Kind::nothing;
        if (std::ranges::find(names, name) == names.end())
            value.fail_unknown("key", value.path(), is_split ? unquoted_comma : suggestion(name, names));
        fields.emplace(name, value);
    }
    for (const Key &key : keys)
        if (key.presence == Key::required && !fields.contains(std::string(key.name)))
            called(path_ + "." + std::string(key.name)).fail("missing key");
    return YamlFields(std::move(fields));
}

std::vector<YamlValue> parse_yaml(const std::string &yaml, const std::string &file) {
    std::vector<YamlValue> documents;
    for (auto &tree : parse_yaml_trees(yaml, file)) documents.push_back({std::move(tree), file, ""});
    return documents;
}

YamlValue parse_yaml_document(const std::string &yaml, const std::string &file, const std::string &name) {
    const std::vector<YamlValue> documents = parse_yaml(yaml, file);
    if (documents.size() != 1)
        throw UserError({Location{file}, name, "the file must have one YAML document", std::to_string(documents.size()), ""});
    return documents[0].called(name);
}

std::string read_text_file(const std::string &file) {
    std::ifstream stream(file, std::ios::binary | std::ios::ate);
    const std::streamoff size = stream ? std::streamoff(stream.tellg()) : -1;
    if (size < 0 || std::filesystem::is_directory(file))
        throw UserError(failed_action("read " + file, stream ? "it is not a regular file" : std::strerror(errno)));
    if (size > largest) throw UserError({{file}, "", "the file must have at most 1 MiB", std::to_string(size) + " bytes", ""});
    std::string text(static_cast<size_t>(size), '\0');
    stream.seekg(0);
    if (!stream.read(text.data(), size)) throw UserError(failed_action("read " + file, std::strerror(errno)));
    return text;
}

} // namespace scalide

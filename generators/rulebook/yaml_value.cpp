#include "rulebook/yaml_value.h"
#include "rulebook/nearest.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <yaml-cpp/eventhandler.h>

namespace scalide {

namespace {

constexpr int deepest = 16;
constexpr std::streamoff largest = 1 << 20;

Location location_of(const std::string &file, const YAML::Mark &mark) {
    return mark.is_null() ? Location{file} : Location{file, mark.line + 1};
}

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

/// Only looks for what must not be read: anchors and aliases, which could make a value contain itself, and a stray comma between
/// documents, which the library takes for empty documents without end.
class Screening : public YAML::EventHandler {
public:
    explicit Screening(const std::string &file) : file_(file) {}
    void OnDocumentStart(const YAML::Mark &mark) override {
        if (mark.pos == last_start_) throw UserError({location_of(file_, mark), "yaml", "must have a value here", "", ""});
        last_start_ = mark.pos;
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override { refuse(mark, anchor); }
    void OnAlias(const YAML::Mark &mark, YAML::anchor_t anchor) override { refuse(mark, anchor); }
    void OnScalar(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, const std::string &) override {
        refuse(mark, anchor);
    }
    void OnSequenceStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
        refuse(mark, anchor);
    }
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
        refuse(mark, anchor);
    }
    void OnMapEnd() override {}

private:
    void refuse(const YAML::Mark &mark, YAML::anchor_t anchor) const {
        if (anchor != 0) throw UserError({location_of(file_, mark), "yaml", "must have no anchors and aliases (& and *)", "", ""});
    }
    const std::string &file_;
    int last_start_ = -1;
};

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

YamlValue::YamlValue(YAML::Node node, std::string file, std::string path)
    : node_(std::move(node)), file_(std::move(file)), path_(std::move(path)) {}

Location YamlValue::location() const { return location_of(file_, node_.Mark()); }

void YamlValue::fail(const std::string &requirement, const std::string &got, const std::string &way_out) const {
    throw UserError({location(), path_, requirement, got, way_out});
}

std::string YamlValue::description() const {
    if (is_list()) return "a list";
    if (is_map()) return "a map";
    return is_text() ? "'" + node_.Scalar() + "'" : "nothing";
}

std::string YamlValue::text() const {
    if (!is_text() || node_.Scalar().empty()) fail("must be a text", description());
    return node_.Scalar();
}

double YamlValue::number() const {
    const auto number = is_text() ? parse_number(node_.Scalar()) : std::nullopt;
    if (!number) fail("must be a number", description());
    return *number;
}

int64_t YamlValue::integer() const {
    const auto integer = is_text() ? parse_integer(node_.Scalar()) : std::nullopt;
    if (!integer) fail("must be an integer", description());
    return *integer;
}

bool YamlValue::flag() const { return word({"true", "false"}) == "true"; }

std::string YamlValue::word(const std::vector<std::string> &words) const {
    if (!is_text()) fail("must be a word", description());
    if (std::ranges::find(words, node_.Scalar()) == words.end()) {
        std::string all;
        for (const std::string &word : words) all += (all.empty() ? "" : ", ") + word;
        const std::string near = nearest(node_.Scalar(), words);
        fail("must be one of " + all, description(), near.empty() ? "" : "Did you mean '" + near + "'?");
    }
    return node_.Scalar();
}

Expression YamlValue::expression() const {
    Location where = location();
    const bool is_quoted = node_.Tag() == "!";
    const bool spans_lines = text().find('\n') != std::string::npos;
    if (!spans_lines) where.column = node_.Mark().column + 1 + is_quoted;
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
    for (const YAML::Node &node : node_) elements.push_back({node, file_, path_});
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
    const YAML::Node value = node_[key];
    return value && value.IsScalar() ? value.Scalar() : "";
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::entries() const {
    if (!is_map()) fail("must be a map", description());
    std::vector<std::pair<std::string, YamlValue>> entries;
    std::map<std::string, int> lines;
    for (const auto &entry : node_) {
        const YamlValue key(entry.first, file_, path_);
        if (!key.is_text()) key.fail("must have words as keys", key.description());
        const std::string name = key.text();
        const YamlValue named(entry.first, file_, path_ + "." + name);
        const auto [first, is_new] = lines.emplace(name, key.location().line);
        if (!is_new) named.fail("key given twice, first on line " + std::to_string(first->second));
        entries.emplace_back(name, YamlValue(entry.second, file_, named.path()));
    }
    return entries;
}

YamlFields YamlValue::fields(const std::vector<Key> &keys) const {
    std::vector<std::string> names;
    for (const Key &key : keys) names.emplace_back(key.name);
    std::map<std::string, YamlValue> fields;
    for (auto &[name, value] : entries()) {
        if (std::ranges::find(names, name) == names.end()) value.fail("unknown key", "", suggestion(name, names));
        fields.emplace(name, value);
    }
    for (const Key &key : keys)
        if (key.presence == Key::required && !fields.contains(std::string(key.name)))
            called(path_ + "." + std::string(key.name)).fail("missing key");
    return YamlFields(std::move(fields));
}

std::vector<YamlValue> parse_yaml(const std::string &yaml, const std::string &file) {
    try {
        std::istringstream stream(yaml);
        YAML::Parser parser(stream);
        Screening screening(file);
        while (parser.HandleNextDocument(screening)) {
        }
        std::vector<YamlValue> documents;
        for (const YAML::Node &node : YAML::LoadAll(yaml))
            if (!node.IsNull()) documents.push_back({node, file, ""});
        return documents;
    } catch (const YAML::Exception &error) {
        throw UserError({location_of(file, error.mark), "yaml", error.msg, "", ""});
    }
}

std::string read_text_file(const std::string &file) {
    const Location location{file};
    std::ifstream stream(file, std::ios::binary | std::ios::ate);
    const std::streamoff size = stream ? std::streamoff(stream.tellg()) : -1;
    if (size < 0) throw UserError({.location = location, .requirement = "must be a readable file"});
    if (size > largest)
        throw UserError({.location = location, .requirement = "must be at most 1 MiB", .got = std::to_string(size) + " bytes"});
    std::string text(static_cast<size_t>(size), '\0');
    stream.seekg(0);
    if (!stream.read(text.data(), size)) throw UserError({.location = location, .requirement = "must be a readable file"});
    return text;
}

} // namespace scalide

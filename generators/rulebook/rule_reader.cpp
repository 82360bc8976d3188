#include "rulebook/rule_reader.h"
#include "rulebook/nearest.h"
#include <algorithm>
#include <cctype>
#include <sstream>

namespace scalide {

namespace {

const std::map<std::string, OperandClass> operand_classes = {
    {"float", OperandClass::floating}, {"int", OperandClass::integer}, {"bool", OperandClass::boolean},
    {"number", OperandClass::number},  {"any", OperandClass::any},     {"every", OperandClass::every},
    {"index", OperandClass::index},    {"bits", OperandClass::bits},   {"program", OperandClass::program}};

const std::vector<Key> rule_keys = {{"op", Key::required},
                                    {"family", Key::required},
                                    {"doc"},
                                    {"operands"},
                                    {"results"},
                                    {"attrs"},
                                    {"where"},
                                    {"let"},
                                    {"value", Key::required},
                                    {"scale"},
                                    {"data"},
                                    {"on_plain"},
                                    {"grad"},
                                    {"check"},
                                    {"compat"}};

template<typename Map>
std::vector<std::string> keys_of(const Map &map) {
    std::vector<std::string> keys;
    for (const auto &[key, value] : map) keys.push_back(key);
    return keys;
}

std::vector<std::string> words_of(const std::string &text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

/// Checks a name that expressions may use.
void check_name(const YamlValue &value, const std::string &name) {
    try {
        if (parse_expression(name, {})->kind == ExpressionNode::Kind::name) return;
    } catch (const UserError &) {
    }
    value.fail("must be a name of letters, digits and _", "'" + name + "'");
}

/// Reads the name of an operator. Unlike other names, it may be `and`, `or` or `not`.
std::string read_operator_name(const YamlValue &value) {
    const std::string name = value.text();
    const bool fits = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!fits || std::isdigit(static_cast<unsigned char>(name[0]))) value.fail("must be a name of letters, digits and _", "'" + name + "'");
    return name;
}

/// Reads an operand such as `T float...`.
OperandSpec read_operand(const std::string &name, const YamlValue &value) {
    check_name(value, name);
    OperandSpec spec;
    spec.name = name;
    std::vector<std::string> words = words_of(value.text());
    if (!words.empty() && words.back().ends_with("...")) {
        spec.variadic = true;
        words.back().resize(words.back().size() - 3);
    }
    const bool fits = words.size() == 1 || (words.size() == 2 && words[0].size() == 1);
    if (!fits || !operand_classes.contains(words.back())) {
        const std::string hint = suggestion(words.empty() ? "" : words.back(), keys_of(operand_classes));
        value.fail_unknown(
            "operand class", value.text(),
            hint + (hint.ends_with("?") ? " " : ". ") +
                "Write CLASS, or LETTER CLASS to give several operands one dtype ('T float'). Add '...' if the last operand is "
                "variadic");
    }
    spec.operand_class = operand_classes.at(words.back());
    if (words.size() == 2) spec.letter = words[0];
    return spec;
}

std::vector<OperandSpec> read_operands(const YamlValue &value) {
    std::vector<OperandSpec> specs;
    for (const auto &[name, operand] : value.entries()) specs.push_back(read_operand(name, operand));
    for (size_t i = 0; i + 1 < specs.size(); i++)
        if (specs[i].variadic) value.fail("the variadic operand must be the last one", "'" + specs[i].name + "' before others");
    return specs;
}

ResultSpec read_result(const std::string &name, const YamlValue &value) {
    check_name(value, name);
    const YamlFields fields = value.fields({{"like"}, {"dtype"}, {"shape"}, {"plain"}, {"each"}});
    ResultSpec spec;
    spec.name = name;
    if (const YamlValue *like = fields.find("like")) spec.like = like->text();
    if (const YamlValue *dtype = fields.find("dtype")) spec.dtype = dtype->expression();
    if (const YamlValue *shape = fields.find("shape")) spec.shape = shape->expression();
    if (const YamlValue *plain = fields.find("plain")) spec.plain = plain->flag();
    if (const YamlValue *each = fields.find("each")) {
        spec.like = each->text();
        spec.each = true;
    }
    return spec;
}

/// `rule` must already contain its operands: omitted properties of a result come from the first operand.
std::vector<ResultSpec> read_results(const YamlValue *value, const YamlValue &document, const Rule &rule) {
    std::vector<ResultSpec> specs;
    if (value)
        for (const auto &[name, result] : value->entries()) specs.push_back(read_result(name, result));
    else
        specs.emplace_back();
    for (ResultSpec &spec : specs) {
        const bool is_whole = spec.dtype && spec.shape;
        if (spec.like.empty() && !is_whole && !rule.operands.empty()) spec.like = rule.operands[0].name;
        if (!is_whole && rule.operand_index(spec.like) < 0)
            (value ? *value : document)
                .called(rule.op + ".results." + spec.name)
                .fail("must have 'like: OPERAND', or both dtype and shape", "'" + spec.like + "'");
        const bool is_variadic = !rule.operands.empty() && rule.operands.back().variadic && rule.operands.back().name == spec.like;
        if (spec.each && (specs.size() > 1 || !is_variadic))
            value->fail("'each' needs a single result and the name of the variadic operand", "'" + spec.like + "'");
    }
    return specs;
}

std::vector<Constraint> read_constraints(const YamlValue &value) {
    std::vector<Constraint> constraints;
    for (const auto &[id, entry] : value.entries()) {
        const YamlFields fields = entry.fields({{"require", Key::required}, {"say", Key::required}, {"hint"}});
        const YamlValue *hint = fields.find("hint");
        constraints.push_back({id, fields.find("say")->text(), hint ? hint->text() : "", fields.find("require")->expression()});
    }
    return constraints;
}

/// Reads one expression if the rule has one result, otherwise a map by result. A result for which `skip` is true stays null.
std::vector<Expression> read_by_result(const YamlValue &value, const Rule &rule, bool (*skip)(const ResultSpec &)) {
    if (rule.results.size() == 1) return {value.expression()};
    std::vector<Key> keys;
    for (const ResultSpec &result : rule.results)
        if (!skip(result)) keys.push_back({result.name, Key::required});
    const YamlFields fields = value.fields(keys);
    std::vector<Expression> expressions;
    for (const ResultSpec &result : rule.results) {
        const YamlValue *field = fields.find(result.name);
        expressions.push_back(field ? field->expression() : nullptr);
    }
    return expressions;
}

bool never(const ResultSpec &) { return false; }
bool is_plain(const ResultSpec &result) { return result.plain; }
bool is_scaled(const ResultSpec &result) { return !result.plain; }

std::map<std::string, std::vector<Expression>> read_scale(const YamlValue &value, const Rule &rule) {
    std::map<std::string, std::vector<Expression>> scale;
    const auto is_strategy = [](const auto &entry) { return std::ranges::find(strategies, entry.first) != std::end(strategies); };
    const auto entries = value.is_map() ? value.entries() : std::vector<std::pair<std::string, YamlValue>>();
    if (entries.empty() || !std::ranges::any_of(entries, is_strategy)) {
        scale.emplace("", read_by_result(value, rule, is_plain));
        return scale;
    }
    // A composite without its own scale gets its scale from the operators in its value.
    const Key l2 = rule.is_base ? Key{"l2", Key::required} : Key{"l2"};
    const YamlFields fields = value.fields({l2, {"max"}, {"unit"}});
    for (const std::string_view strategy : strategies)
        if (const YamlValue *field = fields.find(std::string(strategy))) scale.emplace(strategy, read_by_result(*field, rule, is_plain));
    return scale;
}

void read_gradient_word(const YamlValue &value, Rule &rule) {
    const std::string word = value.word({"none", "derived", "program"});
    rule.gradient_kind = word == "none" ? GradientKind::none : word == "derived" ? GradientKind::derived : GradientKind::program;
    const bool is_unary = rule.operands.size() == 1 && !rule.operands[0].variadic && rule.results.size() == 1;
    if (word == "program" && !(rule.takes_program() && is_unary))
        value.fail("'grad: program' needs one operand, one result and an attribute 'program: program'");
}

void read_gradient(const YamlValue *value, const YamlValue &document, Rule &rule) {
    if (!value) {
        if (rule.is_base && !rule.is_plain())
            document.called(rule.op + ".grad").fail("missing key", "", "Write none, derived, or an expression for each operand");
        rule.gradient_kind = rule.is_plain() ? GradientKind::none : GradientKind::derived;
        return;
    }
    if (value->is_text()) {
        read_gradient_word(*value, rule);
        return;
    }
    rule.gradient_kind = GradientKind::expressions;
    std::vector<Key> keys;
    for (const OperandSpec &operand : rule.operands) keys.push_back({operand.name});
    const YamlFields fields = value->fields(keys);
    for (const OperandSpec &operand : rule.operands)
        if (const YamlValue *field = fields.find(operand.name))
            rule.gradient.emplace(operand.name, field->is_text() && field->text() == "none" ? nullptr : field->expression());
}

void read_meaning(const YamlFields &fields, const YamlValue &document, Rule &rule) {
    const YamlValue &value = *fields.find("value");
    rule.is_base = value.is_text() && value.text() == "base";
    if (!rule.is_base) rule.value = read_by_result(value, rule, never);
    if (const YamlValue *scale = fields.find("scale")) rule.scale = read_scale(*scale, rule);
    if (const YamlValue *data = fields.find("data")) {
        if (!rule.has_scale()) data->fail_relation("needs", "scale", "Add 'scale' to the rule");
        rule.data = read_by_result(*data, rule, is_plain);
    }
    if (const YamlValue *on_plain = fields.find("on_plain")) rule.on_plain = read_by_result(*on_plain, rule, is_scaled);
    read_gradient(fields.find("grad"), document, rule);
    const bool is_whole = !rule.is_base && !rule.has_scale() && rule.on_plain.empty() && rule.gradient_kind != GradientKind::expressions;
    if (rule.results[0].each && !is_whole)
        document.fail("a rule with 'results: {each: ...}' must be defined by 'value' alone", "",
                      "Remove scale, data, on_plain and gradient expressions");
}

/// The folders of Scalide's rules. Passes treat some families specially (elementwise, contract), and the reference is sorted by family.
const std::vector<std::string> families{"collective", "composite", "contract", "debug", "elementwise", "index",  "movement",
                                        "random",     "reduce",    "scaling",  "scan",  "sort",        "source", "window"};

} // namespace

Rule read_rule(const YamlValue &document) {
    const std::string name = document.text_of("op");
    const YamlValue named = document.called(name.empty() ? "rule" : name);
    const YamlFields fields = named.fields(rule_keys);
    Rule rule;
    rule.op = read_operator_name(*fields.find("op"));
    rule.family = fields.find("family")->word(families);
    rule.location = named.location();
    if (const YamlValue *doc = fields.find("doc")) rule.doc = doc->text();
    if (const YamlValue *operands = fields.find("operands")) rule.operands = read_operands(*operands);
    if (const YamlValue *attributes = fields.find("attrs")) rule.attributes = read_attribute_specs(*attributes);
    rule.results = read_results(fields.find("results"), named, rule);
    if (const YamlValue *where = fields.find("where")) rule.constraints = read_constraints(*where);
    if (const YamlValue *lets = fields.find("let"))
        for (const auto &[name, let] : lets->entries()) {
            check_name(let, name);
            rule.lets.emplace_back(name, let.expression());
        }
    read_meaning(fields, named, rule);
    if (const YamlValue *check = fields.find("check")) rule.check = read_check(*check, rule);
    if (const YamlValue *compat = fields.find("compat")) rule.compat = compat->text();
    return rule;
}

} // namespace scalide

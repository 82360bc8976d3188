#include "rulebook/policy.h"
#include "rulebook/yaml_value.h"

namespace scalide {

namespace {

using Place = PolicyRule::Place;

const std::vector<Key> policy_keys = {{"policy", Key::required},
                                      {"doc"},
                                      {"scales"},
                                      {"strategy"},
                                      {"rounding"},
                                      {"key"},
                                      {"round"},
                                      {"overflow"},
                                      {"intermediates"},
                                      {"accumulation"},
                                      {"precision"},
                                      {"rules", Key::required}};
const std::vector<Key> row_keys = {{"argument"},   {"operand"}, {"result"}, {"scope"}, {"op"},
                                   {"size_below"}, {"insert"},  {"store"},  {"scaled"}};

std::string all_dtype_names() {
    std::string names;
    for (const Dtype dtype : all_dtypes())
        if (is_float(dtype) && dtype != Dtype::f64) names += (names.empty() ? "" : ", ") + std::string(to_string(dtype));
    return names;
}

Dtype read_float_dtype(const YamlValue &value) {
    const auto dtype = parse_dtype(value.text());
    if (!dtype || !is_float(*dtype) || *dtype == Dtype::f64) value.fail("must be one of " + all_dtype_names(), value.description());
    return *dtype;
}

/// `{dynamic_rescale: {norm: max}}`, `{convert: f8_e4m3fn}`
Insertion read_insertion(const YamlValue &value) {
    const auto entries = value.entries();
    if (entries.size() != 1)
        value.fail("must be one operator with its attributes, {operator: {attribute: value}}", std::to_string(entries.size()));
    const auto &[op, attributes] = entries[0];
    if (op == "convert") return {"convert_element_type", {{"dtype", std::string(to_string(read_float_dtype(attributes)))}}};
    Insertion insertion{op, {}};
    for (const auto &[name, attribute] : attributes.entries()) insertion.attributes.emplace(name, attribute.attribute());
    return insertion;
}

/// Exactly one of argument, operand and result says where; a result is that of nodes when the row chooses nodes, by op or scope.
void read_place(const YamlValue &row, const YamlFields &fields, PolicyRule &rule) {
    const bool chooses_nodes = fields.find("op") || fields.find("scope");
    const std::vector<std::pair<const char *, Place>> places = {
        {"argument", Place::argument}, {"operand", Place::operand}, {"result", chooses_nodes ? Place::node_result : Place::program_result}};
    int found = 0;
    for (const auto &[key, place] : places) {
        const YamlValue *which = fields.find(key);
        if (!which) continue;
        found++;
        rule.place = place;
        rule.which = which->text();
    }
    if (found != 1) row.fail("must have exactly one of argument, operand and result", std::to_string(found));
}

/// What a row cannot say at its place.
void check_row(const YamlFields &fields, const PolicyRule &rule) {
    const auto refuse = [&](const char *key, const std::string &requirement) {
        if (const YamlValue *value = fields.find(key)) value->fail(requirement);
    };
    const bool is_argument = rule.place == Place::argument;
    if (is_argument) refuse("insert", "must not stand beside argument: an argument is what the caller hands in");
    if (is_argument) refuse("op", "must stand beside operand or result");
    if (is_argument) refuse("scope", "must stand beside operand or result");
    const bool crosses_signature = is_argument || rule.place == Place::program_result;
    if (!crosses_signature) refuse("scaled", "must stand beside argument or the result of a program");
}

PolicyRule read_row(const YamlValue &row) {
    const YamlFields fields = row.fields(row_keys);
    PolicyRule rule{};
    rule.location = row.location();
    read_place(row, fields, rule);
    check_row(fields, rule);
    if (const YamlValue *scope = fields.find("scope")) rule.scope = scope->text();
    if (const YamlValue *ops = fields.find("op")) rule.ops = ops->texts();
    if (const YamlValue *size = fields.find("size_below")) rule.size_below = size->integer();
    if (const YamlValue *store = fields.find("store")) rule.store = read_float_dtype(*store);
    if (const YamlValue *scaled = fields.find("scaled")) rule.scaled = scaled->flag();
    if (const YamlValue *insert = fields.find("insert"))
        for (const YamlValue &element : insert->elements()) rule.insert.push_back(read_insertion(element));
    return rule;
}

} // namespace

Policy parse_policy(const std::string &yaml, const std::string &file) {
    const std::vector<YamlValue> documents = parse_yaml(yaml, file);
    if (documents.size() != 1)
        throw UserError({Location{file}, "policy", "must be one YAML document", std::to_string(documents.size()), ""});
    const YamlFields fields = documents[0].called("policy").fields(policy_keys);
    Policy policy;
    policy.name = fields.find("policy")->text();
    if (const YamlValue *doc = fields.find("doc")) policy.doc = doc->text();
    if (const YamlValue *scales = fields.find("scales")) policy.propagates = scales->word({"stored", "propagated"}) == "propagated";
    if (const YamlValue *strategy = fields.find("strategy"))
        policy.scales.strategy = strategy->word({std::begin(strategies), std::end(strategies)});
    if (const YamlValue *rounding = fields.find("rounding"))
        policy.scales.rounding = *parse_rounding(rounding->word({"down", "up", "nearest", "none", "stochastic"}));
    if (const YamlValue *key = fields.find("key")) policy.scales.key = key->text();
    if (const YamlValue *round = fields.find("round"))
        policy.round_every_node = round->word({"materialized", "every_node"}) == "every_node";
    if (const YamlValue *overflow = fields.find("overflow"))
        policy.overflow = overflow->word({"saturate", "format"}) == "format" ? Overflow::format : Overflow::saturate;
    if (const YamlValue *intermediates = fields.find("intermediates"))
        policy.intermediates = parse_dtype(intermediates->word({"f32", "bf16"}));
    if (const YamlValue *accumulation = fields.find("accumulation"))
        policy.fast_accumulation = accumulation->word({"split", "fast"}) == "fast";
    if (const YamlValue *precision = fields.find("precision")) policy.tf32 = precision->word({"f32", "tf32"}) == "tf32";
    for (const YamlValue &row : fields.find("rules")->elements()) policy.rules.push_back(read_row(row));
    return policy;
}

Policy load_policy(const std::filesystem::path &file) { return parse_policy(read_text_file(file.string()), file.string()); }

} // namespace scalide

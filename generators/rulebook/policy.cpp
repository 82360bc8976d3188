#include "rulebook/policy.h"
#include "ir/verify.h"
#include "ir/words.h"
#include "rulebook/nearest.h"
#include "rulebook/yaml_value.h"
#include <algorithm>
#include <map>
#include <ranges>

namespace scalide {

namespace {

namespace fs = std::filesystem;

const std::vector<Key> extending_keys = {{"policy", Key::required},
                                         {"doc"},
                                         {"extends"},
                                         {"scales"},
                                         {"strategy"},
                                         {"rounding"},
                                         {"key"},
                                         {"round"},
                                         {"overflow"},
                                         {"calibration"},
                                         {"intermediates"},
                                         {"accumulation"},
                                         {"precision"},
                                         {"libraries"},
                                         {"arithmetic"},
                                         {"state"},
                                         {"statistics"},
                                         {"rules"}};
const std::vector<Key> row_keys = {
    {"argument"},        {"operand"},          {"operands"}, {"result"}, {"scope"}, {"op"},     {"layer"},   {"dtype"},   {"size_below"},
    {"not_multiple_of"}, {"contracted_below"}, {"scale"},    {"insert"}, {"store"}, {"scaled"}, {"replace"}, {"compute"}, {"keep"},
    {"optional"}};

/// The rules are optional if the policy extends another policy.
std::vector<Key> policy_keys(bool extends) {
    std::vector<Key> keys = extending_keys;
    if (!extends) keys.back().presence = Key::required;
    return keys;
}

/// The formats of policies: all floats but f64.
std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const Dtype dtype : all_dtypes())
        if (is_float(dtype) && dtype != Dtype::f64) names.emplace_back(to_string(dtype));
    return names;
}

Dtype read_float_dtype(const YamlValue &value) { return *parse_dtype(value.word(format_names())); }

/// Reads `compute: f16`, `compute: widest` or `compute: original`. Arithmetic in f8 needs scales, which `compute` does not make.
ComputeDtype read_compute(const YamlValue &value) {
    const std::string word = value.word({"f32", "bf16", "f16", "widest", "original"});
    if (word == "widest") return {ComputeDtype::Kind::widest};
    if (word == "original") return {ComputeDtype::Kind::original};
    return {ComputeDtype::Kind::fixed, *parse_dtype(word)};
}

/// Returns the elements of a list. A single value is a list of one.
std::vector<YamlValue> one_or_more(const YamlValue &value) {
    const std::vector<YamlValue> elements = value.is_list() ? value.elements() : std::vector{value};
    if (elements.empty()) value.fail("must not be an empty list");
    return elements;
}

std::vector<std::string> one_or_more_words(const YamlValue &value) {
    std::vector<std::string> words = value.texts();
    if (words.empty()) value.fail("must not be an empty list");
    return words;
}

int64_t read_integer(const YamlValue &value, int64_t least) {
    const int64_t integer = value.integer();
    if (integer < least) value.fail("must be at least " + std::to_string(least), std::to_string(integer));
    return integer;
}

/// Reads `{dynamic_rescale: {norm: max}}` or `{convert: f8_e4m3fn}`.
Insertion read_insertion(const YamlValue &value) {
    const auto entries = value.entries();
    if (entries.size() != 1)
        value.fail("must be one operator with its attributes, {operator: {attribute: value}}",
                   std::to_string(entries.size()) + " operators");
    const auto &[op, attributes] = entries[0];
    if (op == "convert") return {"convert_element_type", {{"dtype", std::string(to_string(read_float_dtype(attributes)))}}};
    Insertion insertion{op, {}};
    for (const auto &[name, attribute] : attributes.entries()) insertion.attributes.try_emplace(name, attribute.attribute());
    return insertion;
}

const std::map<std::string, PolicyState::Per> per_words{
    {"program", PolicyState::Per::program}, {"scope", PolicyState::Per::scope}, {"tensor", PolicyState::Per::tensor}};

std::vector<Extent> read_shape(const YamlValue &value) {
    std::vector<Extent> shape;
    int64_t left = most_elements;
    for (const YamlValue &extent : value.elements()) {
        shape.emplace_back(read_integer(extent, 1));
        left /= extent.integer();
    }
    if (left == 0) value.fail("must have at most " + std::to_string(most_elements) + " elements", to_string(shape));
    return shape;
}

/// Reads the first value of each element, which the dtype must have.
int64_t read_initial(const YamlValue &value, Dtype dtype) {
    const int64_t initial = value.integer();
    const IntegerRange range = is_integer(dtype) ? range_of(dtype) : IntegerRange{0, 1};
    const auto number = static_cast<double>(initial);
    if (!is_float(dtype) && (number < range.smallest || number > range.largest))
        value.fail("must be a value of dtype " + std::string(to_string(dtype)), value.text());
    return initial;
}

/// Reads `{name: rounding_step, dtype: u32, initial: 0, next: next_step}`. `next` is an operator name, or an operator with attributes.
PolicyState read_state(const YamlValue &row) {
    const YamlFields fields = row.fields(
        {{"name", Key::required}, {"per"}, {"dtype", Key::required}, {"shape"}, {"initial", Key::required}, {"next", Key::required}});
    PolicyState state{};
    state.location = row.location();
    state.name = fields.find("name")->text();
    if (!is_plain_name(state.name)) fields.find("name")->fail("must be letters, digits and _ . $", fields.find("name")->description());
    if (const YamlValue *per = fields.find("per")) state.per = per_words.at(per->word({"program", "scope", "tensor"}));
    const YamlValue &dtype = *fields.find("dtype");
    const auto parsed = parse_dtype(dtype.text());
    if (!parsed || is_narrow(*parsed) || bits_of(*parsed) > 32)
        dtype.fail("must be f32, an integer dtype of at most 32 bits or bool", dtype.description());
    state.type = {*parsed, {}};
    if (const YamlValue *shape = fields.find("shape")) state.type.shape = read_shape(*shape);
    state.initial = read_initial(*fields.find("initial"), *parsed);
    const YamlValue &next = *fields.find("next");
    state.next = next.is_text() ? Insertion{next.text(), {}} : read_insertion(next);
    return state;
}

/// Returns half of the largest number of a format. Scaled data then fills the upper half of the range. A format with the range of f32 needs
/// no default.
std::optional<Attribute> default_end(const std::optional<Dtype> &dtype) {
    const FormatSpec &format = format_of(dtype.value_or(Dtype::f32));
    if (format.exponent_bits >= format_of(Dtype::f32).exponent_bits) return {};
    return Attribute(static_cast<int64_t>(decode(format, format.max_code) / 2));
}

/// Reads `{by: calibration, margin: 1}`, which means `{scaled_by: {s: <the scale of the calibration>}}`.
Insertion read_calibrated(const YamlValue &value, PolicyRule &rule) {
    for (const auto &[name, attribute] : value.entries())
        if (name != "by") rule.calibrated.try_emplace(name, attribute.attribute());
    return {"scaled_by", {{"s", std::string(calibration_word)}}};
}

/// Reads `{by: max, to: 224}`, which means `{dynamic_rescale: {norm: max, to: 224}}`. If `to` is missing, the stored format may determine
/// it.
Insertion read_scale(const YamlValue &value, PolicyRule &rule) {
    if (value.text_of("by") == calibration_word) return read_calibrated(value, rule);
    const YamlFields fields = value.fields({{"by", Key::required}, {"to"}});
    Insertion scaling{"dynamic_rescale", {{"norm", fields.find("by")->word({"max", "l1", "l2", "bound", std::string(calibration_word)})}}};
    const YamlValue *to = fields.find("to");
    if (to && to->number() <= 0) to->fail("must be positive", to->text());
    const auto end = to ? to->attribute() : default_end(rule.stored_dtype());
    if (end) scaling.attributes.try_emplace("to", *end);
    return scaling;
}

/// Exactly one of argument, operand, operands, result and keep must name the site. `result` means a result of nodes if the rule selects
/// nodes by op or scope.
void read_place(const YamlValue &row, const YamlFields &fields, PolicyRule &rule) {
    const bool chooses_nodes = fields.find("op") || fields.find("scope");
    const std::vector<std::pair<const char *, PolicyRule::Place>> places = {
        {"argument", PolicyRule::Place::argument},
        {"operand", PolicyRule::Place::operand},
        {"operands", PolicyRule::Place::node},
        {"result", chooses_nodes ? PolicyRule::Place::node_result : PolicyRule::Place::program_result},
        {"keep", PolicyRule::Place::keep}};
    int found = 0;
    for (const auto &[key, place] : places) {
        const YamlValue *which = fields.find(key);
        if (!which) continue;
        found++;
        rule.place = place;
        if (place == PolicyRule::Place::node) {
            rule.operands = one_or_more_words(*which);
        } else {
            rule.which = which->text();
        }
    }
    if (found != 1)
        row.fail("a rule must have exactly one of argument, operand, operands, result and keep", std::to_string(found) + " of them");
}

/// Keys that a row cannot have under a condition, and the message about them.
struct Refusal {
    bool applies;
    std::vector<const char *> keys;
    const char *relation, *other, *way_out;
};

void check_row(const YamlFields &fields, const PolicyRule &rule) {
    const bool is_keep = rule.place == PolicyRule::Place::keep, is_argument = rule.place == PolicyRule::Place::argument,
               is_node = rule.place == PolicyRule::Place::node;
    const bool crosses_signature = is_argument || rule.place == PolicyRule::Place::program_result;
    const char *const excludes = "cannot be used with";
    const Refusal refusals[] = {
        {is_keep,
         {"op", "scope", "layer", "dtype", "size_below", "not_multiple_of", "contracted_below", "scale", "insert", "store", "scaled",
          "replace", "compute"},
         excludes,
         "keep",
         "'keep' leaves a whole scope or argument unchanged"},
        {is_argument, {"insert"}, excludes, "argument", "The caller passes that array: use 'store', or insert at 'operand'"},
        {is_argument, {"op", "scope"}, "needs 'operand' or", "result", ""},
        {crosses_signature,
         {"layer", "not_multiple_of", "contracted_below"},
         "needs 'operand' or",
         "operands",
         "It chooses matmuls. To choose the result of a matmul, add 'op'"},
        {!crosses_signature, {"scaled"}, "needs 'argument' or", "result", "The result must be a result of the program"},
        {fields.find("scale") != nullptr, {"scaled"}, excludes, "scale", "'scale' makes the array scaled"},
        {is_node, {"scale", "insert", "store"}, excludes, "operands", "Use 'operand' or 'result'"},
        {!is_node, {"replace", "compute"}, "needs", "operands", "Add them to the same rule, for example 'operands: any'"},
        {fields.find("replace") != nullptr, {"compute"}, excludes, "replace", "Write two rules"},
        {rule.ops.empty(), {"replace"}, "needs", "op", "Name the operator that is replaced"}};
    for (const Refusal &refusal : refusals)
        for (const char *key : refusal.keys)
            if (const YamlValue *value = fields.find(key); value && refusal.applies)
                value->fail_relation(refusal.relation, refusal.other, refusal.way_out);
}

PolicyRule read_row(const YamlValue &row) {
    const YamlFields fields = row.fields(row_keys);
    PolicyRule rule{};
    rule.location = row.location();
    read_place(row, fields, rule);
    if (const YamlValue *ops = fields.find("op")) rule.ops = one_or_more_words(*ops);
    check_row(fields, rule);
    if (const YamlValue *scope = fields.find("scope")) rule.scope = scope->text();
    if (const YamlValue *layers = fields.find("layer"))
        for (const YamlValue &layer : one_or_more(*layers)) rule.layers.push_back(layer.word(layer_words()));
    if (const YamlValue *dtypes = fields.find("dtype"))
        for (const YamlValue &dtype : one_or_more(*dtypes)) rule.dtypes.push_back(read_float_dtype(dtype));
    if (const YamlValue *size = fields.find("size_below")) rule.size_below = read_integer(*size, 1);
    if (const YamlValue *multiple = fields.find("not_multiple_of")) rule.not_multiple_of = read_integer(*multiple, 2);
    if (const YamlValue *terms = fields.find("contracted_below")) rule.contracted_below = read_integer(*terms, 1);
    if (const YamlValue *store = fields.find("store")) rule.store = read_float_dtype(*store);
    if (const YamlValue *scaled = fields.find("scaled")) rule.scaled = scaled->flag();
    if (const YamlValue *optional = fields.find("optional")) rule.optional = optional->flag();
    if (const YamlValue *insert = fields.find("insert"))
        for (const YamlValue &element : insert->elements()) rule.insert.push_back(read_insertion(element));
    if (const YamlValue *scale = fields.find("scale")) {
        rule.insert.insert(rule.insert.begin(), read_scale(*scale, rule));
        if (rule.place == PolicyRule::Place::program_result) rule.scaled = true;
    }
    if (const YamlValue *replace = fields.find("replace")) rule.replacement = read_insertion(*replace);
    if (const YamlValue *compute = fields.find("compute")) rule.compute = read_compute(*compute);
    return rule;
}

void read_settings(const YamlFields &fields, Policy &policy) {
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
    if (const YamlValue *libraries = fields.find("libraries"))
        policy.require_libraries = libraries->word({"optional", "required"}) == "required";
    if (const YamlValue *precision = fields.find("precision")) policy.tf32 = precision->word({"f32", "tf32"}) == "tf32";
    if (const YamlValue *arithmetic = fields.find("arithmetic")) policy.exact_arithmetic = arithmetic->word({"device", "exact"}) == "exact";
}

/// Reads a policy and the policies that it extends. `chain` contains each of them while it is read.
class PolicyReader {
public:
    explicit PolicyReader(fs::path ours) : ours_(std::move(ours)) {}

    Policy read(const std::string &yaml, const std::string &file) {
        const YamlValue document = parse_yaml_document(yaml, file, "policy");
        const YamlFields fields = document.fields(policy_keys(!document.text_of("extends").empty()));
        chain_.push_back(fs::weakly_canonical(file));
        const YamlValue *extends = fields.find("extends");
        Policy policy = extends ? base(*extends, file) : Policy();
        policy.name = fields.find("policy")->text();
        const YamlValue *doc = fields.find("doc");
        policy.doc = doc ? doc->text() : "";
        read_settings(fields, policy);
        if (const YamlValue *state = fields.find("state"))
            for (const YamlValue &row : state->elements()) add_state(row, policy);
        std::vector<PolicyRule> own;
        if (const YamlValue *rows = fields.find("rules"))
            for (const YamlValue &row : rows->elements()) own.push_back(read_row(row));
        policy.rules.insert(policy.rules.begin(), own.begin(), own.end());
        std::vector<StatisticsRow> collected;
        if (const YamlValue *rows = fields.find("statistics"))
            for (const YamlValue &row : rows->elements()) collected.push_back(read_statistics_row(row));
        policy.statistics.insert(policy.statistics.begin(), collected.begin(), collected.end());
        if (const YamlValue *calibration = fields.find("calibration")) policy.calibration = calibration_of(*calibration, file, policy);
        chain_.pop_back();
        return policy;
    }

private:
    /// A policy may redefine a state of the policy that it extends.
    static void add_state(const YamlValue &row, Policy &policy) {
        const PolicyState state = read_state(row);
        const auto same = std::ranges::find(policy.state, state.name, &PolicyState::name);
        if (same == policy.state.end()) return void(policy.state.push_back(state));
        if (same->location.file == state.location.file) row.fail("the name of a state must be unique", "'" + state.name + "' twice");
        *same = state;
    }

    static Calibration calibration_of(const YamlValue &value, const std::string &file, const Policy &policy) {
        const auto reads_it = [](const Insertion &insertion) {
            return std::ranges::any_of(insertion.attributes, [](const auto &entry) { return entry.second.word == calibration_word; });
        };
        if (std::ranges::none_of(policy.rules, [&](const PolicyRule &rule) { return std::ranges::any_of(rule.insert, reads_it); }))
            value.fail_relation("needs a rule with", "scale: {by: calibration}", "The policy f8_static has such rules");
        const fs::path path = fs::path(file).parent_path() / value.text();
        if (!fs::is_regular_file(path))
            value.fail_unknown("calibration", value.text(), "No such file next to this one. 'scalide calibrate' writes it");
        return load_calibration(path);
    }

    Policy base(const YamlValue &extends, const std::string &file) {
        const fs::path path = file_of(extends, file);
        if (std::ranges::count(chain_, fs::weakly_canonical(path))) extends.fail("a policy must not extend itself", extends.description());
        Policy policy = read(read_text_file(path.string()), path.string());
        for (PolicyRule &rule : policy.rules) rule.inherited = true;
        for (PolicyState &state : policy.state) state.inherited = true;
        for (StatisticsRow &row : policy.statistics) row.inherited = true;
        return policy;
    }

    fs::path file_of(const YamlValue &extends, const std::string &file) const {
        const fs::path name = extends.text();
        const bool is_path = name.extension() == ".yaml";
        const fs::path path = is_path ? fs::path(file).parent_path() / name : ours_ / (name.string() + ".yaml");
        if (!fs::is_regular_file(path))
            extends.fail_unknown("policy", name.string(),
                                 is_path ? "No such file next to this one" : suggestion(name.string(), policy_names(ours_)));
        return path;
    }

    const fs::path ours_;
    std::vector<fs::path> chain_;
};

} // namespace

std::optional<Dtype> PolicyRule::stored_dtype() const {
    if (store) return store;
    for (const auto &[op, attributes] : std::views::reverse(insert))
        if (const auto dtype = attributes.find("dtype"); dtype != attributes.end()) return parse_dtype(dtype->second.word);
    return {};
}

const PolicyState *Policy::find_state(std::string_view name) const {
    const auto found = std::ranges::find(state, name, &PolicyState::name);
    return found == state.end() ? nullptr : &*found;
}

const std::vector<std::string> &place_words(PolicyRule::Place place) {
    static const std::map<PolicyRule::Place, std::vector<std::string>> words = {
        {PolicyRule::Place::argument, {"any", "input", "inout", "state", "weight", "optimizer_state"}},
        {PolicyRule::Place::operand, {"any", "primal", "cotangent", "weight", "activation"}},
        {PolicyRule::Place::node_result, {"any"}},
        {PolicyRule::Place::program_result, {"any", "output", "inout", "state", "weight", "optimizer_state"}},
        {PolicyRule::Place::node, {"any", "primal", "cotangent", "weight", "activation"}},
        {PolicyRule::Place::keep, {}}};
    return words.at(place);
}

const std::vector<std::string> &layer_words() {
    static const std::vector<std::string> words = {"first", "last"};
    return words;
}

Policy parse_policy(const std::string &yaml, const std::string &file, const fs::path &ours) { return PolicyReader(ours).read(yaml, file); }

Policy load_policy(const fs::path &file, const fs::path &ours) { return parse_policy(read_text_file(file.string()), file.string(), ours); }

std::vector<std::string> policy_names(const fs::path &folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
        if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
    std::ranges::sort(names);
    return names;
}

} // namespace scalide

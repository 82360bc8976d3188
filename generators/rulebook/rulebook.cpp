#include "rulebook/rulebook.h"
#include "rulebook/check_rule.h"
#include "rulebook/nearest.h"
#include "rulebook/rule_reader.h"
#include <algorithm>
#include <functional>
#include <set>

namespace scalide {

namespace fs = std::filesystem;

namespace {

/// Adds the rules of one text to `rules` and returns the names of their operators.
std::vector<std::string> read_rules(const std::string &yaml, const std::string &file, std::map<std::string, Rule> &rules) {
    std::vector<std::string> ops;
    for (const YamlValue &document : parse_yaml(yaml, file)) {
        Rule rule = read_rule(document);
        const auto other = rules.find(rule.op);
        if (other != rules.end())
            throw UserError(statement(rule.location, "operator '" + rule.op + "' has two rules",
                                      "The other rule is at " + to_string(other->second.location)));
        ops.push_back(rule.op);
        rules.emplace(rule.op, std::move(rule));
    }
    if (ops.empty()) throw UserError(statement(Location{file}, "the file contains no rule"));
    return ops;
}

/// The name of an operator in another library, and its name here.
struct OtherName {
    std::string_view other, op;
};

constexpr OtherName other_names[] = {
    {"matmul", "dot"},
    {"mm", "dot"},
    {"gemm", "dot"},
    {"linear", "dot"},
    {"bmm", "batch_matmul"},
    {"conv1d", "conv"},
    {"conv2d", "conv"},
    {"conv3d", "conv"},
    {"maxpool", "max_pool"},
    {"avgpool", "avg_pool"},
    {"layernorm", "layer_norm"},
    {"rmsnorm", "rms_norm"},
    {"batchnorm", "batch_norm"},
    {"groupnorm", "group_norm"},
    {"sigmoid", "logistic"},
    {"swish", "silu"},
    {"sum", "reduce_sum"},
    {"prod", "reduce_prod"},
    {"reduce_mean", "mean"},
    {"average", "mean"},
    {"multiply", "mul"},
    {"subtract", "sub"},
    {"divide", "div"},
    {"negative", "neg"},
    {"power", "pow"},
    {"maximum", "max"},
    {"minimum", "min"},
    {"permute", "transpose"},
    {"flip", "rev"},
    {"concat", "concatenate"},
    {"cat", "concatenate"},
    {"cast", "convert_element_type"},
    {"astype", "convert_element_type"},
    {"topk", "top_k"},
    {"cross_entropy", "softmax_cross_entropy"},
    {"cumulative_sum", "cumsum"},
    {"view", "reshape"},
    {"unsqueeze", "expand_dims"},
    {"scaled_dot_product_attention", "attention"},
    {"stddev", "std"},
    {"equal", "eq"},
    {"less", "lt"},
    {"greater", "gt"},
};

/// An operator of LAX that Scalide lacks, and its replacement.
struct Replaced {
    std::string_view op, instead;
};

constexpr std::string_view no_loops = "Loops are not supported: unroll the loop, or run the program once for each step";
constexpr std::string_view no_collectives = "Collectives are not supported: exchange the results of programs in the application";
constexpr Replaced replaced[] = {
    {"tie_in", "JAX has removed this operator: use its second operand"},
    {"cond", "Compute both values and choose with select_n"},
    {"while", no_loops},
    {"while_loop", no_loops},
    {"fori_loop", no_loops},
    {"scan", no_loops},
    {"psum", no_collectives},
    {"pmean", no_collectives},
    {"pmax", no_collectives},
    {"pmin", no_collectives},
    {"all_gather", no_collectives},
    {"select", "Use select_n(which, on_false, on_true)"},
    {"rng_uniform", "Use uniform(key, ...)"},
    {"rng_bit_generator", "Use random_bits(key, ...)"},
};

/// Returns a suggested fix for a name without a rule.
std::string way_out(const std::string &op, const std::vector<std::string> &names) {
    const auto *known = std::ranges::find(replaced, op, &Replaced::op);
    if (known != std::end(replaced)) return std::string(known->instead);
    const std::string near = nearest_operator(op, names);
    return (near.empty() ? "Add" : "Did you mean '" + near + "'? Otherwise add") + " a rule file, see docs/reference/rules.md";
}

} // namespace

std::string nearest_operator(const std::string &name, const std::vector<std::string> &names) {
    const auto *known = std::ranges::find(other_names, name, &OtherName::other);
    if (known == std::end(other_names)) return nearest(name, names);
    if (std::ranges::count(names, known->op)) return std::string(known->op);
    return known->op == "dot" && std::ranges::count(names, "dot_general") ? "dot_general" : nearest(name, names);
}

std::vector<std::string> rule_files(const fs::path &path) {
    if (fs::is_regular_file(path)) return {path.string()};
    if (!fs::is_directory(path)) throw UserError(failed_action("read rules from " + path.string(), "no such file or folder"));
    std::vector<std::string> files;
    for (auto entry = fs::recursive_directory_iterator(path); entry != fs::recursive_directory_iterator(); ++entry) {
        if (entry->is_directory() && entry->path().filename() == "policies") entry.disable_recursion_pending();
        if (entry->is_regular_file() && entry->path().extension() == ".yaml") files.push_back(entry->path().string());
    }
    if (files.empty()) throw UserError(failed_action("read rules from " + path.string(), "the folder contains no .yaml files"));
    std::ranges::sort(files);
    return files;
}

Rulebook Rulebook::load(const std::vector<fs::path> &paths, const std::vector<RuleText> &texts) {
    Rulebook rulebook;
    std::set<fs::path> seen; // a user may also name one of Scalide's own files
    for (const fs::path &path : paths)
        for (const std::string &file : rule_files(path))
            if (seen.insert(fs::weakly_canonical(file)).second) read_rules(read_text_file(file), file, rulebook.rules_);
    for (const RuleText &text : texts)
        if (seen.insert(fs::weakly_canonical(text.file)).second) read_rules(text.text, text.file, rulebook.rules_);
    for (const auto &[op, rule] : rulebook.rules_) check_rule(rule, rulebook);
    return rulebook;
}

void Rulebook::add(const std::string &yaml, const std::string &file) {
    Rulebook larger = *this;
    for (const std::string &op : read_rules(yaml, file, larger.rules_)) check_rule(*larger.find(op), larger);
    *this = std::move(larger);
}

const Rule *Rulebook::find(const std::string &op) const {
    const auto found = rules_.find(op);
    return found == rules_.end() ? nullptr : &found->second;
}

std::vector<const Rule *> Rulebook::callees(const Rule &rule) const {
    std::vector<const Rule *> found;
    const std::function<void(const Expression &)> add = [&](const Expression &expression) {
        const Rule *callee = expression->kind == ExpressionNode::Kind::call ? find(expression->text) : nullptr;
        if (callee != nullptr) found.push_back(callee);
        std::ranges::for_each(expression->operands, add);
    };
    if (rule.is_base) return found;
    std::ranges::for_each(rule.value, add);
    for (const auto &[name, let] : rule.lets) add(let);
    return found;
}

bool Rulebook::makes_scaled(const Rule &rule) const {
    return rule.chooses_scale() ||
           (!rule.has_scale() && std::ranges::any_of(callees(rule), [this](const Rule *callee) { return makes_scaled(*callee); }));
}

bool Rulebook::keeps_value(const Rule &rule) const {
    if (rule.is_base || rule.operands.empty() || rule.value.size() != 1) return false;
    const ExpressionNode *value = rule.value[0].get();
    for (; value->kind == ExpressionNode::Kind::call; value = value->operands[0].get()) {
        const Rule *callee = find(value->text);
        if (callee == nullptr || !keeps_value(*callee)) return false;
    }
    return value->kind == ExpressionNode::Kind::name && value->text == rule.operands[0].name;
}

const Rule &Rulebook::rule(const std::string &op, const Location &where) const {
    if (const Rule *rule = find(op)) return *rule;
    std::vector<std::string> names;
    for (const auto &[name, rule] : rules_) names.push_back(name);
    throw UserError(unknown_name(where, "operator", op, way_out(op, names)));
}

std::vector<const Rule *> Rulebook::rules() const {
    std::vector<const Rule *> rules;
    for (const auto &[op, rule] : rules_) rules.push_back(&rule);
    std::ranges::stable_sort(rules, {}, &Rule::family);
    return rules;
}

} // namespace scalide

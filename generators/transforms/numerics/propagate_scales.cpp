#include "expr/base_operators.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "rulebook/check_rule.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include "transforms/numerics/scale_split.h"
#include "transforms/simplify/facts.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// True if the operator sums products, so the scale of an operand is a factor of the result.
bool sums_products(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && op->sums_products;
}

/// True if the rule states that each element of the result is an element of an operand.
bool chooses(const Rule &rule, const std::string &strategy) {
    const Expression &scale = rule.scale_of(strategy).front();
    return scale && scale->kind == ExpressionNode::Kind::call && scale->text == "largest";
}

/// The rewritten values of a program, by the id of the source value.
using ScaledValues = std::vector<ScaledValue>;

/// Rewrites a program without scaled values: each becomes two values, its data and its scale.
class Propagation {
public:
    Propagation(const Program &source, const Rulebook &rulebook, const ScaleSettings &settings)
        : source_(source), settings_(settings), builder_(rulebook, result_), split_(builder_) {}

    Program run();

private:
    void place_arguments(ScaledValues &values);
    void place_nodes(const Program &program, ScaledValues &values);
    void copy(const Program &program, const Node &node, ScaledValues &values);
    void copy_regions(const Program &program, const Node &node, ScaledValues &values);
    bool multiplies(const Rule &rule);
    void copy_product(const Program &program, const Node &node, ScaledValues &values);
    void place_scaled(const Program &program, const Node &node, ScaledValues &values);
    void stop_scaling(const Node &node, ScaledValues &values);
    void place_parts(const Program &program, const Node &node, ScaledValues &values);
    void place_result(const Result &result, ScaledValues &values);
    bool is_scaled_node(const Node &node, const ScaledValues &values) const;
    ValueId full(ScaledValue &value);
    void add_parts(const std::string &name, const Type &type, const Argument &argument, ScaledValue &value);
    void name_value(ValueId value, size_t first, const std::string &name, const ArrayPart &part);
    std::string fresh_result(const std::string &name) const;

    const Program &source_;
    const ScaleSettings &settings_;
    Program result_;
    Builder builder_;
    ScaleSplit split_;
    std::vector<int> argument_; ///< by argument of the source: its index in the result
    /// Data and scale of values that are plain again after stop_scaling, and of values that are moved or converted from them. Matmuls read
    /// the data.
    std::map<ValueId, ScaledValue> parts_;
    std::map<const Rule *, bool> multiplies_;
    std::vector<ValueId> named_; ///< values to which the current node gave the name of a source value
};

Program Propagation::run() {
    result_.name = source_.name;
    result_.attributes = source_.attributes;
    result_.symbols = source_.symbols;
    ScaledValues values(source_.values.size());
    place_arguments(values);
    place_nodes(source_, values);
    for (const Result &result : source_.results) place_result(result, values);
    return remove_dead_nodes(std::move(result_));
}

void Propagation::add_parts(const std::string &name, const Type &type, const Argument &argument, ScaledValue &value) {
    const ArrayPart data{ArrayPart::Kind::data, name}, scale{ArrayPart::Kind::scale, name};
    value.data = add_value(result_, name + ".data", type, data);
    value.scale = add_value(result_, name + ".scale", {Dtype::f32, {}}, scale);
    result_.arguments.push_back({value.data, false, argument.inout, data, {}, {}, argument.supply});
    result_.arguments.push_back({value.scale, false, argument.inout, scale, {}, {}, argument.supply});
}

/// Names whole arguments first, because callers know them by name. Names of data and scales are only for readers.
void Propagation::place_arguments(ScaledValues &values) {
    for (const Argument &argument : source_.arguments) {
        const Value &value = source_.values[argument.value];
        if (!argument.scaled) values[argument.value].value = add_value(result_, value.name, value.type, value.part);
    }
    for (const Argument &argument : source_.arguments) {
        const Value &value = source_.values[argument.value];
        argument_.push_back(static_cast<int>(result_.arguments.size()));
        if (argument.scaled) {
            add_parts(value.name, value.type, argument, values[argument.value]);
        } else {
            result_.arguments.push_back(argument);
            result_.arguments.back().value = values[argument.value].value;
        }
    }
}

void Propagation::place_nodes(const Program &program, ScaledValues &values) {
    for (const Node &node : program.nodes) {
        builder_.stamp_like(node);
        if (!node.regions.empty()) {
            copy_regions(program, node, values);
        } else if (is_scaled_node(node, values)) {
            place_scaled(program, node, values);
        } else {
            copy(program, node, values);
        }
    }
}

/// True if the node has a scaled operand, or if its operator computes a scale and so makes a plain operand scaled.
bool Propagation::is_scaled_node(const Node &node, const ScaledValues &values) const {
    const Rulebook &rulebook = builder_.rulebook();
    return std::ranges::any_of(node.operands, [&](ValueId operand) { return values[operand].is_scaled(); }) ||
           rulebook.makes_scaled(rulebook.rule(node.op, node.location));
}

void Propagation::copy(const Program &program, const Node &node, ScaledValues &values) {
    const bool has_parts = std::ranges::any_of(node.operands, [&](ValueId operand) { return parts_.contains(values[operand].value); });
    if (has_parts && sums_products(node)) return copy_product(program, node, values);
    if (has_parts && multiplies(builder_.rulebook().rule(node.op, node.location))) return place_parts(program, node, values);
    Node fresh = node;
    for (ValueId &operand : fresh.operands) operand = values[operand].value;
    for (ValueId &result : fresh.results) {
        const ValueId value = add_value(result_, program.value_name(result), program.type(result), program.values[result].part);
        values[result].value = value;
        result = value;
    }
    const ValueId made = fresh.results[0];
    result_.nodes.push_back(fresh);
    if (!has_parts || !builder_.rulebook().rule(node.op, node.location).carries_scale()) return;
    const ScaledValue from = parts_.at(fresh.operands[0]);
    const Value &result = program.values[node.results[0]];
    const ValueId data = builder_.add_one(node.op, {from.data}, node.attributes, result.name + ".data");
    result_.values[data].part = {ArrayPart::Kind::data, result.part.array(result.name)};
    parts_[made] = {made, data, from.scale};
}

/// Arrays enter and leave regions as ordinary numbers.
void Propagation::copy_regions(const Program &program, const Node &node, ScaledValues &values) {
    Node fresh = node;
    for (ValueId &operand : fresh.operands) operand = full(values[operand]);
    rewrite_regions(fresh, program, [&](const Program &region) { return propagate_scales(region, builder_.rulebook(), settings_); });
    for (ValueId &result : fresh.results) {
        const ValueId value = add_value(result_, program.value_name(result), program.type(result), program.values[result].part);
        values[result].value = value;
        result = value;
    }
    result_.nodes.push_back(std::move(fresh));
}

/// True for composites that consist of matmuls. These read operands as they are stored, so the composite is expanded here.
bool Propagation::multiplies(const Rule &rule) {
    if (rule.is_base) return false;
    const auto [entry, is_new] = multiplies_.try_emplace(&rule, false);
    if (is_new)
        entry->second = std::ranges::any_of(used_operators(rule, builder_.rulebook()), [](const std::string &op) {
            const BaseOperator *base = find_base_operator(op);
            return base != nullptr && base->sums_products;
        });
    return entry->second;
}

/// Multiplies the stored data, and then the result by the scales: sum(a * b) = sum(a.data * b.data) * (a.scale * b.scale).
void Propagation::copy_product(const Program &program, const Node &node, ScaledValues &values) {
    std::vector<ValueId> operands, scales;
    for (const ValueId old : node.operands) {
        const auto parts = parts_.find(values[old].value);
        operands.push_back(parts == parts_.end() ? values[old].value : builder_.convert(parts->second.data, Dtype::f32));
        if (parts != parts_.end()) scales.push_back(parts->second.scale);
    }
    const Value &result = program.values[node.results[0]];
    const ValueId sum = builder_.add_one(node.op, operands, node.attributes, result.name + ".data");
    result_.values[sum].part = {ArrayPart::Kind::data, result.part.array(result.name)};
    const ValueId scale = scales.size() == 2 ? builder_.add_one("mul", scales) : scales[0];
    const ValueId factor = builder_.broadcast(scale, builder_.type(sum).shape);
    values[node.results[0]].value = builder_.add_one("mul", {sum, factor}, {}, result.name);
}

void Propagation::place_scaled(const Program &program, const Node &node, ScaledValues &values) {
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    const auto is_plain = [&](size_t i) { return rule.result(i).plain || !is_float(program.type(node.results[i]).dtype); };
    bool all_plain = true;
    for (size_t i = 0; i < node.results.size(); i++) all_plain = all_plain && is_plain(i);
    if (node.op == "stop_scaling" && values[node.operands[0]].is_scaled()) return stop_scaling(node, values);
    const bool has_scale = rule.has_scale(settings_.strategy);
    if (!has_scale && !rule.is_base && (!all_plain || rule.on_plain.empty())) return place_parts(program, node, values);
    if (!has_scale && !all_plain) {
        throw UserError(
            statement(node.location,
                      "operator '" + node.op + "' has a scaled operand, but its rule defines no 'scale' (" + to_string(rule.location) + ")",
                      "Add 'scale' to the rule, or apply 'stop_scaling' to the operand"));
    }
    const size_t first = result_.values.size();
    named_.clear();
    std::vector<ScaledValue> operands;
    const bool chosen = has_scale && chooses(rule, settings_.strategy);
    for (const ValueId operand : node.operands) operands.push_back(split_.meet(values[operand], chosen));
    split_.lend_scales(operands);
    Instance instance(builder_, rule, std::move(operands), node.attributes, settings_);
    for (size_t i = 0; i < node.results.size(); i++) {
        const int index = static_cast<int>(i);
        const Value &made = program.values[node.results[i]];
        ScaledValue &value = values[node.results[i]];
        if (is_plain(i)) {
            value.value = instance.plain(index);
            name_value(value.value, first, made.name, made.part);
            continue;
        }
        value.scale = instance.scale(index);
        value.data = instance.data(index, value.scale);
        const std::string &of = made.part.array(made.name);
        name_value(value.scale, first, made.name + ".scale", {ArrayPart::Kind::scale, of});
        name_value(value.data, first, made.name + ".data", {ArrayPart::Kind::data, of});
    }
}

/// Returns the operand as an ordinary number and remembers its data and scale.
void Propagation::stop_scaling(const Node &node, ScaledValues &values) {
    ScaledValue &operand = values[node.operands[0]];
    const ValueId value = full(operand);
    values[node.results[0]].value = value;
    parts_[value] = operand;
}

/// Expands a composite without a scale rule. The rules of its operators apply.
void Propagation::place_parts(const Program &program, const Node &node, ScaledValues &values) {
    Program parts;
    parts.symbols = program.symbols;
    ScaledValues inner;
    std::vector<ScaledValue> operands;
    for (const ValueId operand : node.operands) {
        operands.push_back({add_value(parts, program.value_name(operand), program.type(operand))});
        inner.push_back(values[operand]);
    }
    Builder builder(builder_.rulebook(), parts);
    builder.stamp_like(node);
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    const std::vector<ValueId> results = Instance(builder, rule, std::move(operands), node.attributes).value();
    inner.resize(parts.values.size());
    place_nodes(parts, inner);
    for (size_t i = 0; i < results.size(); i++) {
        ScaledValue &part = inner[results[i]];
        values[node.results[i]] = rule.result(i).plain ? ScaledValue{full(part)} : part;
    }
}

/// Returns data * scale, computed in f32, in the dtype of the data.
ValueId Propagation::full(ScaledValue &value) {
    if (value.value >= 0) return value.value;
    const Type type = builder_.type(value.data);
    const ValueId scale = builder_.broadcast(value.scale, type.shape);
    const ValueId product = builder_.add_one("mul", {builder_.convert(value.data, Dtype::f32), scale});
    value.value = builder_.convert(product, type.dtype);
    return value.value;
}

void Propagation::place_result(const Result &result, ScaledValues &values) {
    ScaledValue &value = values[result.value];
    const int argument = result.argument < 0 ? -1 : argument_[result.argument];
    if (!result.scaled) {
        result_.results.push_back({result.name, full(value), false, argument, result.part});
        return;
    }
    const ScaledValue parts = value.is_scaled() ? value : split_.parts(value.value);
    const auto add = [&](ArrayPart::Kind kind, const std::string &suffix, ValueId part, int place) {
        const std::string name = place < 0 ? fresh_result(result.name + suffix) : result_.value_name(result_.arguments[place].value);
        result_.results.push_back({name, part, false, place, {kind, result.name}});
    };
    add(ArrayPart::Kind::data, ".data", parts.data, argument);
    add(ArrayPart::Kind::scale, ".scale", parts.scale, argument < 0 ? -1 : argument + 1);
}

/// Returns `name`, followed by a number if another result has the name or will have it.
std::string Propagation::fresh_result(const std::string &name) const {
    const auto is_taken = [&](const std::string &other) {
        return std::ranges::find(source_.results, other, &Result::name) != source_.results.end() ||
               std::ranges::find(result_.results, other, &Result::name) != result_.results.end();
    };
    std::string fresh = name;
    for (int number = 1; is_taken(fresh); number++) fresh = name + std::to_string(number);
    return fresh;
}

/// Renames a value to the name of the source value that it stands for. If one value stands for several, the first name stays.
void Propagation::name_value(ValueId value, size_t first, const std::string &name, const ArrayPart &part) {
    if (static_cast<size_t>(value) < first || std::ranges::find(named_, value) != named_.end()) return;
    if (!rename_value(result_, value, name)) return;
    result_.values[value].part = part;
    named_.push_back(value);
}

} // namespace

Program propagate_scales(const Program &program, const Rulebook &rulebook, const ScaleSettings &settings) {
    return Propagation(program, rulebook, settings).run();
}

} // namespace scalide

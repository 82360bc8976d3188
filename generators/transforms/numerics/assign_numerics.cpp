#include "expr/base_operators.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "rulebook/check_policy.h"
#include "rulebook/check_rule.h"
#include "rulebook/random_key.h"
#include "transforms/analysis/flattened.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include "transforms/numerics/numerics_report.h"
#include "transforms/numerics/policy_match.h"
#include "transforms/numerics/policy_states.h"
#include "transforms/numerics/region_states.h"
#include "transforms/numerics/shared_scales.h"
#include <algorithm>
#include <memory>
#include <ranges>
#include <set>

namespace scalide {

namespace {

/// True for a float of at most 32 bits. Arithmetic in f64 computes scales and stays f64.
bool has_format(Dtype dtype) { return is_float(dtype) && dtype != Dtype::f64; }

/// True if the program itself asks for scales, independently of its policy.
bool is_scaled(const Program &program) {
    return program.attributes.contains("strategy") || program.attributes.contains("rounding") ||
           std::ranges::any_of(program.arguments, &Argument::scaled) || std::ranges::any_of(program.results, &Result::scaled);
}

/// True if a rule of the policy computes a scale from an array's own data.
bool scales_arrays(const Policy &policy, const Rulebook &rulebook) {
    return std::ranges::any_of(policy.rules, [&](const PolicyRule &row) {
        return std::ranges::any_of(
            row.insert, [&](const Insertion &insertion) { return rulebook.makes_scaled(rulebook.rule(insertion.op, row.location)); });
    });
}

/// How the program's own roundings treat a number beyond the range. Programs find overflows: a loss scaler reads is_finite, and makes its
/// scale smaller. So only roundings that a policy inserts may saturate.
constexpr Overflow own_overflow = Overflow::format;

/// Returns the attributes of a conversion to `dtype`. Saturation is the default and needs no attribute.
Attributes narrowing(Dtype dtype, Overflow overflow) {
    Attributes attributes = convert_attributes(dtype);
    if (is_narrow(dtype) && overflow == Overflow::format) attributes["overflow"] = "format";
    return attributes;
}

bool makes_products(const Node &node) { return node.op == "dot_general" || node.op == "conv_general_dilated"; }

/// What a rule with `compute` means for a node.
struct Compute {
    const PolicyRule *row = nullptr; ///< may be null
    std::optional<Dtype> dtype = {}; ///< in which the node computes; none: in the dtypes of the program
};

/// What the numerics of a program and of its regions have in common.
struct Shared {
    Shared(const Program &source, const Rulebook &rules, const Policy &of)
        : rulebook(rules), policy(of), flat(flattened(source)), directions(directions_of(flat.program)), matcher(of, rules, flat.program),
          propagates(of.propagates || is_scaled(source)), rescales(!of.propagates && is_scaled(source) && scales_arrays(of, rules)) {}

    const Rulebook &rulebook;
    const Policy &policy;
    const Flat flat;
    const std::vector<Direction> directions; ///< of the nodes of the flat program
    PolicyMatcher matcher;                   ///< of the flat program
    int64_t streams = 0;                     ///< number of insertions that round stochastically; the first has stream 1
    const bool propagates;                   ///< see Policy::propagates
    const bool rescales;                     ///< roundings by the program get a scale of their own
};

/// Rewrites a program in f32. Each value of the source is mapped to an f32 value. If the value is rounded to a low-precision dtype, that
/// f32 value is the rounded one, widened again.
class Numerics {
public:
    Numerics(const Program &source, Shared &shared, const FlatNodes &nodes, PolicyDecisions *decisions,
             std::optional<AroundRegion> around = {})
        : rewriter_(source), builder_(shared.rulebook, rewriter_.result()), policy_(shared.policy), uses_(count_uses(source)),
          producers_(producers(source)), shared_(shared), nodes_(nodes), matcher_(shared.matcher),
          states_(rewriter_, builder_, policy_, producers_, decisions, std::move(around)), propagates_(shared.propagates),
          rescales_(shared.rescales), decisions_(decisions) {
        for (const Result &result : source.results) is_result_.insert(result.value);
        for (const Node &node : source.nodes)
            if (node.op == "is_finite") mark_tested(node.operands[0]);
    }

    Program run();
    /// Rewrites a region, up to its states.
    void run_region();
    std::vector<StateInRegion> take_states(size_t number) { return states_.take_from_region(number); }
    Program finish_region(const std::vector<StateInRegion> &states, StateUse use) {
        add_states(rewriter_.result(), builder_, states, use);
        return rewriter_.take();
    }

private:
    /// An argument that is low-precision or has a scale.
    struct ReadArgument {
        ValueId value;
        bool scaled;
        const PolicyRule *scaling; ///< the rule that gives the argument a scale; may be null
    };
    void mark_tested(ValueId value);
    void place_arguments();
    ValueId as_read(const ReadArgument &argument);
    bool is_conversion(const Node &node) const;
    Node in_flat(const Node &node) const;
    Direction direction_of(const Node &node) const;
    void place(const Node &node);
    void place_regions(const Node &node);
    void run_regions(Node &fresh, const Node &node, const std::vector<FlatNodes> &nodes);
    void add_results(const Node &node, Node &fresh, size_t carried, const std::vector<StateInRegion> &states);
    void place_conversion(const Node &node);
    void place_bits(const Node &node);
    ValueId place_computation(const Node &node, const Compute &compute = {});
    Node replaced(const Node &node, const PolicyRule &row) const;
    void place_replacement(const Node &node, const PolicyRule &row);
    void place_result(const Result &result);
    ValueId in_own_dtype(ValueId old);

    std::optional<Dtype> compute_dtype(const Node &node, const ComputeDtype &asked) const;
    ValueId in_dtype(ValueId old, ValueId value, std::optional<Dtype> compute);
    ValueId own_operand(ValueId old, ValueId value);
    std::vector<ValueId> operands_of(const Node &node, const Compute &compute = {});
    ValueId operand_edge(const Node &node, size_t index, const Compute &compute);
    ValueId as_intermediate(const Node &node, ValueId old);
    ValueId intermediate(ValueId old);
    ValueId before_policy(ValueId value, ValueId old, const PolicyRule &policy);
    ValueId node_result(const Node &node, size_t index, ValueId value, const Compute &compute = {});
    ValueId own_rounding(ValueId value, Dtype dtype, const Attributes &asked);
    std::optional<Dtype> default_rounding(const Node &node, ValueId result) const;
    Attributes in_f32(const Rule &rule, const Node &node) const;

    void note(NumericsDecision decision, const PolicyRule *row);
    void note_operand(const Node &node, size_t index, ValueId value, const PolicyRule &row);
    void note_matmul_operand(const Node &node, size_t index, ValueId value, const PolicyRule *row);
    void note_result(const Node &node, size_t index, ValueId value, const PolicyRule *row);
    void note_matmul(const Node &node, const PolicyRule &row, ValueId replacement = -1);
    void note_replacement(const Node &node, ValueId result, const PolicyRule &row);

    ValueId insert(const PolicyTensor &tensor, const PolicyRule &policy, ValueId previous = -1);
    ValueId stored(const PolicyTensor &tensor, const PolicyRule &policy, const Attributes &asked = {});
    bool makes_scaled(const PolicyRule &policy) const;
    ValueId unscaled(ValueId value, Dtype stored);
    ValueId insert_once(const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes);
    ValueId rounded(ValueId value, Dtype dtype, Overflow overflow);
    ValueId widened(ValueId value);
    bool is_exact_in(ValueId value, Dtype dtype) const;

    Rewriter rewriter_;
    Builder builder_;
    const Policy &policy_;
    const std::vector<int> uses_, producers_;
    Shared &shared_;
    const FlatNodes &nodes_;
    PolicyMatcher &matcher_; ///< of the flat program
    std::set<ValueId> is_result_;
    std::set<ValueId> is_tested_;             ///< is_finite reads the value or a multiple of it: an overflow of its dtype must be seen
    std::map<std::string, ValueId> inserted_; ///< equal insertions on the same value are made once
    std::map<ValueId, std::string> labels_;   ///< by inserted value: the name of the value from which it was made
    PolicyStates states_;
    std::map<ValueId, Dtype> exact_;     ///< f32 values whose elements are all exact in that dtype
    std::map<ValueId, Dtype> has_scale_; ///< f32 values whose elements are elements of that dtype times one scale
    std::set<ValueId> computed_;         ///< values of the source that a rule with `compute` made in another dtype
    const bool propagates_, rescales_;   ///< see Shared
    PolicyDecisions *decisions_;         ///< may be null
};

/// Marks a value that is_finite reads, and the low-precision values that are only converted, scaled or moved before that. A loss scaler
/// divides its gradients by the scale before it tests them.
void Numerics::mark_tested(ValueId value) {
    static const std::set<std::string> keeping{"convert_element_type", "mul",       "div",    "neg", "reshape",
                                               "broadcast_in_dim",     "transpose", "squeeze"};
    if (!is_tested_.insert(value).second || is_narrow(rewriter_.source().type(value).dtype) || producers_[size_t(value)] < 0) return;
    const Node &node = rewriter_.source().nodes[size_t(producers_[size_t(value)])];
    if (!keeping.contains(node.op)) return;
    for (const ValueId operand : node.operands) mark_tested(operand);
}

Program Numerics::run() {
    place_arguments();
    for (const Node &node : rewriter_.source().nodes) place(node);
    for (const Result &result : rewriter_.source().results) place_result(result);
    states_.place_next();
    matcher_.check();
    if (policy_.intermediates && *policy_.intermediates != Dtype::f32)
        rewriter_.result().attributes["intermediates"] = std::string(to_string(*policy_.intermediates));
    if (policy_.exact_arithmetic) rewriter_.result().attributes.try_emplace("arithmetic", std::string("exact"));
    return rewriter_.take();
}

/// Rewrites a region. Its arguments and results keep their dtypes, and rules for arguments and results of the program do not match them.
void Numerics::run_region() {
    const Program &source = rewriter_.source();
    rewriter_.copy_arguments();
    for (const Argument &argument : source.arguments) {
        const ValueId fresh = rewriter_(argument.value);
        const Dtype dtype = builder_.type(fresh).dtype;
        rewriter_.map(argument.value, widened(fresh));
        if (is_narrow(dtype)) exact_[rewriter_(argument.value)] = dtype;
    }
    for (const Node &node : source.nodes) place(node);
    for (const Result &result : source.results) {
        Result fresh = result;
        fresh.value = in_own_dtype(result.value);
        rewriter_.result().results.push_back(std::move(fresh));
    }
}

/// Returns a value of the source in the dtype that it has there.
ValueId Numerics::in_own_dtype(ValueId old) {
    const Dtype dtype = rewriter_.source().type(old).dtype;
    return is_narrow(dtype) ? insert_once("convert_element_type", {rewriter_(old)}, narrowing(dtype, own_overflow)) : rewriter_(old);
}

/// Returns the node as the matcher knows it.
Node Numerics::in_flat(const Node &node) const {
    const Node &copy = shared_.flat.program.nodes[size_t(nodes_.last[size_t(producers_[node.results[0]])])];
    Node made = node;
    made.operands = copy.operands;
    made.results = copy.results;
    return made;
}

/// Returns the direction of a node of the source program.
Direction Numerics::direction_of(const Node &node) const {
    const int flat = nodes_.first[size_t(producers_[node.results[0]])];
    return flat < 0 ? Direction::none : shared_.directions[size_t(flat)];
}

/// Arrays enter and leave regions in their own dtypes.
void Numerics::place_regions(const Node &node) {
    Node fresh = node;
    for (ValueId &operand : fresh.operands) operand = in_own_dtype(operand);
    run_regions(fresh, node, nodes_.regions[size_t(producers_[node.results[0]])]);
}

void Numerics::run_regions(Node &fresh, const Node &node, const std::vector<FlatNodes> &nodes) {
    const bool is_loop = find_region_kind(node.op)->is_loop;
    std::vector<Program> sources;
    std::vector<std::unique_ptr<Numerics>> regions;
    std::vector<std::vector<StateInRegion>> by_region;
    for (const Region &region : node.regions) sources.push_back(open_region(region, rewriter_.source()));
    const size_t first = decisions_ == nullptr ? 0 : decisions_->regions.size();
    if (decisions_ != nullptr) decisions_->regions.resize(first + sources.size());
    for (size_t i = 0; i < sources.size(); i++) {
        PolicyDecisions *decisions = decisions_ == nullptr ? nullptr : &decisions_->regions[first + i];
        regions.push_back(
            std::make_unique<Numerics>(sources[i], shared_, nodes[i], decisions, AroundRegion{states_, node, captured_operands(node)}));
        regions.back()->run_region();
        by_region.push_back(regions.back()->take_states(i));
        const auto state = std::ranges::find_if(by_region.back(), &StateInRegion::is_own);
        if (is_loop && i + 1 < sources.size() && state != by_region.back().end())
            throw UserError(statement(node.location,
                                      "the test of this loop computes '" + state->name + "', which needs a '" + state->state->name +
                                          "' of the policy (" + to_string(state->state->location) + "), but a test has no next value",
                                      "Compute the array in the body, or use a policy without state for it"));
    }
    const std::vector<StateInRegion> states = states_of_all(by_region);
    const size_t carried = is_loop ? static_cast<size_t>(LoopView(node).carry_count) : node.results.size();
    for (size_t i = 0; i < sources.size(); i++) {
        const StateUse use = !is_loop ? StateUse::chosen : i + 1 == sources.size() ? StateUse::carried : StateUse::passed;
        Program made = regions[i]->finish_region(as_in(states, by_region[i]), use);
        if (decisions_ != nullptr) complete(decisions_->regions[first + i], made, shared_.rulebook);
        fresh.regions[i] = close_region(std::move(made));
    }
    add_results(node, fresh, carried, states);
}

/// Appends the node, with states among its operands and results.
void Numerics::add_results(const Node &node, Node &fresh, size_t carried, const std::vector<StateInRegion> &states) {
    const std::string where = rewriter_.source().value_name(node.results[0]);
    std::vector<StateInRegion> own;
    for (const StateInRegion &state : states) fresh.operands.push_back(states_.enter(state, where));
    std::ranges::copy_if(states, std::back_inserter(own), &StateInRegion::is_own);
    const bool is_loop = find_region_kind(node.op)->is_loop;
    if (is_loop && !own.empty()) {
        for (const StateInRegion &state : own) fresh.operands.push_back(states_.enter(state, where));
        fresh.operands.push_back(builder_.constant(0, Dtype::boolean));
    }
    std::vector<Value> values;
    for (const ValueId old : node.results) values.push_back(rewriter_.source().values[size_t(old)]);
    std::vector<Value> added;
    for (const StateInRegion &state : own) added.push_back({state.state->name + ".next", state.state->type});
    if (is_loop && !own.empty()) added.push_back({"has_state", {Dtype::boolean, {}}});
    values.insert(values.begin() + static_cast<ptrdiff_t>(carried), added.begin(), added.end());
    fresh.results.clear();
    for (const Value &value : values) fresh.results.push_back(add_value(rewriter_.result(), value.name, value.type, value.part));
    rewriter_.result().nodes.push_back(fresh);
    for (size_t i = 0; i < own.size(); i++) states_.give(own[i], where, fresh.results[carried + i]);
    for (size_t i = 0; i < node.results.size(); i++) {
        const ValueId made = fresh.results[i < carried ? i : i + added.size()];
        rewriter_.map(node.results[i], widened(made));
        const Dtype dtype = builder_.type(made).dtype;
        if (is_narrow(dtype)) exact_[rewriter_(node.results[i])] = dtype;
    }
}

void Numerics::place_arguments() {
    const Program &source = rewriter_.source();
    std::vector<ReadArgument> read; // values to read are added after all arguments
    for (const Argument &argument : source.arguments) {
        const Value &value = source.values[argument.value];
        Type type = value.type;
        const Argument &flat = shared_.flat.program.arguments[size_t(&argument - source.arguments.data())];
        const PolicyRule *rule = argument.part == ArrayPart() ? matcher_.argument(flat) : nullptr; // components stay unchanged
        if (rule != nullptr) type.dtype = rule->store.value_or(type.dtype);
        const bool scaled = rule != nullptr ? rule->scaled.value_or(argument.scaled) : argument.scaled;
        const ValueId fresh = add_value(rewriter_.result(), value.name, type, value.part);
        rewriter_.result().arguments.push_back(
            {fresh, scaled, argument.inout, argument.part, argument.location, argument.initial, argument.supply});
        rewriter_.map(argument.value, fresh);
        if (is_float(type.dtype))
            note({PolicyRule::Place::argument, value.name, "", "", Direction::none, {}, argument.location, fresh}, rule);
        const bool gets_scale = rule != nullptr && !rule->insert.empty();
        if (is_narrow(type.dtype) || scaled || gets_scale) read.push_back({argument.value, scaled, gets_scale ? rule : nullptr});
    }
    for (const ReadArgument &argument : read) rewriter_.map(argument.value, as_read(argument));
}

ValueId Numerics::as_read(const ReadArgument &argument) {
    const ValueId fresh = rewriter_(argument.value);
    const Dtype dtype = builder_.type(fresh).dtype;
    const ValueId wide = widened(fresh);
    exact_[wide] = dtype;
    if (argument.scaling == nullptr) return argument.scaled && !propagates_ ? unscaled(wide, dtype) : wide;
    if (!propagates_)
        throw UserError(relation_of(argument.scaling->location, "scale", "cannot be used with", "argument",
                                    "The policy has stored scales (argument '" + builder_.program().value_name(fresh) +
                                        "'): use 'scale' with 'operand' or 'result', or set 'scales: propagated'"));
    return insert({argument.value, wide}, *argument.scaling);
}

/// Returns data * scale of a value stored in `dtype`. The result is an ordinary number.
ValueId Numerics::unscaled(ValueId value, Dtype dtype) {
    const ValueId plain = insert_once("stop_scaling", {value}, {});
    has_scale_[plain] = dtype;
    return plain;
}

/// True for a conversion between float formats, or from an integer to a low-precision float.
bool Numerics::is_conversion(const Node &node) const {
    if (node.op != "convert_element_type") return false;
    const Dtype from = builder_.type(rewriter_(node.operands[0])).dtype, to = rewriter_.source().type(node.results[0]).dtype;
    return (has_format(from) && has_format(to)) || (is_integer(from) && is_narrow(to));
}

void Numerics::place(const Node &node) {
    builder_.stamp_like(node);
    if (!node.regions.empty()) return place_regions(node);
    const PolicyRule *row = matcher_.node(in_flat(node));
    if (decisions_ != nullptr && matcher_.is_matmul(in_flat(node)))
        decisions_->matmuls.push_back(
            {rewriter_.source().value_name(node.results[0]), node.op, node.scope, direction_of(node), node.location});
    if (row != nullptr && row->replacement) {
        place_replacement(node, *row);
    } else if (is_conversion(node)) {
        place_conversion(node);
    } else if (node.op == "bitcast_convert_type") {
        place_bits(node);
    } else {
        place_computation(node, row != nullptr && row->compute ? Compute{row, compute_dtype(node, *row->compute)} : Compute());
    }
    if (row != nullptr && !row->replacement) note_matmul(node, *row);
}

/// A conversion in the program always rounds, whatever the policy says.
void Numerics::place_conversion(const Node &node) {
    const Dtype dtype = rewriter_.source().type(node.results[0]).dtype;
    const ValueId operand = operands_of(node)[0], value = is_narrow(dtype) ? own_rounding(operand, dtype, node.attributes) : operand;
    const ValueId result = node_result(node, 0, value);
    if (is_narrow(dtype) && result == value) note_result(node, 0, value, nullptr);
    rewriter_.map(node.results[0], result);
}

/// Bit patterns depend on the format, so a bitcast reads the operand in its own low-precision format. A float that is made from bits is
/// widened.
void Numerics::place_bits(const Node &node) {
    const Program &source = rewriter_.source();
    const Dtype from = source.type(node.operands[0]).dtype;
    const ValueId value = rewriter_(node.operands[0]);
    const ValueId stored = is_narrow(from) ? insert_once("convert_element_type", {value}, narrowing(from, own_overflow)) : value;
    const ValueId bits = builder_.add_one(node.op, {stored}, node.attributes, source.value_name(node.results[0]));
    rewriter_.map(node.results[0], widened(bits));
}

/// Copies a node. If nothing is scaled, operators that set scales (set_scaling, dynamic_rescale) leave values unchanged and are dropped.
/// Returns the first result of the operator, or -1 if it was dropped.
ValueId Numerics::place_computation(const Node &node, const Compute &compute) {
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    const std::vector<ValueId> operands = operands_of(node, compute);
    if (!propagates_ && builder_.rulebook().makes_scaled(rule) && builder_.rulebook().keeps_value(rule)) {
        rewriter_.map(node.results[0], operands[0]);
        return -1;
    }
    builder_.stamp_like(node);
    const std::string &name = rewriter_.source().value_name(node.results[0]);
    Attributes attributes = in_f32(rule, node);
    if (node.op == "dot_general" && node.role == Role::primal && policy_.fast_accumulation) attributes.try_emplace("accumulation", "fast");
    if (node.op == "dot_general" && policy_.tf32) attributes.try_emplace("precision", "tf32");
    if (policy_.intermediates && makes_products(node) && matcher_.keeps(in_flat(node))) attributes["wide"] = "true";
    const std::vector<ValueId> results = builder_.add(node.op, operands, std::move(attributes), name);
    if (only_moves(node) && exact_.contains(operands[0])) exact_[results[0]] = exact_[operands[0]];
    if (only_moves(node) && has_scale_.contains(operands[0])) has_scale_[results[0]] = has_scale_[operands[0]];
    if (node.op == "constant") exact_[results[0]] = rewriter_.source().type(node.results[0]).dtype;
    for (size_t i = 0; i < results.size(); i++) rewriter_.map(node.results[i], node_result(node, i, widened(results[i]), compute));
    return results[0];
}

/// Returns the node with the operator of a rule in place of its own. The new operator keeps the attributes that it knows.
Node Numerics::replaced(const Node &node, const PolicyRule &row) const {
    Node made = node;
    made.op = row.replacement->op;
    const Rule &rule = builder_.rulebook().rule(made.op, row.location);
    for (const auto &[name, attribute] : node.attributes)
        if (find_attribute(rule, name) == nullptr) made.attributes.erase(name);
    made.attributes.insert(row.replacement->attributes);
    return made;
}

void Numerics::place_replacement(const Node &node, const PolicyRule &row) {
    const Node made = replaced(node, row);
    naming_line(row.location, "replaces " + node.op, [&] { note_replacement(made, place_computation(made), row); });
}

/// Returns the dtype in which the node computes under a rule; none: in the dtypes of the program.
std::optional<Dtype> Numerics::compute_dtype(const Node &node, const ComputeDtype &asked) const {
    if (asked.kind == ComputeDtype::Kind::original) return {};
    if (asked.kind == ComputeDtype::Kind::fixed) return asked.dtype;
    static const std::vector<Dtype> widest_first{Dtype::f32, Dtype::bf16, Dtype::f16};
    for (const Dtype dtype : widest_first)
        if (std::ranges::any_of(node.operands, [&](ValueId operand) { return rewriter_.source().type(operand).dtype == dtype; }))
            return dtype;
    return {};
}

/// Returns `value`, which stands for `old`, rounded to the dtype in which a node computes. Without one, the node reads the dtype of the
/// program, to which a value that a rule made in a wider dtype is rounded now.
ValueId Numerics::in_dtype(ValueId old, ValueId value, std::optional<Dtype> compute) {
    const Dtype own = rewriter_.source().type(old).dtype;
    if (!has_format(own)) return value;
    if (compute) return rounded(value, *compute, policy_.overflow);
    return computed_.contains(old) ? rounded(value, own, own_overflow) : value;
}

/// Returns an operand of a matmul or a convolution in the dtype of the program, if no rule says more. A matmul reads an operand many times,
/// and multiplies narrow ones faster: an MLP in bf16 multiplied its activations in f32, because the relu before is read once and was not
/// rounded.
ValueId Numerics::own_operand(ValueId old, ValueId value) {
    const Dtype own = rewriter_.source().type(old).dtype;
    return is_narrow(own) ? own_rounding(value, own, {}) : value;
}

std::vector<ValueId> Numerics::operands_of(const Node &node, const Compute &compute) {
    std::vector<ValueId> operands;
    for (size_t i = 0; i < node.operands.size(); i++) operands.push_back(operand_edge(node, i, compute));
    return operands;
}

ValueId Numerics::operand_edge(const Node &node, size_t index, const Compute &compute) {
    const ValueId old = node.operands[index];
    if (!is_float(builder_.type(rewriter_(old)).dtype)) return rewriter_(old);
    ValueId value = as_intermediate(node, old);
    const Node *producer = producers_[old] < 0 ? nullptr : &rewriter_.source().nodes[producers_[old]];
    const PolicyRule *policy = matcher_.operand(in_flat(node), index);
    const bool is_left = policy == nullptr || (policy->place == PolicyRule::Place::keep && !makes_products(node));
    if (!is_left) {
        builder_.stamp_like(producer != nullptr ? *producer : node);
        if (producer == nullptr) builder_.set_role(Role::primal);
    }
    const std::string place = (node.role == Role::cotangent ? "cotangent " : "") + node.op + " operand " + std::to_string(index);
    if (is_left) value = in_dtype(old, value, compute.dtype);
    if (policy == nullptr && !compute.dtype && makes_products(node)) value = own_operand(old, value);
    const ValueId result = is_left ? value : stored({old, before_policy(value, old, *policy), node.scope, place}, *policy);
    const PolicyRule *decided = is_left && compute.row != nullptr ? compute.row : policy;
    if (!is_left || compute.dtype) note_operand(node, index, result, *decided);
    note_matmul_operand(node, index, result, decided);
    return result;
}

/// Returns the value of an operand in the format of intermediates. It is the same for every reader and every kernel, so an operand does not
/// depend on what else reads the array. Arguments, constants and arrays that are low-precision already keep their format.
ValueId Numerics::as_intermediate(const Node &node, ValueId old) {
    const bool has_dtype = policy_.intermediates && *policy_.intermediates != Dtype::f32;
    return has_dtype && matcher_.is_matmul(in_flat(node)) && !matcher_.keeps(in_flat(node)) ? intermediate(old) : rewriter_(old);
}

/// The array is rounded before it is moved. Kernels repeat movement, and then store the array once.
ValueId Numerics::intermediate(ValueId old) {
    const auto is_wide = [&](ValueId value) {
        const ValueId fresh = rewriter_(value);
        return builder_.type(fresh).dtype == Dtype::f32 && !exact_.contains(fresh) && !has_scale_.contains(fresh);
    };
    std::vector<const Node *> moves; // the last one first
    ValueId array = old;
    for (; producers_[array] >= 0; array = moves.back()->operands[0]) {
        const Node &node = rewriter_.source().nodes[producers_[array]];
        if (!only_moves(node)) break;
        moves.push_back(&node);
    }
    if (producers_[array] < 0 || !is_wide(array) || !is_wide(old)) return rewriter_(old);
    builder_.stamp_like(rewriter_.source().nodes[producers_[array]]);
    ValueId value = rounded(rewriter_(array), *policy_.intermediates, Overflow::format);
    for (const Node *move : std::views::reverse(moves)) {
        builder_.stamp_like(*move);
        value = insert_once(move->op, {value}, move->attributes);
        exact_[value] = *policy_.intermediates;
    }
    return value;
}

/// Returns the value that a rule for an operand rounds. A scale from the data itself fits every value. Under another scale a number beyond
/// the range may saturate. So the value is first rounded to its dtype in the program, where an overflow gives infinity.
ValueId Numerics::before_policy(ValueId value, ValueId old, const PolicyRule &policy) {
    const Dtype dtype = rewriter_.source().type(old).dtype;
    const bool fits = std::ranges::any_of(policy.insert, [](const Insertion &insertion) { return insertion.op == "dynamic_rescale"; });
    const bool may_saturate = policy.acts() && !fits && !propagates_ && policy_.overflow == Overflow::saturate;
    return may_saturate && !has_wide_range(dtype) ? rounded(value, dtype, own_overflow) : value;
}

/// Returns `value` stored according to a rule and widened again.
ValueId Numerics::stored(const PolicyTensor &tensor, const PolicyRule &policy, const Attributes &asked) {
    const ValueId value = tensor.value;
    const bool scaled = makes_scaled(policy) && !propagates_;
    const auto has_scale = has_scale_.find(value);
    const std::optional<Dtype> dtype = policy.stored_dtype();
    if (scaled && has_scale != has_scale_.end() && has_scale->second == dtype) return value; // already stored in this way
    ValueId result = insert(tensor, policy);
    if (policy.store) result = rounded(result, *policy.store, overflow_of(asked, policy_.overflow));
    return scaled ? unscaled(result, dtype.value_or(Dtype::f32)) : result;
}

bool Numerics::makes_scaled(const PolicyRule &policy) const {
    return std::ranges::any_of(policy.insert, [&](const Insertion &insertion) {
        return builder_.rulebook().makes_scaled(builder_.rulebook().rule(insertion.op, policy.location));
    });
}

/// Returns a result as it is stored: by a rule for results, else by a rule with `compute`, else as the program's own dtype rounds it.
ValueId Numerics::node_result(const Node &node, size_t index, ValueId value, const Compute &compute) {
    const ValueId old = node.results[index];
    if (!is_float(builder_.type(value).dtype)) return value;
    builder_.stamp_like(node);
    const PolicyRule *policy = matcher_.node_result(in_flat(node), index);
    if (policy == nullptr && compute.dtype && has_format(rewriter_.source().type(old).dtype)) {
        computed_.insert(old);
        const ValueId result = rounded(value, *compute.dtype, policy_.overflow);
        note_result(node, index, result, compute.row);
        return result;
    }
    if (policy != nullptr && policy->place == PolicyRule::Place::keep) policy = nullptr;
    const auto dtype = policy == nullptr ? default_rounding(node, old) : std::nullopt;
    if (policy == nullptr && !dtype) return value;
    const ValueId result = policy != nullptr
                               ? stored({old, value, node.scope, node.op + " result " + std::to_string(index)}, *policy, node.attributes)
                               : own_rounding(value, *dtype, node.attributes);
    if (policy != nullptr || result != value) note_result(node, index, result, policy);
    return result;
}

void Numerics::note(NumericsDecision decision, const PolicyRule *row) {
    if (decisions_ == nullptr) return;
    if (row != nullptr) decision.row = row->location;
    decision.computes = row != nullptr && row->compute;
    decisions_->sites.push_back(std::move(decision));
}

void Numerics::note_operand(const Node &node, size_t index, ValueId value, const PolicyRule &row) {
    const std::vector<OperandSpec> &operands = builder_.rulebook().rule(node.op, node.location).operands;
    const std::string use = node.op + "." + operands[std::min(index, operands.size() - 1)].name;
    const std::string &tensor = rewriter_.source().value_name(node.operands[index]);
    note({PolicyRule::Place::operand, tensor, use, node.scope, direction_of(node), {}, node.location, value}, &row);
}

void Numerics::note_matmul_operand(const Node &node, size_t index, ValueId value, const PolicyRule *row) {
    if (decisions_ == nullptr || !matcher_.is_matmul(in_flat(node))) return;
    const std::string &tensor = rewriter_.source().value_name(node.operands[index]);
    const std::string why = row != nullptr ? conditions_of(*row) : matcher_.why_no_rule(in_flat(node), index);
    decisions_->matmuls.back().operands.push_back(
        {tensor, row != nullptr ? row->location : Location(), why, row != nullptr && !row->acts(), value});
}

void Numerics::note_result(const Node &node, size_t index, ValueId value, const PolicyRule *row) {
    const std::string use = node.op + "." + builder_.rulebook().rule(node.op, node.location).result(index).name;
    const std::string &tensor = rewriter_.source().value_name(node.results[index]);
    note({PolicyRule::Place::node_result, tensor, use, node.scope, direction_of(node), {}, node.location, value}, row);
}

/// Records one decision for each operand. complete() later finds what the new operator reads.
void Numerics::note_replacement(const Node &node, ValueId result, const PolicyRule &row) {
    if (decisions_ == nullptr || result < 0) return;
    note_matmul(node, row, result);
    const std::vector<OperandSpec> &operands = builder_.rulebook().rule(node.op, node.location).operands;
    for (size_t i = 0; i < node.operands.size(); i++) {
        const std::string use = node.op + "." + operands[std::min(i, operands.size() - 1)].name;
        note({row.place, rewriter_.source().value_name(node.operands[i]), use, node.scope, direction_of(node), {}, node.location, result},
             &row);
        decisions_->sites.back().operand = static_cast<int>(i);
    }
}

/// Records that a rule decided for a whole matmul. Without a replacement, rules for its operands come first.
void Numerics::note_matmul(const Node &node, const PolicyRule &row, ValueId replacement) {
    if (decisions_ == nullptr || !matcher_.is_matmul(in_flat(node))) return;
    MatmulDecision &matmul = decisions_->matmuls.back();
    matmul.op = node.op;
    matmul.replacement = replacement;
    for (OperandDecision &operand : matmul.operands) {
        if (replacement < 0 && operand.row.line != 0) continue;
        operand.row = row.location;
        operand.why = conditions_of(row);
        operand.is_kept = !row.acts();
    }
}

/// Applies a rounding that the program itself asks for. The program may propagate scales while the policy stores them. Operands then fill
/// their format and scales of results are estimates, so the data of a result may overflow. It is rescaled first.
ValueId Numerics::own_rounding(ValueId value, Dtype dtype, const Attributes &asked) {
    if (rescales_ && is_float(builder_.type(value).dtype) && !is_exact_in(value, dtype)) {
        const FormatSpec &format = format_of(dtype);
        const double end = has_wide_range(dtype) ? 1 : decode(format, format.max_code) / 2;
        value = insert_once("dynamic_rescale", {value}, {{"norm", std::string("max")}, {"to", end}});
    }
    return rounded(value, dtype, overflow_of(asked, own_overflow));
}

/// Returns the dtype to which the program's types round this result. Values are rounded where they would be stored: after sums, if they are
/// read more than once, and at results.
std::optional<Dtype> Numerics::default_rounding(const Node &node, ValueId result) const {
    const Dtype dtype = rewriter_.source().type(result).dtype;
    if (!is_narrow(dtype)) return {};
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    static const std::set<std::string> summing{"contract", "reduce", "scan", "window"};
    const bool sums = summing.contains(rule.family);
    return policy_.round_every_node || sums || uses_[result] > 1 || is_result_.contains(result) || is_tested_.contains(result)
               ? std::optional(dtype)
               : std::nullopt;
}

/// Returns the node's attributes with f32 in place of a low-precision result dtype. A low-precision constant keeps its rounded value. A
/// plain result consists of bit patterns, which depend on the format, so its dtype stays.
Attributes Numerics::in_f32(const Rule &rule, const Node &node) const {
    Attributes attributes = node.attributes;
    for (size_t i = 0; i < rule.results.size(); i++) {
        const Dtype dtype = rewriter_.source().type(node.results[i]).dtype;
        const Expression &by = rule.results[i].dtype;
        if (!is_narrow(dtype) || rule.results[i].plain || by == nullptr || by->kind != ExpressionNode::Kind::name ||
            !attributes.contains(by->text))
            continue;
        attributes[by->text] = std::string(to_string(Dtype::f32));
        if (node.op != "constant") continue;
        attributes["value"] = round_to(dtype, to_number(node.attributes.at("value")), own_overflow);
    }
    return attributes;
}

/// A bound that rescales a state is limited by the state's previous value, so rescale_state replaces dynamic_rescale.
PolicyRule for_state(PolicyRule row) {
    for (Insertion &insertion : row.insert) {
        const auto norm = insertion.attributes.find("norm");
        if (insertion.op != "dynamic_rescale" || norm == insertion.attributes.end() || norm->second.word != "bound") continue;
        insertion.op = "rescale_state";
        insertion.attributes.erase("norm");
    }
    return row;
}

void Numerics::place_result(const Result &result) {
    const Program &source = rewriter_.source();
    Result fresh = result;
    fresh.value = rewriter_(result.value);
    const Type type = builder_.type(fresh.value);
    if (is_float(type.dtype)) {
        if (producers_[result.value] >= 0) builder_.stamp_like(source.nodes[producers_[result.value]]);
        const bool inout = result.argument >= 0;
        const Result &flat = shared_.flat.program.results[size_t(&result - source.results.data())];
        const PolicyRule *rule = result.part == ArrayPart() ? matcher_.program_result(flat) : nullptr;
        const ValueId previous = inout ? rewriter_(source.arguments[result.argument].value) : -1;
        if (rule != nullptr) fresh.value = insert({result.value, fresh.value}, inout ? for_state(*rule) : *rule, previous);
        const Argument *argument = inout ? &rewriter_.result().arguments[result.argument] : nullptr;
        const Dtype declared = argument != nullptr ? builder_.type(argument->value).dtype : source.type(result.value).dtype;
        const Dtype dtype = rule != nullptr ? rule->store.value_or(declared) : declared;
        if (argument != nullptr && dtype != declared) {
            throw UserError({rule->location, "'store' of result '" + result.name + "'",
                             "must be the dtype of its inout argument, " + std::string(to_string(declared)), std::string(to_string(dtype)),
                             "Give the argument a rule with the same 'store'"});
        }
        if (argument != nullptr && rule != nullptr && rule->scaled.value_or(argument->scaled) != argument->scaled)
            throw UserError({rule->location, "'scaled' of result '" + result.name + "'",
                             std::string("must be ") + (argument->scaled ? "true" : "false") + " as for its inout argument",
                             argument->scaled ? "false" : "true", "Give the argument a rule with the same 'scaled'"});
        if (rule != nullptr) fresh.scaled = rule->scaled.value_or(fresh.scaled);
        if (argument != nullptr) fresh.scaled = argument->scaled;
        if (fresh.scaled && !propagates_ && (rule == nullptr || !makes_scaled(*rule))) {
            fresh.value = insert_once("dynamic_rescale", {fresh.value}, {{"norm", std::string("max")}, {"to", 1.0}});
        }
        const bool is_own = dtype == source.type(result.value).dtype && (rule == nullptr || !rule->acts());
        const Overflow overflow = is_own ? own_overflow : policy_.overflow;
        if (dtype != Dtype::f32) fresh.value = insert_once("convert_element_type", {fresh.value}, narrowing(dtype, overflow));
        const int producer = producers_[result.value];
        const Location made = producer >= 0 ? source.nodes[producer].location : Location();
        const Direction direction = producer >= 0 ? direction_of(source.nodes[producer]) : Direction::none;
        note({PolicyRule::Place::program_result, result.name, "", "", direction, {}, made, fresh.value}, rule);
    }
    rewriter_.result().results.push_back(std::move(fresh));
}

/// Applies the insertions of a rule. Some operators have a second operand: a state of the policy, the key for random numbers, or the
/// previous value of the inout argument.
ValueId Numerics::insert(const PolicyTensor &tensor, const PolicyRule &policy, ValueId previous) {
    ValueId value = tensor.value;
    for (const Insertion &insertion : policy.insert) {
        const std::string &op = insertion.op;
        Attributes attributes = insertion.attributes;
        std::vector<ValueId> operands = {value};
        const Rule &rule = builder_.rulebook().rule(op, policy.location);
        add_stored_dtype(rule, policy.stored_dtype(), attributes);
        const std::optional<std::string> name = state_of(rule, insertion);
        if (name == calibration_word) {
            operands.push_back(states_.calibrated(tensor, policy));
            attributes.erase(rule.operands[1].name);
        } else if (name) {
            operands.push_back(states_.state(*name, tensor, policy.stored_dtype()));
            attributes.erase(rule.operands[1].name);
        } else if (takes_key(rule)) {
            operands.push_back(random_key(rewriter_.result(), policy_.scales.key));
        } else if (rule.operands.size() == 2) {
            if (previous < 0)
                throw UserError(statement(policy.location, "'" + op + "' can be inserted only by a rule with 'result: inout'",
                                          "Its second operand is the value of the argument before the update"));
            operands.push_back(previous);
        }
        const auto dtype = op == "convert_element_type" ? parse_dtype(attributes.at("dtype").word) : std::nullopt;
        value = naming_line(policy.location, "rounds '" + rewriter_.source().value_name(tensor.source) + "'", [&] {
            return dtype ? rounded(value, *dtype, overflow_of(attributes, policy_.overflow)) : insert_once(op, operands, attributes);
        });
    }
    return value;
}

ValueId Numerics::insert_once(const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes) {
    std::string key = op + to_string(attributes);
    for (ValueId operand : operands) key += " " + std::to_string(operand);
    const auto [entry, is_new] = inserted_.try_emplace(key, -1);
    if (!is_new) return entry->second;
    const auto label = labels_.find(operands[0]);
    const std::string name = label == labels_.end() ? rewriter_.result().value_name(operands[0]) : label->second;
    const std::string word = op == "convert_element_type" ? attributes.at("dtype").word : op;
    Attributes complete = attributes;
    if (takes_key(builder_.rulebook().rule(op, {}))) complete["stream"] = ++shared_.streams;
    entry->second = builder_.add_one(op, operands, std::move(complete), name + "." + word);
    labels_[entry->second] = name;
    rewriter_.result().values[entry->second].part.of = name;
    return entry->second;
}

/// Returns `value` rounded to `dtype`, as f32.
ValueId Numerics::rounded(ValueId value, Dtype dtype, Overflow overflow) {
    if (!is_narrow(dtype) || is_exact_in(value, dtype)) return value;
    return widened(insert_once("convert_element_type", {value}, narrowing(dtype, overflow)));
}

/// Returns a low-precision value converted to f32, and other values unchanged.
ValueId Numerics::widened(ValueId value) {
    const Dtype dtype = builder_.type(value).dtype;
    if (!is_narrow(dtype)) return value;
    const ValueId wide = insert_once("convert_element_type", {value}, convert_attributes(Dtype::f32));
    exact_[wide] = dtype;
    return wide;
}

bool Numerics::is_exact_in(ValueId value, Dtype dtype) const {
    const auto found = exact_.find(value);
    return found != exact_.end() && found->second == dtype;
}

} // namespace

Program assign_numerics(const Program &program, const Rulebook &rulebook, const Policy &policy, PolicyDecisions *decisions) {
    std::set<std::string> named;
    for (const PolicyRule &rule : policy.rules) named.insert(rule.ops.begin(), rule.ops.end());
    const Program parts = expand_to(program, rulebook, named);
    Shared shared(parts, rulebook, policy);
    Program made = Numerics(parts, shared, shared.flat.nodes, decisions).run();
    if (decisions != nullptr) complete(*decisions, made, rulebook);
    share_scales(made, rulebook);
    return made;
}

} // namespace scalide

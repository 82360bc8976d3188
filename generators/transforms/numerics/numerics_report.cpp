#include "transforms/numerics/numerics_report.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "transforms/analysis/costs.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

using Kind = ScaleOrigin::Kind;

/// Operators that sum products: base operators, and the composites that have scales for blocks.
const std::set<std::string> products = [] {
    std::set<std::string> names{"scaled_matmul", "block_scaled_matmul"};
    for (const BaseOperator &op : base_operators())
        if (op.sums_products) names.emplace(op.name);
    return names;
}();

/// Formats the extents of a block, the quotients of two shapes. Extents of 1 are left out.
std::string block_of(const Extents &shape, const Extents &scales) {
    std::string block;
    for (size_t axis = 0; axis < shape.size(); axis++) {
        const Extent extent = shape[axis].divide(scales[axis]).value_or(1);
        if (extent != Extent(1)) block += (block.empty() ? "" : " x ") + to_string(extent);
    }
    return block.empty() ? "1" : block;
}

/// The origin of encoded values with one scale for each row.
const ScaleOrigin rows{Kind::blocks, {}, "row", Dtype::f32};

bool follows_product(const Node &node) { return only_moves(node) || node.op == "mul" || node.op == "convert_element_type"; }

bool is_convert(const Node &node) { return node.op == "convert_element_type"; }

/// True if the result has the operand's scale. It is the same array moved, or converted (operators that round have the attribute `dtype`),
/// or the operator computes with data alone.
bool keeps_scale(const Node &node, const Rule &rule) {
    return node.attributes.contains("dtype") || only_moves(node) || rule.carries_scale();
}

ScaleOrigin origin_behind(const Node &node, const Rule &rule, const std::vector<ScaleOrigin> &scales) {
    const auto scaled = std::ranges::find_if(node.operands, [&](ValueId operand) { return scales[operand].kind != Kind::none; });
    if (scaled == node.operands.end()) return {};
    return keeps_scale(node, rule) ? scales[*scaled] : ScaleOrigin{Kind::propagated};
}

/// True if the scale is computed from a bound. rescale_state always does so; other operators do if their attribute `norm` says so.
bool is_by_bound(const Node &node) {
    const auto norm = node.attributes.find("norm");
    return node.op == "rescale_state" || (norm != node.attributes.end() && norm->second.word == "bound");
}

/// True for values that depend on no argument, by value.
std::vector<bool> constants(const Program &program) {
    std::vector<bool> is_constant(program.values.size(), true);
    for (const Argument &argument : program.arguments) is_constant[argument.value] = false;
    for (const Node &node : program.nodes)
        for (const ValueId result : node.results)
            is_constant[result] = std::ranges::all_of(node.operands, [&](ValueId operand) { return is_constant[operand]; });
    return is_constant;
}

/// Returns where an operator that sets a scale gets it from.
ScaleOrigin origin_of_new_scale(const Node &node, const Program &program, const std::vector<bool> &is_constant) {
    const ValueId scale = node.operands.size() > 1 ? node.operands[1] : -1;
    if (scale >= 0 && is_constant[scale]) return {Kind::fixed};
    for (const Argument &argument : program.arguments)
        if (argument.initial && argument.value == scale && is_float(program.type(scale).dtype))
            return {Kind::state, program.value_name(scale)};
    return {is_by_bound(node) ? Kind::bound : Kind::values, node.op};
}

bool needs_scale(Dtype dtype) { return is_narrow(dtype) && dtype != Dtype::bf16; }

/// How an operand of a matmul is stored.
struct StoredOperand {
    ValueId value;
    Dtype dtype;
    ScaleOrigin scale;
};

StoredOperand stored_operand(const Node &product, size_t index, const Program &program, const StoredForms &forms) {
    const ValueId stored = forms.stored(product.operands[index]);
    StoredOperand operand{stored, program.type(stored).dtype, forms.scale(stored)};
    const bool has_scales = product.operands.size() == 4; // lhs, rhs and their scales
    // Scales that are applied after the sum belong to whole rows and columns.
    if (!has_scales && operand.scale.kind == Kind::blocks) operand.scale.block = index == 0 ? "row" : "column";
    if (!has_scales || operand.scale.kind == Kind::blocks) return operand;
    const ValueId scales = product.operands[index + 2];
    operand.scale = {Kind::blocks,
                     {},
                     block_of(program.type(product.operands[index]).shape, program.type(scales).shape),
                     program.type(forms.stored(scales)).dtype};
    return operand;
}

/// Names of values for which a policy decides how they are stored.
using DecidedNames = std::set<std::string>;

void count_product(const Node &node, const Program &program, const StoredForms &forms, const DecidedNames &decided,
                   ProductFormats &formats) {
    formats.products++;
    formats.convolutions += node.op == "conv_general_dilated";
    std::optional<Dtype> widest;
    bool is_scaled = true, is_own = false;
    std::string block;
    for (size_t i = 0; i < 2; i++) {
        const auto [stored, dtype, scale] = stored_operand(node, i, program, forms);
        if (!widest || size_of(dtype) > size_of(*widest)) widest = dtype;
        const bool lacks_scale = needs_scale(dtype) && scale.kind == Kind::none, is_decided = decided.contains(program.value_name(stored));
        is_scaled &= !lacks_scale || !is_decided;
        is_own |= lacks_scale && !is_decided;
        block = std::max(block, scale.block);
    }
    if (!is_float(*widest) || size_of(*widest) >= 4) return;
    formats.narrow[size_of(*widest) == 1 ? "f8" : std::string(to_string(*widest))]++;
    if (!block.empty()) formats.blocks[block]++;
    formats.unscaled += !is_scaled;
    formats.own += is_scaled && is_own;
}

/// Returns the operator that rounds a stored value stochastically before an exact conversion. Empty if the conversion rounds to nearest.
std::string random_rounding(const Program &program, const std::vector<int> &makers, ValueId stored, const Rulebook &rulebook) {
    if (makers[stored] < 0) return "";
    const ValueId value = program.nodes[makers[stored]].operands.empty() ? stored : program.nodes[makers[stored]].operands[0];
    if (makers[value] < 0) return "";
    const Node &node = program.nodes[makers[value]];
    return rulebook.rule(node.op, node.location).family == "random" ? node.op : "";
}

/// For example "f32" or "f16, scaled by a bound, rounded by hashed_round".
std::string state_of(const Program &program, const StoredForms &forms, const std::vector<int> &makers, ValueId value,
                     const Rulebook &rulebook) {
    const Dtype dtype = program.type(value).dtype;
    std::string words(to_string(dtype));
    const Kind kind = forms.scale(value).kind;
    if (kind == Kind::bound) {
        words += ", scaled by a bound";
    } else if (kind != Kind::none) {
        words += ", scaled";
    } else if (needs_scale(dtype)) {
        words += ", not scaled";
    }
    if (!is_narrow(dtype)) return words;
    const std::string op = random_rounding(program, makers, value, rulebook);
    return words + (op.empty() ? ", rounded to nearest" : ", rounded by " + op);
}

/// Counts the values that are converted to a format of this size without a scale, by the policy or by the program.
size_t count_unsafe(const std::vector<NumericsDecision> &decisions, bool policys, int bytes) {
    std::set<ValueId> values;
    for (const NumericsDecision &decision : decisions)
        if (decision.is_unsafe() && decision.is_policys() == policys && size_of(decision.stored) == bytes) values.insert(decision.value);
    return values.size();
}

/// True if the policy stores the value with a scale that is known before the value, or with none, and a larger number saturates.
bool may_saturate(const NumericsDecision &decision, const Node *maker) {
    using Kind = ScaleOrigin::Kind;
    const bool is_known_before =
        decision.scale.kind == Kind::none || decision.scale.kind == Kind::state || decision.scale.kind == Kind::fixed;
    return decision.is_policys() && decision.place != PolicyRule::Place::argument && is_known_before && !has_wide_range(decision.stored) &&
           maker != nullptr && overflow_of(maker->attributes) == Overflow::saturate;
}

/// Counts the values that the policy may saturate and on which an is_finite of the program depends.
size_t count_saturating(const Program &made, const std::vector<NumericsDecision> &decisions) {
    std::vector<bool> is_tested(made.values.size());
    for (const Node &node : made.nodes)
        if (node.op == "is_finite") is_tested[node.operands[0]] = true;
    mark_sources(made, is_tested);
    const std::vector<int> makers = producers(made);
    std::set<ValueId> values;
    for (const NumericsDecision &decision : decisions) {
        if (decision.value < 0 || !is_tested[decision.value]) continue;
        const int maker = makers[decision.value];
        if (may_saturate(decision, maker < 0 ? nullptr : &made.nodes[maker])) values.insert(decision.value);
    }
    return values.size();
}

/// The matmuls of operators that a policy put in place of others, found by their results. complete() builds it only if it is needed.
class ReplacedProducts {
public:
    ReplacedProducts(const Program &made, const Rulebook &rulebook)
        : program_(expand_to(made, rulebook, products)), forms_(program_, rulebook), producers_(producers(program_)) {
        for (size_t value = 0; value < program_.values.size(); value++) values_[program_.values[value].name] = static_cast<ValueId>(value);
    }

    /// Returns an operand of the matmul that computes the value `name`. Movement and factors after the matmul are skipped. Returns nothing
    /// if there is no such matmul.
    std::optional<StoredOperand> operand(const std::string &name, int index) const {
        const auto found = values_.find(name);
        int maker = found == values_.end() ? -1 : producers_[found->second];
        while (maker >= 0 && follows_product(program_.nodes[maker])) maker = producers_[program_.nodes[maker].operands[0]];
        if (maker < 0 || !products.contains(program_.nodes[maker].op)) return {};
        return stored_operand(program_.nodes[maker], static_cast<size_t>(index), program_, forms_);
    }

private:
    const Program program_;
    const StoredForms forms_;
    const std::vector<int> producers_;
    std::map<std::string, ValueId> values_;
};

} // namespace

bool has_wide_range(Dtype dtype) { return format_of(dtype).exponent_bits >= format_of(Dtype::f32).exponent_bits; }

StoredForms::StoredForms(const Program &made, const Rulebook &rulebook)
    : program_(made), producers_(producers(made)), scales_(made.values.size()) {
    for (const Argument &argument : made.arguments)
        if (argument.scaled) scales_[argument.value] = {Kind::argument};
    const std::vector<bool> is_constant = constants(made);
    for (const Node &node : made.nodes) {
        if (node.op == "stop_scaling" || !node.regions.empty()) continue;
        if (node.op == "row_codes") scales_[node.results[0]] = rows;
        if (node.op == "block_codes") {
            const Type &scales = made.type(node.operands[1]);
            scales_[node.results[0]] = {Kind::blocks, {}, block_of(made.type(node.operands[0]).shape, scales.shape), scales.dtype};
        }
        const Rule &rule = rulebook.rule(node.op, node.location);
        const ScaleOrigin origin =
            rulebook.makes_scaled(rule) ? origin_of_new_scale(node, made, is_constant) : origin_behind(node, rule, scales_);
        for (size_t i = 0; i < node.results.size(); i++)
            if (!rule.result(i).plain && is_float(made.type(node.results[i]).dtype)) scales_[node.results[i]] = origin;
    }
}

ValueId StoredForms::stored(ValueId value) const {
    while (producers_[value] >= 0) {
        const Node &node = program_.nodes[producers_[value]];
        const bool widens = is_convert(node) && size_of(program_.type(node.operands[0]).dtype) < size_of(program_.type(value).dtype) &&
                            is_float(program_.type(node.operands[0]).dtype);
        if (!widens && node.op != "stop_scaling" && !only_moves(node)) break;
        value = node.operands[0];
    }
    return value;
}

std::vector<NumericsDecision> PolicyDecisions::all_sites() const {
    std::vector<NumericsDecision> all = sites;
    for (const PolicyDecisions &region : regions) std::ranges::copy(region.all_sites(), std::back_inserter(all));
    return all;
}

std::vector<MatmulDecision> PolicyDecisions::all_matmuls() const {
    std::vector<MatmulDecision> all = matmuls;
    for (const PolicyDecisions &region : regions) std::ranges::copy(region.all_matmuls(), std::back_inserter(all));
    return all;
}

std::optional<Location> MatmulDecision::keeping_row() const {
    const auto is_wide = [](const OperandDecision &operand) { return size_of(operand.stored) >= 4; };
    const auto kept = std::ranges::find_if(operands, &OperandDecision::is_kept);
    return kept != operands.end() && std::ranges::all_of(operands, is_wide) ? std::optional(kept->row) : std::nullopt;
}

void complete(PolicyDecisions &decisions, const Program &made, const Rulebook &rulebook) {
    const StoredForms forms(made, rulebook);
    const std::vector<int> makers = producers(made);
    std::optional<ReplacedProducts> replaced;
    for (MatmulDecision &matmul : decisions.matmuls) {
        if (matmul.replacement >= 0 && !replaced) replaced.emplace(made, rulebook);
        for (size_t i = 0; i < matmul.operands.size(); i++) {
            OperandDecision &operand = matmul.operands[i];
            operand.value = forms.stored(operand.value);
            operand.stored = made.type(operand.value).dtype;
            operand.scale = forms.scale(operand.value);
            if (matmul.replacement < 0) continue;
            const auto read = replaced->operand(made.value_name(matmul.replacement), static_cast<int>(i));
            if (!read) continue;
            operand.stored = read->dtype;
            operand.scale = read->scale;
        }
    }
    for (NumericsDecision &decision : decisions.sites) {
        std::optional<StoredOperand> operand;
        if (decision.operand >= 0) {
            if (!replaced) replaced.emplace(made, rulebook);
            operand = replaced->operand(made.value_name(decision.value), decision.operand);
            decision.value = made.nodes[makers[decision.value]].operands[decision.operand];
        }
        decision.value = forms.stored(decision.value);
        decision.stored = operand ? operand->dtype : made.type(decision.value).dtype;
        decision.scale = operand ? operand->scale : forms.scale(decision.value);
    }
}

void ProductFormats::add(const ProductFormats &other) {
    products += other.products;
    convolutions += other.convolutions;
    own += other.own;
    unscaled += other.unscaled;
    unsafe_conversions += other.unsafe_conversions;
    unsafe_halves += other.unsafe_halves;
    saturating += other.saturating;
    own_conversions += other.own_conversions;
    policy_states += other.policy_states;
    for (const auto &[format, count] : other.narrow) narrow[format] += count;
    for (const auto &[block, count] : other.blocks) blocks[block] += count;
    for (const auto &[rule, count] : other.kept) kept[rule] += count;
    for (const auto &[state, count] : other.states) states[state] += count;
}

size_t ProductFormats::narrow_products() const {
    size_t count = 0;
    for (const auto &[format, products] : narrow) count += products;
    return count;
}

ProductFormats product_formats(const Program &made, const Rulebook &rulebook, const PolicyDecisions &decisions) {
    DecidedNames decided;
    for (const NumericsDecision &decision : decisions.sites)
        if (decision.is_policys()) decided.insert(made.value_name(decision.value));
    const Program program = expand_to(made, rulebook, products);
    const StoredForms forms(program, rulebook);
    ProductFormats formats;
    for (const Node &node : program.nodes)
        if (products.contains(node.op)) count_product(node, program, forms, decided, formats);
    for (const MatmulDecision &matmul : decisions.matmuls)
        if (const auto row = matmul.keeping_row()) formats.kept[{row->file, row->line}]++;
    const StoredForms stored(made, rulebook);
    const std::vector<int> makers = producers(made);
    for (const Result &result : made.results)
        if (result.argument >= 0 && !made.arguments[result.argument].initial && !result.part.is_scale() &&
            is_float(made.type(result.value).dtype))
            formats.states[state_of(made, stored, makers, result.value, rulebook)]++;
    formats.unsafe_conversions = count_unsafe(decisions.sites, true, 1);
    formats.unsafe_halves = count_unsafe(decisions.sites, true, 2);
    formats.own_conversions = count_unsafe(decisions.sites, false, 1);
    formats.saturating = count_saturating(made, decisions.sites);
    formats.policy_states = std::ranges::count(decisions.sites, state_of_policy, &NumericsDecision::use);
    auto inner = decisions.regions.begin();
    for (const Node &node : made.nodes)
        for (const Region &region : node.regions) {
            ProductFormats of_region = product_formats(open_region(region, made), rulebook, *inner++);
            of_region.states.clear(); // carries are no state of the program
            formats.add(of_region);
        }
    return formats;
}

std::map<Dtype, double> bytes_written(const Program &fused) {
    const NominalSizes sizes(fused);
    std::map<Dtype, double> bytes;
    visit_programs(fused, [&](const Program &program) {
        for (const Node &node : program.nodes)
            for (const ValueId result : node.results)
                if (node.regions.empty() && is_float(program.type(result).dtype))
                    bytes[program.type(result).dtype] += sizes.bytes(program.type(result));
    });
    return bytes;
}

std::vector<std::pair<std::string, double>> wide_intermediates(const Program &fused) {
    const NominalSizes sizes(fused);
    std::vector<std::pair<std::string, double>> wide;
    visit_programs(fused, [&](const Program &program) {
        std::set<ValueId> results;
        for (const Result &result : program.results) results.insert(result.value);
        for (const Node &node : program.nodes)
            for (const ValueId value : node.results)
                if (program.type(value).dtype == Dtype::f32 && !program.type(value).shape.empty() && !results.contains(value))
                    wide.emplace_back(program.value_name(value), sizes.bytes(program.type(value)));
    });
    std::ranges::stable_sort(wide, [](const auto &a, const auto &b) { return a.second > b.second; });
    return wide;
}

std::string described_block(const std::string &block) { return block == "row" || block == "column" ? block : "block of " + block; }

} // namespace scalide

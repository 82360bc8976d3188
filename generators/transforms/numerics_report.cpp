#include "transforms/numerics_report.h"
#include "transforms/fuse_costs.h"
#include "transforms/operators.h"
#include "transforms/passes.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

using Kind = ScaleOrigin::Kind;

const std::set<std::string> contractions{"dot_general", "conv_general_dilated"};

bool is_convert(const Node &node) { return node.op == "convert_element_type"; }

/// The same array in another place or format (what rounds, a conversion among them, names the format): its scale is the operand's own.
bool keeps_array(const Node &node) { return node.attributes.contains("dtype") || only_moves(node); }

ScaleOrigin origin_behind(const Node &node, const std::vector<ScaleOrigin> &scales) {
    const auto scaled = std::ranges::find_if(node.operands, [&](ValueId operand) { return scales[operand].kind != Kind::none; });
    if (scaled == node.operands.end()) return {};
    return keeps_array(node) ? scales[*scaled] : ScaleOrigin{Kind::propagated};
}

bool needs_scale(Dtype dtype) { return is_float(dtype) && size_of(dtype) < 4 && dtype != Dtype::bf16; }

void count_product(const Node &node, const Program &program, const StoredForms &forms, ProductFormats &formats) {
    formats.products++;
    std::optional<Dtype> widest;
    bool is_scaled = true;
    for (size_t i = 0; i < 2; i++) {
        const ValueId stored = forms.stored(node.operands[i]);
        const Dtype dtype = program.type(stored).dtype;
        if (!widest || size_of(dtype) > size_of(*widest)) widest = dtype;
        is_scaled &= !needs_scale(dtype) || forms.scale(stored).kind != Kind::none;
    }
    if (!is_float(*widest) || size_of(*widest) >= 4) return;
    formats.narrow[size_of(*widest) == 1 ? "f8" : std::string(to_string(*widest))]++;
    formats.unscaled += !is_scaled;
}

bool is_unsafe(const Node &node, const Program &program, const StoredForms &forms) {
    const Dtype dtype = program.type(node.results[0]).dtype;
    return is_convert(node) && is_float(dtype) && size_of(dtype) == 1 && is_float(program.type(node.operands[0]).dtype) &&
           forms.scale(node.results[0]).kind == Kind::none;
}

} // namespace

StoredForms::StoredForms(const Program &made, const Rulebook &rulebook)
    : program_(made), producers_(producers(made)), scales_(made.values.size()) {
    for (const Argument &argument : made.arguments)
        if (argument.scaled) scales_[argument.value] = {Kind::argument};
    for (const Node &node : made.nodes) {
        if (node.op == "stop_scaling") continue;
        const Rule &rule = rulebook.rule(node.op, node.location);
        const ScaleOrigin origin = rulebook.makes_scaled(rule) ? ScaleOrigin{Kind::values, node.op} : origin_behind(node, scales_);
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

void complete(std::vector<NumericsDecision> &decisions, const Program &made, const Rulebook &rulebook) {
    const StoredForms forms(made, rulebook);
    for (NumericsDecision &decision : decisions) {
        const ValueId stored = forms.stored(decision.value);
        decision.stored = made.type(stored).dtype;
        decision.scale = forms.scale(stored);
    }
}

void ProductFormats::add(const ProductFormats &other) {
    products += other.products;
    unscaled += other.unscaled;
    unsafe_conversions += other.unsafe_conversions;
    for (const auto &[format, count] : other.narrow) narrow[format] += count;
}

size_t ProductFormats::narrow_products() const {
    size_t count = 0;
    for (const auto &[format, products] : narrow) count += products;
    return count;
}

ProductFormats product_formats(const Program &made, const Rulebook &rulebook) {
    const Program program = expand_to(made, rulebook, contractions);
    const StoredForms forms(program, rulebook);
    ProductFormats formats;
    for (const Node &node : program.nodes) {
        if (contractions.contains(node.op)) count_product(node, program, forms, formats);
        formats.unsafe_conversions += is_unsafe(node, program, forms);
    }
    return formats;
}

std::map<Dtype, double> bytes_written(const Program &fused) {
    const NominalSizes sizes(fused);
    std::map<Dtype, double> bytes;
    for (const Node &node : fused.nodes)
        for (const ValueId result : node.results)
            if (is_float(fused.type(result).dtype)) bytes[fused.type(result).dtype] += sizes.bytes(fused.type(result));
    return bytes;
}

std::vector<std::pair<std::string, double>> wide_intermediates(const Program &fused) {
    const NominalSizes sizes(fused);
    std::set<ValueId> results;
    for (const Result &result : fused.results) results.insert(result.value);
    std::vector<std::pair<std::string, double>> wide;
    for (const Node &node : fused.nodes)
        for (const ValueId value : node.results)
            if (fused.type(value).dtype == Dtype::f32 && !fused.type(value).shape.empty() && !results.contains(value))
                wide.emplace_back(fused.value_name(value), sizes.bytes(fused.type(value)));
    std::ranges::stable_sort(wide, [](const auto &a, const auto &b) { return a.second > b.second; });
    return wide;
}

} // namespace scalide

#include "transforms/library/kernel_call.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// A field of a call that names one value.
struct Part {
    std::string_view name;
    ValueId MatmulCall::*value;
    bool is_result;
};
constexpr Part parts[] = {
    {"factor", &MatmulCall::factor, false},
    {"bias", &MatmulCall::bias, false},
    {"addend", &MatmulCall::addend, false},
    {"addend_factor", &MatmulCall::addend_factor, false},
    {"result_factor", &MatmulCall::result_factor, false},
    {"amax", &MatmulCall::amax, true},
    {"result", &MatmulCall::result, true},
};

struct Side {
    std::string_view name, scales;
    MatmulOperand MatmulForm::*operand;
    ScaleLayout ScaleLayouts::*layout;
};
constexpr Side sides[] = {{"lhs", "lhs_scales", &MatmulForm::lhs, &ScaleLayouts::lhs},
                          {"rhs", "rhs_scales", &MatmulForm::rhs, &ScaleLayouts::rhs}};

ValueId number_of(ValueId value, const std::vector<ValueId> &values) {
    if (value < 0) return -1;
    const auto found = std::ranges::find(values, value);
    internal_check(found != values.end(), "fuse: a kernel is one product");
    return static_cast<ValueId>(found - values.begin());
}

std::string text(std::string_view word) { return std::string(word); }

} // namespace

KernelCall in_kernel(const KernelCall &call, const std::vector<ValueId> &arguments, const std::vector<ValueId> &results) {
    KernelCall made = call;
    made.call.nodes.clear();
    made.call.operand_nodes.clear();
    for (const Part &part : parts) made.call.*part.value = number_of(call.call.*part.value, part.is_result ? results : arguments);
    for (const Side &side : sides) {
        MatmulOperand &operand = made.call.form.*side.operand;
        operand.value = number_of(operand.value, arguments);
        operand.scales.value = number_of(operand.scales.value, arguments);
    }
    internal_check(results.size() == (made.call.amax < 0 ? 1u : 2u), "fuse: a kernel makes what its product does");
    return made;
}

Attribute to_attribute(const KernelCall &call) {
    using List = std::vector<Attribute>;
    const MatmulForm &form = call.call.form;
    List entries{List{"product", form.batch, form.m, form.n, form.k}};
    for (const Side &side : sides) {
        const MatmulOperand &operand = form.*side.operand;
        entries.emplace_back(List{text(side.name), operand.value, int(operand.k_contiguous), operand.leading, operand.batch_stride});
        if (operand.scales.value >= 0)
            entries.emplace_back(List{text(side.scales), operand.scales.value, text(to_string(call.scales.*side.layout))});
    }
    for (const Part &part : parts)
        if (call.call.*part.value >= 0) entries.emplace_back(List{text(part.name), call.call.*part.value});
    if (call.call.fast_accumulation) entries.emplace_back(List{"accumulation", "fast"});
    if (call.call.tf32) entries.emplace_back(List{"precision", "tf32"});
    return entries;
}

KernelCall kernel_call(const Attribute &attribute) {
    std::map<std::string_view, const std::vector<Attribute> *> entries;
    for (const Attribute &entry : attribute.list) entries[entry.list.at(0).word] = &entry.list;
    const auto value = [&](std::string_view name) {
        return entries.contains(name) ? static_cast<ValueId>(entries[name]->at(1).integer.value()) : -1;
    };
    KernelCall made;
    MatmulForm &form = made.call.form;
    const std::vector<Attribute> &product = *entries.at("product");
    Extent *const extents[] = {&form.batch, &form.m, &form.n, &form.k};
    for (size_t i = 0; i < std::size(extents); i++) *extents[i] = product.at(i + 1).integer;
    for (const Side &side : sides) {
        const std::vector<Attribute> &entry = *entries.at(side.name);
        form.*side.operand = {
            value(side.name), entry.at(2).integer == Extent(1), entry.at(3).integer, entry.at(4).integer, {value(side.scales)}};
        if (entries.contains(side.scales)) made.scales.*side.layout = parse_scale_layout(entries[side.scales]->at(2).word).value();
    }
    for (const Part &part : parts) made.call.*part.value = value(part.name);
    made.call.fast_accumulation = entries.contains("accumulation");
    made.call.tf32 = entries.contains("precision");
    return made;
}

} // namespace scalide

#include "transforms/library/library_call.h"
#include "ir/words.h"
#include "transforms/library/operand_scales.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

bool stores(const LibraryProduct &product, const Program &program, const MatmulCall &call) {
    const auto is_among = [&](const std::vector<Dtype> &dtypes, ValueId value) {
        return value < 0 || std::ranges::find(dtypes, program.type(value).dtype) != dtypes.end();
    };
    return std::ranges::any_of(product.results, [&](const LibraryResult &row) {
        return row.dtype == program.type(call.result).dtype && call.overflow.value_or(row.overflow) == row.overflow &&
               is_among(row.bias, call.bias) && is_among(row.addend, call.addend) &&
               (row.is_scaled || (call.result_factor < 0 && call.amax < 0));
    });
}

bool is_of(const LibraryProduct &product, const Program &program, const MatmulCall &call, const ScaleLayouts &scales) {
    return product.lhs == program.type(call.form.lhs.value).dtype && product.rhs == program.type(call.form.rhs.value).dtype &&
           std::ranges::find(product.scales, scales) != product.scales.end();
}

std::string cards_of(const std::vector<int> &cards) {
    std::string text;
    for (const int card : cards) text += (text.empty() ? "sm_" : ", sm_") + std::to_string(card);
    return text;
}

std::string by(std::string_view lhs, std::string_view rhs) { return std::string(lhs) + " x " + std::string(rhs); }

/// For example `1 x 128 of f32`.
std::string say_blocks(const Program &program, const BlockScales &scales) {
    if (scales.value < 0) return "none";
    return by(to_string(scales.rows), to_string(scales.k)) + " of " + std::string(to_string(program.type(scales.value).dtype));
}

/// Static extents must be multiples. The runtime checks symbolic extents when it binds them.
std::string why_not_aligned(const MatmulCall &call, int64_t multiple) {
    const std::pair<const char *, Extent> extents[] = {{"m", call.form.m}, {"n", call.form.n}, {"k", call.form.k}};
    for (const auto &[name, extent] : extents)
        if (extent.is_static() && extent.value() % multiple != 0)
            return name + std::string(" must be a multiple of ") + std::to_string(multiple) + ", got " + to_string(extent);
    return "";
}

bool has_scales(const MatmulCall &call) { return call.form.lhs.scales.value >= 0 || call.form.rhs.scales.value >= 0; }

/// Returns why no library accepts the scales of a call's operands. Empty if one does.
std::string why_not_scaled(const Program &program, const MatmulCall &call, const TargetFacts &facts) {
    const MatmulForm &form = call.form;
    const auto scales = scale_layouts(program, form);
    if (!scales)
        return "cuBLASLt does not support blocks of " + say_blocks(program, form.lhs.scales) + " and " +
               say_blocks(program, form.rhs.scales);
    const std::string layouts = by(to_string(scales->lhs), to_string(scales->rhs));
    const auto row = std::ranges::find_if(facts.products, [&](const LibraryProduct &p) { return is_of(p, program, call, *scales); });
    if (row == facts.products.end())
        return "the cuBLASLt table has no entry for " +
               by(to_string(program.type(form.lhs.value).dtype), to_string(program.type(form.rhs.value).dtype)) + " with " + layouts;
    if (!has_cards(*row, facts.cards)) return layouts + " needs " + cards_of(row->cards);
    if (!stores(*row, program, call))
        return "cuBLASLt does not store " + std::string(to_string(program.type(call.result).dtype)) + " with " + layouts;
    if (const std::string why = why_not_aligned(call, row->multiple); !why.empty()) return why;
    const bool is_packable =
        can_pack(form.lhs.scales, form.m, form.k, scales->lhs) && can_pack(form.rhs.scales, form.n, form.k, scales->rhs);
    return is_packable ? "" : "the scale layout of " + layouts + " needs padding to whole tiles, which requires fixed extents";
}

/// Returns the message for a dot_general. Empty if a library accepts its scales or if it has none.
std::string why_left(const Program &program, const std::vector<MatmulCall> &calls, const TargetFacts &facts) {
    std::string why;
    for (const MatmulCall &call : calls) {
        if (call.form.lhs.scales.value < 0 || call.form.rhs.scales.value < 0) continue;
        why = why_not_scaled(program, call, facts);
        if (why.empty()) break;
    }
    return why;
}

} // namespace

bool has_cards(const LibraryProduct &product, const std::vector<int> &cards) {
    const auto is_known = [&](int card) { return std::ranges::find(product.cards, card) != product.cards.end(); };
    return product.cards.empty() || std::ranges::all_of(cards, is_known);
}

const LibraryProduct *find_product(const Program &program, const MatmulCall &call, const TargetFacts &facts) {
    const auto scales = scale_layouts(program, call.form);
    if (!scales || (has_scales(call) && !why_not_scaled(program, call, facts).empty())) return nullptr;
    const auto row = std::ranges::find_if(facts.products, [&](const LibraryProduct &p) {
        return is_of(p, program, call, *scales) && has_cards(p, facts.cards) && stores(p, program, call);
    });
    return row == facts.products.end() ? nullptr : &*row;
}

std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts) {
    const auto form = matmul_form(kernel, producers(kernel), dot);
    if (!form) return "the batch axis is the last axis of an operand";
    const auto name = [&](const MatmulOperand &operand) { return std::string(to_string(kernel.type(operand.value).dtype)); };
    const std::string product = name(form->lhs) + " x " + name(form->rhs);
    const auto multiplies = [&](const LibraryProduct &p) {
        return p.lhs == kernel.type(form->lhs.value).dtype && p.rhs == kernel.type(form->rhs.value).dtype;
    };
    return std::ranges::any_of(facts.products, multiplies) ? "no cuBLASLt rule matched after fusion: " + product
                                                           : "the cuBLASLt table has no entry for " + product;
}

std::vector<std::string> scales_left_to_kernels(const Program &program, const TargetFacts &facts) {
    std::vector<std::string> sentences;
    if (facts.products.empty()) return sentences;
    const MatmulCalls calls(program, [](ValueId) { return true; });
    for (int node = 0; node < static_cast<int>(program.nodes.size()); ++node) {
        if (program.nodes[node].op != "dot_general") continue;
        const std::vector<MatmulCall> possible = calls.of(node);
        std::map<std::string, std::vector<int>> reasons;
        TargetFacts of_card = facts;
        for (const int card : facts.cards) {
            of_card.cards = {card};
            reasons[why_left(program, possible, of_card)].push_back(card);
        }
        const std::string name = name_to_string(program.value_name(program.nodes[node].results[0]));
        for (const auto &[why, cards] : reasons)
            if (!why.empty())
                sentences.push_back(name + ": a generated kernel applies the scales" +
                                    (cards == facts.cards ? "" : " on " + cards_of(cards)) + ", because " + why);
    }
    return sentences;
}

} // namespace scalide

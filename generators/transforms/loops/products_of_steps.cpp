#include "transforms/loops/products_of_steps.h"
#include "ir/regions.h"
#include "ir/words.h"
#include "transforms/analysis/costs.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include "transforms/loops/known_steps.h"
#include "transforms/loops/split_products.h"
#include "transforms/simplify/simplify_regions.h"
#include <algorithm>

namespace scalide {

namespace {

/// A sum of fewer products costs less than writing its result to memory and reading it again.
constexpr double least_terms = 8;

/// The arrays of all steps that replace the products of one loop take at most so many bytes each. The loop itself needs no memory for them.
constexpr double most_bytes = 256 << 20;

/// A sum over the steps may read so many times the bytes that a step reads and writes otherwise.
constexpr double largest_growth = 2;

/// What the rules need to know about a loop and its body.
class Products {
public:
    Products(RegionEdit &edit, std::vector<std::string> *notes)
        : edit_(edit), notes_(notes), steps_(edit), body_(steps_.body()), sizes_(edit.builder.program()), makers_(producers(body_)),
          uses_(count_uses(body_)) {}

    bool move_before();
    bool move_sums_after();
    bool move_results_after();

private:
    const Node *maker(ValueId value) const { return makers_[value] < 0 ? nullptr : &body_.nodes[makers_[value]]; }
    const Extent &length() const { return edit_.node.attributes.at("length").integer; }
    double bytes(ValueId value) const { return sizes_.bytes(body_.type(value)); }
    double bytes_of_steps(ValueId value) const { return bytes(value) * sizes_.elements({length()}); }

    void note(const Node &node, const std::string &what) const;

    bool is_weight(ValueId value) const { return steps_.is_known(value) && !steps_.varies(value); }
    bool has_stack(ValueId value) const {
        return std::ranges::any_of(body_.results, [&](const Result &result) { return result.argument < 0 && result.value == value; });
    }
    bool is_at_hand(ValueId value) const { return steps_.is_at_hand(value) || has_stack(value); }
    bool is_large_sum(const Node &dot) const;

    /// Returns the value in all steps, which nodes after the loop read.
    ValueId stack(ValueId value) { return steps_.is_at_hand(value) ? steps_.before(value).value : edit_.add_stack(value); }

    bool can_sum(ValueId value) const;
    ValueId sum(ValueId value, Dtype dtype);

    bool is_late(ValueId value) const;
    StepsValue late(ValueId value);

    RegionEdit &edit_;
    std::vector<std::string> *notes_;
    KnownSteps steps_;
    const Program &body_; ///< as it was first
    NominalSizes sizes_;
    std::vector<int> makers_, uses_;
};

void Products::note(const Node &node, const std::string &what) const {
    if (notes_ == nullptr) return;
    notes_->push_back(node.op + " " + name_to_string(body_.value_name(node.results[0])) + " (" + to_string(node.location) + "): " + what +
                      " the loop of " + to_string(edit_.node.location));
}

bool Products::is_large_sum(const Node &dot) const {
    Extents summed;
    for (const int64_t axis : dot_axes(dot).lhs_contract) summed.push_back(body_.type(dot.operands[0]).shape[axis]);
    return sizes_.elements(summed) >= least_terms;
}

bool Products::move_before() {
    std::vector<bool> is_needed(body_.values.size(), false);
    for (const Result &result : body_.results) is_needed[result.value] = true;
    std::vector<ValueId> leaving;
    for (size_t i = body_.nodes.size(); i-- > 0;) {
        const Node &node = body_.nodes[i];
        if (!std::ranges::any_of(node.results, [&](ValueId result) { return is_needed[result]; })) continue;
        const bool leaves = node.op == "dot_general" && steps_.varies(node.results[0]) &&
                            std::ranges::any_of(node.operands, [&](ValueId operand) { return is_weight(operand); }) && is_large_sum(node) &&
                            bytes_of_steps(node.results[0]) <= most_bytes;
        if (leaves)
            leaving.push_back(node.results[0]);
        else
            for (const ValueId operand : node.operands) is_needed[operand] = true;
    }
    for (const ValueId value : leaving) {
        note(*maker(value), "one product of all steps before");
        const size_t element = edit_.add_element(steps_.before(value).value, body_.value_name(value));
        replace_value(edit_.body(), value, edit_.body().arguments[element].value);
    }
    return !leaving.empty();
}

/// True if the sum of the value over the steps is cheaper after the loop than in it.
bool Products::can_sum(ValueId value) const {
    if (is_at_hand(value)) return true;
    const Node *node = maker(value);
    if (node == nullptr || uses_[value] != 1) return false;
    if (node->op == "dot_general") {
        double added = 0;
        for (const ValueId operand : node->operands) {
            if (is_weight(operand) || (!is_at_hand(operand) && bytes_of_steps(operand) > most_bytes)) return false;
            if (!is_at_hand(operand)) added += bytes(operand);
        }
        return added <= largest_growth * bytes(value);
    }
    const bool is_widened = node->op == "convert_element_type" && maker(node->operands[0]) != nullptr &&
                            maker(node->operands[0])->op == "dot_general" && is_float(body_.type(node->operands[0]).dtype);
    return (node->op == "reshape" || node->op == "transpose" || node->op == "reduce_sum" || is_widened) && can_sum(node->operands[0]);
}

/// Adds the sum of the value over the steps.
ValueId Products::sum(ValueId value, Dtype dtype) {
    Builder &builder = edit_.builder;
    const Node *node = maker(value);
    if (is_at_hand(value)) return builder.add_one("reduce_sum", {stack(value)}, reduce_attributes({0}));
    if (node->op == "dot_general") return add_sum_of_products(builder, *node, dtype, stack(node->operands[0]), stack(node->operands[1]));
    if (node->op == "convert_element_type") return sum(node->operands[0], dtype);
    if (node->op == "reduce_sum" && is_at_hand(node->operands[0])) {
        std::vector<int64_t> axes = after_steps(to_integers(node->attributes.at("axes")));
        axes.insert(axes.begin(), 0);
        return builder.add_one("reduce_sum", {stack(node->operands[0])}, reduce_attributes(axes));
    }
    const ValueId operand = sum(node->operands[0], dtype);
    builder.stamp_like(*node);
    return builder.add_one(node->op, {operand}, node->attributes);
}

bool Products::move_sums_after() {
    for (size_t r = 0; r < edit_.result_count(); r++) {
        const Result result = body_.results[r];
        if (result.argument < 0 || edit_.is_stacked(r)) continue;
        const ValueId carry = body_.arguments[result.argument].value;
        const Node *add = maker(result.value);
        if (add == nullptr || (add->op != "add" && add->op != "add_any") || uses_[carry] != 1 || uses_[result.value] != 1) continue;
        if (std::ranges::count(add->operands, carry) != 1) continue;
        const ValueId term = add->operands[add->operands[0] == carry ? 1 : 0];
        const Dtype dtype = body_.type(carry).dtype;
        if (!is_float(dtype) || !can_sum(term)) continue;
        note(*add, "one sum over all steps after");
        ValueId total = -1;
        edit_.add_after([&] {
            const ValueId summed = sum(term, dtype);
            edit_.builder.stamp_like(*add);
            total = edit_.builder.add_one(add->op, {edit_.operand(result.argument), summed});
        });
        edit_.give(r, total);
        return true;
    }
    return false;
}

/// True if the value is a product with a weight, or computed from one, and nothing else in the loop reads it.
bool Products::is_late(ValueId value) const {
    const Node *node = maker(value);
    if (node == nullptr || uses_[value] != 1 || steps_.is_known(value)) return false;
    std::vector<bool> varies;
    for (const ValueId operand : node->operands) varies.push_back(!is_weight(operand));
    if (!can_batch(edit_.builder.rulebook(), body_, *node, varies)) return false;
    if (node->op == "dot_general")
        return std::ranges::count(varies, true) == 1 && is_large_sum(*node) &&
               bytes_of_steps(node->operands[varies[0] ? 0 : 1]) <= most_bytes;
    const auto is_given = [&](ValueId operand) { return steps_.is_known(operand) || is_late(operand) || has_stack(operand); };
    return std::ranges::any_of(node->operands, [&](ValueId operand) { return is_late(operand); }) &&
           std::ranges::all_of(node->operands, is_given);
}

StepsValue Products::late(ValueId value) {
    if (steps_.is_known(value)) return steps_.before(value);
    if (!is_late(value)) return {edit_.add_stack(value), true};
    std::vector<StepsValue> operands;
    for (const ValueId operand : maker(value)->operands) operands.push_back(late(operand));
    return {add_batched(edit_.builder, body_, *maker(value), length(), operands), true};
}

bool Products::move_results_after() {
    for (size_t r = 0; r < edit_.result_count(); r++) {
        const Result result = body_.results[r];
        if (result.argument >= 0 || edit_.is_stacked(r) || !is_late(result.value)) continue;
        note(*maker(result.value), "computed for all steps after");
        ValueId made = -1;
        edit_.add_after([&] { made = late(result.value).value; });
        edit_.give(r, made);
        return true;
    }
    return false;
}

constexpr bool (Products::*rules[])() = {&Products::move_before, &Products::move_sums_after, &Products::move_results_after};

bool batch(RegionEdit &edit, std::vector<std::string> *notes) {
    if (!edit.runs_all_steps()) return false;
    bool has_changed = false;
    while (split_concatenated_products(edit) || split_sliced_products(edit)) has_changed = true;
    edit.remove_dead_nodes();
    for (bool again = true; again;) {
        again = false;
        for (const auto rule : rules) {
            if (edit.result_count() == 0 || !(Products(edit, notes).*rule)()) continue;
            edit.remove_dead_nodes();
            has_changed = again = true;
        }
    }
    return has_changed;
}

} // namespace

Program batch_products(const Program &program, const Rulebook &rulebook, std::vector<std::string> *notes) {
    if (!has_regions(program)) return program;
    Program made = program;
    for (Node &node : made.nodes)
        rewrite_regions(node, made, [&](const Program &region) { return batch_products(region, rulebook, notes); });
    return edit_regions(made, rulebook, [&](RegionEdit &edit) { return batch(edit, notes); });
}

} // namespace scalide

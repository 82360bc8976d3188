#include "ir/regions.h"
#include "ir/words.h"
#include "transforms/analysis/splice.h"
#include "transforms/differentiate/activity.h"
#include "transforms/differentiate/region_vjps.h"
#include "transforms/differentiate/residuals.h"
#include <algorithm>

namespace scalide {

namespace {

using Values = std::vector<ValueId>;

/// The gradient of a scan: a scan over the same elements in the opposite order. It carries the cotangents of the carries and the sums of
/// the cotangents of captures, and stacks the cotangents of the elements.
class ScanVjp {
public:
    ScanVjp(Builder &builder, size_t index, const Node &scan, const Values &cts, const std::vector<bool> &active)
        : builder_(builder), index_(index), node_(scan), view_(node_), cts_(cts), active_(active),
          length_(node_.attributes.at("length").integer), remat_(has_flag(node_, "remat")), body_(differentiated()),
          plan_(plan_residuals(body_, remat_)), step_(empty_region(body_.program)), copies_(body_.program, step_) {
        for (int i = 0; i < view_.leading; i++) operands_.push_back(node_.operands[static_cast<size_t>(i)]);
    }

    Values take() {
        add_cotangents();
        add_residuals();
        for (const size_t i : plan_.recomputed) copies_.add(body_.program.nodes[i]);
        for (size_t i = body_.first_node; i < body_.program.nodes.size(); i++) copies_.add(body_.program.nodes[i]);
        return append_backward();
    }

private:
    Program &program() { return builder_.program(); }
    ValueId operand(size_t argument) const { return node_.operands[static_cast<size_t>(view_.operands[argument])]; }

    BodyVjp differentiated() {
        std::vector<bool> has_ct;
        for (const ValueId ct : cts_) has_ct.push_back(ct >= 0);
        std::vector<bool> results = reached_results(node_, builder_.rulebook(), active_), arguments;
        const std::vector<bool> needed = needed_operands(node_, has_ct).results;
        for (size_t i = 0; i < results.size(); i++) results[i] = results[i] && needed[i];
        for (size_t i = 0; i < view_.operands.size(); i++) {
            const bool is_active = view_.operands[i] >= 0 && active_[static_cast<size_t>(view_.operands[i])];
            arguments.push_back(view_.carries[i] >= 0 ? results[static_cast<size_t>(view_.carries[i])] : is_active);
        }
        return differentiate_body(open_region(node_.regions[0], program()), builder_.rulebook(), results, arguments);
    }

    /// Gives the step an argument that takes `operand`.
    void add_argument(ValueId value, ValueId operand, Supply supply, bool inout = false) {
        copies_.add_argument(value, supply, inout);
        if (supply != Supply::step) operands_.push_back(operand);
    }

    void add_cotangents() {
        for (size_t r = 0; r < cts_.size(); r++) {
            const ValueId inner = body_.cotangents[r];
            const bool is_carry = static_cast<int>(r) < view_.carry_count;
            if (inner < 0) continue;
            const ValueId outer = cts_[r] >= 0 ? cts_[r] : append_zeros(builder_, body_.program.type(inner));
            add_argument(inner, outer, is_carry ? Supply::run : Supply::each, is_carry);
        }
    }

    void add_residuals() {
        for (size_t i = 0; i < body_.program.arguments.size(); i++) {
            const Argument &argument = body_.program.arguments[i];
            if (std::ranges::count(plan_.arguments, argument.value) == 0) continue;
            const ValueId outer = argument.supply == Supply::step ? -1 : operand(i);
            add_argument(argument.value, outer, argument.supply);
        }
        const Values stacks = stack_residuals(), invariants = append_invariants();
        for (size_t i = 0; i < stacks.size(); i++) add_argument(plan_.stacks[i], stacks[i], Supply::each);
        for (size_t i = 0; i < invariants.size(); i++) add_argument(plan_.invariants[i], invariants[i], Supply::run);
    }

    /// Makes the loop stack the residuals, unless it does already. Returns the stacks.
    Values stack_residuals() {
        Program body = remat_ ? open_region(node_.regions[0], program()) : body_.program;
        if (!remat_) body.nodes.resize(body_.first_node);
        Node forward = node_;
        Values stacks;
        for (const ValueId value : plan_.stacks) {
            if (body.type(value).dtype == Dtype::f64)
                throw UserError({node_.location, subject_of(node_.op, body.value_name(value)),
                                 "a carry that a gradient reads must not be f64, because the loop stacks it", to_string(body.type(value)),
                                 "Carry it in f32"});
            const auto is_same = [&](const Result &result) { return result.argument < 0 && result.value == value; };
            const auto found = std::ranges::find_if(body.results, is_same) - body.results.begin();
            if (found == static_cast<ptrdiff_t>(body.results.size())) {
                add_result(body, "residual", value);
                forward.results.push_back(add_value(program(), "residual", stacked(body.type(value), length_)));
            }
            stacks.push_back(forward.results[static_cast<size_t>(found)]);
        }
        forward.regions = {finish_region(std::move(body))};
        program().nodes[index_] = std::move(forward);
        return stacks;
    }

    /// Computes what depends only on captures once. Returns the values.
    Values append_invariants() {
        if (plan_.invariants.empty()) return {};
        Program once = body_.program;
        Node call = node_;
        call.operands.clear();
        std::erase_if(once.arguments, [&](const Argument &argument) { return !is_capture(argument); });
        for (size_t i = 0; i < body_.program.arguments.size(); i++)
            if (is_capture(body_.program.arguments[i])) call.operands.push_back(operand(i));
        once.nodes.resize(body_.first_node);
        std::erase_if(once.nodes, [&](const Node &node) { return !plan_.invariant_values[node.results[0]]; });
        once.results.clear();
        for (const ValueId value : plan_.invariants) add_result(once, "invariant", value);
        return append_body(program(), *finish_region(std::move(once)), call);
    }

    /// Appends the scan whose steps are complete but for their results.
    Values append_backward() {
        Builder step(builder_.rulebook(), step_);
        step.stamp_like({.op = "", .role = Role::cotangent, .location = node_.location});
        std::vector<size_t> order; // the argument whose cotangent each result is
        for (size_t i = 0; i < view_.carries.size(); i++)
            if (const int carry = view_.carries[i]; carry >= 0 && body_.cotangents[static_cast<size_t>(carry)] >= 0) {
                const ValueId before = copies_[body_.cotangents[static_cast<size_t>(carry)]], made = body_.gradients[i];
                add_carry(before, made >= 0 ? copies_[made] : append_zeros(step, step.type(before)));
                order.push_back(i);
            }
        for (const bool is_element : {false, true})
            for (size_t i = 0; i < body_.gradients.size(); i++) {
                const Argument &argument = body_.program.arguments[i];
                if (body_.gradients[i] < 0 || argument.inout || is_capture(argument) == is_element) continue;
                const std::string name = "ct_" + body_.program.value_name(argument.value);
                const ValueId made = copies_[body_.gradients[i]];
                if (is_element)
                    add_result(step_, name, made);
                else
                    add_sum(step, name, made);
                order.push_back(i);
            }
        return by_operand(append_node(), order);
    }

    /// Makes `after` the new value of a carry.
    void add_carry(ValueId before, ValueId after) {
        const auto argument = std::ranges::find(step_.arguments, before, &Argument::value) - step_.arguments.begin();
        step_.results.push_back({step_.value_name(before), after, false, static_cast<int>(argument)});
    }

    /// Adds a carry that sums the cotangents of a capture. Low precision would lose small cotangents in a large sum.
    void add_sum(Builder &step, const std::string &name, ValueId made) {
        Type type = step.type(made);
        if (is_narrow(type.dtype)) type.dtype = Dtype::f32;
        const ValueId before = add_value(step_, name, type);
        step_.arguments.push_back({.value = before, .inout = true, .location = {}});
        operands_.push_back(append_zeros(builder_, type));
        add_carry(before, step.add_one("add", {before, step.convert(made, type.dtype)}));
    }

    Values append_node() {
        Node backward = node_;
        backward.role = Role::cotangent;
        backward.operands = operands_;
        const bool is_reverse = has_flag(node_, "reverse");
        backward.attributes.erase("reverse");
        if (!is_reverse) backward.attributes["reverse"] = "true";
        std::vector<Type> types;
        for (const Result &result : step_.results)
            types.push_back(result.argument >= 0 ? step_.type(result.value) : stacked(step_.type(result.value), length_));
        if (types.empty()) return {};
        backward.regions = {finish_region(std::move(step_))};
        return add_node(program(), std::move(backward), types);
    }

    /// Returns the result for each operand of the loop that has one.
    Values by_operand(const Values &made, const std::vector<size_t> &order) const {
        Values cotangents(node_.operands.size(), -1);
        for (size_t r = 0; r < made.size(); r++) {
            const auto place = static_cast<size_t>(view_.operands[order[r]]);
            if (active_[place]) cotangents[place] = made[r];
        }
        return cotangents;
    }

    Builder &builder_;
    size_t index_;
    Node node_;
    LoopView view_;
    const Values &cts_;
    const std::vector<bool> &active_;
    Extent length_;
    bool remat_;
    BodyVjp body_;
    ResidualPlan plan_;
    Program step_; ///< the body of the gradient
    NodeCopies copies_;
    Values operands_; ///< of the gradient
};

} // namespace

std::vector<ValueId> append_scan_vjp(Builder &builder, size_t index, const Node &scan, const std::vector<ValueId> &cts,
                                     const std::vector<bool> &active) {
    return ScanVjp(builder, index, scan, cts, active).take();
}

} // namespace scalide

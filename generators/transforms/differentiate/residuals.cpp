#include "transforms/differentiate/residuals.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

class ResidualPlanner {
public:
    ResidualPlanner(const BodyVjp &body, bool remat)
        : program_(body.program), remat_(remat), producers_(producers(program_)), is_seen_(program_.values.size(), false),
          is_recomputed_(body.first_node, false) {
        plan_.invariant_values = invariant_values(body.first_node);
        for (const ValueId value : body.residuals()) take(value);
        for (size_t i = 0; i < is_recomputed_.size(); i++)
            if (is_recomputed_[i]) plan_.recomputed.push_back(i);
    }

    ResidualPlan plan() { return std::move(plan_); }

private:
    const Argument *argument_of(ValueId value) const {
        const auto found = std::ranges::find(program_.arguments, value, &Argument::value);
        return found == program_.arguments.end() ? nullptr : &*found;
    }
    /// True for an argument that the gradient can take again.
    bool is_at_hand(ValueId value) const {
        const Argument *argument = argument_of(value);
        return argument != nullptr && !argument->inout;
    }

    std::vector<bool> invariant_values(size_t primal_nodes) const {
        std::vector<bool> is_invariant(program_.values.size(), false);
        for (const Argument &argument : program_.arguments)
            is_invariant[argument.value] = !argument.inout && argument.supply == Supply::run;
        for (size_t i = 0; i < primal_nodes; i++) {
            const Node &node = program_.nodes[i];
            if (std::ranges::all_of(node.operands, [&](ValueId operand) { return is_invariant[operand]; }))
                for (const ValueId result : node.results) is_invariant[result] = true;
        }
        return is_invariant;
    }

    void take(ValueId value) {
        if (is_seen_[value]) return;
        is_seen_[value] = true;
        if (const Argument *argument = argument_of(value)) return (argument->inout ? plan_.stacks : plan_.arguments).push_back(value);
        const auto index = static_cast<size_t>(producers_[value]);
        const Node &node = program_.nodes[index];
        const bool can_stack = program_.type(value).dtype != Dtype::f64; // f64 values are scalars
        if (!remat_ && can_stack && !is_cheap(node))
            return (plan_.invariant_values[value] ? plan_.invariants : plan_.stacks).push_back(value);
        is_recomputed_[index] = true;
        for (const ValueId operand : node.operands) take(operand);
    }

    /// True for constants, and for movement whose operand is at hand or is not larger than its result.
    bool is_cheap(const Node &node) const {
        if (node.operands.empty()) return node.regions.empty();
        if (moves_one_array(node) || node.op == "convert_element_type") {
            static constexpr std::string_view keep_size[] = {"broadcast_in_dim", "reshape", "transpose", "rev"};
            return is_at_hand(node.operands[0]) || std::ranges::count(keep_size, node.op) > 0;
        }
        return false;
    }

    const Program &program_;
    bool remat_;
    std::vector<int> producers_;
    std::vector<bool> is_seen_, is_recomputed_;
    ResidualPlan plan_;
};

} // namespace

ResidualPlan plan_residuals(const BodyVjp &body, bool remat) { return ResidualPlanner(body, remat).plan(); }

} // namespace scalide

#include "transforms/analysis/splice.h"
#include "transforms/differentiate/body_vjp.h"
#include "transforms/differentiate/region_vjps.h"
#include <algorithm>

namespace scalide {

namespace {

using Values = std::vector<ValueId>;

/// The gradient of a branch: a branch with the same index, in which each region computes its primal values again, and from them the
/// cotangents of its arguments. Nothing is stored but the operands, and untaken branches stay without effect.
class BranchVjp {
public:
    BranchVjp(Builder &builder, const Node &node, const Values &cts, const std::vector<bool> &active)
        : builder_(builder), node_(node), cts_(cts), active_(active.begin() + 1, active.end()) {}

    Values take() {
        for (const Region &region : node_.regions) branches_.push_back(differentiated(region));
        for (size_t i = 0; i < active_.size(); i++) {
            const bool is_zero = std::ranges::all_of(branches_, [&](const BodyVjp &branch) { return branch.gradients[i] < 0; });
            if (!is_zero) order_.push_back(i);
        }
        Values cotangents(node_.operands.size(), -1);
        const Values made = order_.empty() ? Values() : append_backward();
        for (size_t i = 0; i < made.size(); i++) cotangents[order_[i] + 1] = made[i];
        return cotangents;
    }

private:
    BodyVjp differentiated(const Region &region) {
        std::vector<bool> results;
        for (const ValueId ct : cts_) results.push_back(ct >= 0);
        return differentiate_body(open_region(region, builder_.program()), builder_.rulebook(), results, active_);
    }

    Program backward(const BodyVjp &branch) const {
        Program program = empty_region(branch.program);
        NodeCopies copies(branch.program, program);
        for (const Argument &argument : branch.program.arguments) copies.add_argument(argument.value);
        for (const ValueId ct : branch.cotangents)
            if (ct >= 0) copies.add_argument(ct);
        for (const Node &node : branch.program.nodes) copies.add(node);
        Builder builder(builder_.rulebook(), program);
        builder.stamp_like({.op = "", .role = Role::cotangent, .location = node_.location});
        for (const size_t i : order_) {
            const ValueId argument = branch.program.arguments[i].value, made = branch.gradients[i];
            const ValueId gradient = made >= 0 ? copies[made] : append_zeros(builder, branch.program.type(argument));
            add_result(program, "ct_" + branch.program.value_name(argument), gradient);
        }
        return program;
    }

    Values append_backward() {
        std::vector<Program> programs;
        for (const BodyVjp &branch : branches_) programs.push_back(backward(branch));
        Values operands(node_.operands.begin() + 1, node_.operands.end());
        for (const ValueId ct : cts_)
            if (ct >= 0) operands.push_back(ct);
        remove_unused(programs, operands);
        Node node = node_;
        node.role = Role::cotangent;
        node.operands.resize(1);
        std::ranges::move(operands, std::back_inserter(node.operands));
        node.regions.clear();
        std::vector<Type> types;
        for (const Result &result : programs[0].results) types.push_back(programs[0].type(result.value));
        for (Program &program : programs) node.regions.push_back(finish_region(std::move(program)));
        return add_node(builder_.program(), std::move(node), types);
    }

    /// Removes the arguments that no branch uses, and their operands.
    static void remove_unused(std::vector<Program> &programs, Values &operands) {
        std::vector<bool> is_used(operands.size(), false);
        for (const Program &program : programs) {
            std::vector<bool> marked(program.values.size(), false);
            for (const Result &result : program.results) marked[result.value] = true;
            mark_sources(program, marked);
            for (size_t i = 0; i < is_used.size(); i++)
                if (marked[program.arguments[i].value]) is_used[i] = true;
        }
        for (size_t i = operands.size(); i-- > 0;) {
            if (is_used[i]) continue;
            operands.erase(operands.begin() + static_cast<ptrdiff_t>(i));
            for (Program &program : programs) program.arguments.erase(program.arguments.begin() + static_cast<ptrdiff_t>(i));
        }
    }

    Builder &builder_;
    const Node &node_;
    const Values &cts_;
    std::vector<bool> active_; ///< of the arguments
    std::vector<BodyVjp> branches_;
    std::vector<size_t> order_; ///< the arguments with a cotangent
};

} // namespace

std::vector<ValueId> append_branch_vjp(Builder &builder, const Node &node, const std::vector<ValueId> &cts,
                                       const std::vector<bool> &active) {
    return BranchVjp(builder, node, cts, active).take();
}

} // namespace scalide

#include "lower/kernel.h"
#include "lower/running_sums.h"
#include <utility>
#include <vector>

namespace scalide {

namespace {

namespace ir = Halide::Internal;

// Halide 21 (CodeGen_LLVM::add_tbaa_metadata) fails an assertion on vector loads from a known place below 0, which masked loads of short
// lines may have: their last lanes, in reverse order. A place with a name is not known.
class NamedPlaces : public ir::IRMutator {
    using IRMutator::visit;

    Halide::Expr visit(const ir::Load *load) override {
        const auto *ramp = load->index.as<ir::Ramp>();
        const auto first = ramp ? ir::as_const_int(ramp->base) : std::nullopt,
                   stride = ramp ? ir::as_const_int(ramp->stride) : std::nullopt;
        if (!first || !stride || std::min(*first, *first + (ramp->lanes - 1) * *stride) >= 0) return IRMutator::visit(load);
        const std::string name = ir::unique_name("place");
        const Halide::Expr index = ir::Ramp::make(ir::Variable::make(ramp->base.type(), name), ramp->stride, ramp->lanes);
        return ir::Let::make(
            name, ramp->base,
            ir::Load::make(load->type, load->name, index, load->image, load->param, mutate(load->predicate), load->alignment));
    }
};

// When a name is used: the conditions of if_then_else around each use.
class Uses : public ir::IRVisitor {
public:
    explicit Uses(const std::string &name) : name_(name) {}
    bool has_unguarded = false;
    /// Holds where any of the uses is reached; undefined without uses. Of names that stand where `name` is made.
    Halide::Expr condition;
    bool is_condition_known = true;

private:
    using IRVisitor::visit;

    void visit(const ir::Variable *variable) override {
        if (variable->name != name_) return;
        if (conditions_.empty()) return void(has_unguarded = true);
        Halide::Expr all = conditions_[0];
        for (size_t i = 1; i < conditions_.size(); i++) all = all && conditions_[i];
        for (const std::string &inner : inner_) is_condition_known = is_condition_known && !ir::expr_uses_var(all, inner);
        condition = condition.defined() && !ir::equal(condition, all) ? condition || all : all;
    }
    void visit(const ir::Call *call) override {
        if (!call->is_intrinsic(ir::Call::if_then_else)) return IRVisitor::visit(call);
        const auto *broadcast = call->args[0].as<ir::Broadcast>();
        const Halide::Expr condition = broadcast ? broadcast->value : call->args[0];
        is_condition_known = is_condition_known && condition.type().is_scalar();
        call->args[0].accept(this);
        call->args[2].accept(this);
        conditions_.push_back(condition);
        call->args[1].accept(this);
        conditions_.pop_back();
    }
    /// What a let is made of is used where the let is.
    template<typename Let>
    void enter(const Let *let) {
        Uses later(let->name);
        if (ir::expr_uses_var(let->value, name_)) let->body.accept(&later);
        is_condition_known = is_condition_known && later.is_condition_known;
        const bool is_guarded = !later.has_unguarded && later.condition.defined();
        if (is_guarded) conditions_.push_back(later.condition);
        let->value.accept(this);
        if (is_guarded) conditions_.pop_back();
        inner_.push_back(let->name);
        let->body.accept(this);
        inner_.pop_back();
    }
    void visit(const ir::Let *let) override { enter(let); }
    void visit(const ir::LetStmt *let) override { enter(let); }
    void visit(const ir::For *loop) override {
        inner_.push_back(loop->name);
        IRVisitor::visit(loop);
        inner_.pop_back();
    }

    const std::string &name_;
    std::vector<Halide::Expr> conditions_;
    std::vector<std::string> inner_; ///< names of loops and lets
};

bool is_argument(const ir::Load *load) { return load->name.starts_with(argument_prefix); }

// Reads arguments where the condition holds.
class Guard : public ir::IRMutator {
public:
    explicit Guard(Halide::Expr condition) : condition_(std::move(condition)) {}

private:
    using IRMutator::visit;

    Halide::Expr visit(const ir::Load *load) override {
        if (!is_argument(load)) return IRMutator::visit(load);
        const int lanes = load->type.lanes();
        const Halide::Expr condition = lanes == 1 ? condition_ : ir::Broadcast::make(condition_, lanes);
        return ir::Call::make(load->type, ir::Call::if_then_else, {condition, load, ir::make_zero(load->type)}, ir::Call::PureIntrinsic);
    }

    Halide::Expr condition_;
};

// What if_then_else guards must be read behind the condition: an empty array has nothing to read. Halide 21 takes an expression that
// several of them have out of all, in front of the conditions; there it gets the condition itself. Where that is not known yet, the
// expression goes back to where it is used. Arguments alone: nobody writes them meanwhile.
class GuardedReads : public ir::IRMutator {
    using IRMutator::visit;

    Halide::Expr visit(const ir::Load *load) override {
        reads_ = reads_ || is_argument(load);
        return IRMutator::visit(load);
    }

    template<typename Let, typename Body>
    Body guard(const Let *let) {
        const bool around = std::exchange(reads_, false);
        const Halide::Expr value = mutate(let->value);
        const bool is_reading = std::exchange(reads_, around);
        const Body body = mutate(let->body);
        Uses uses(let->name);
        if (is_reading) body.accept(&uses);
        if (!is_reading || uses.has_unguarded || !uses.condition.defined()) return Let::make(let->name, value, body);
        return uses.is_condition_known ? Let::make(let->name, Guard(uses.condition).mutate(value), body)
                                       : ir::substitute(let->name, value, body);
    }

    Halide::Expr visit(const ir::Let *let) override { return guard<ir::Let, Halide::Expr>(let); }
    ir::Stmt visit(const ir::LetStmt *let) override { return guard<ir::LetStmt, ir::Stmt>(let); }

    bool reads_ = false; ///< what has been visited reads an argument itself
};

} // namespace

Halide::Pipeline to_pipeline(const LoweredKernel &kernel) {
    std::vector<Halide::Func> funcs;
    for (const KernelOutput &output : kernel.outputs) funcs.push_back(output.func);
    Halide::Pipeline pipeline(funcs);
    pipeline.add_custom_lowering_pass(new GuardedReads); // the pipeline owns its passes
    pipeline.add_custom_lowering_pass(new NamedPlaces);
    const auto running = kernel.stages.find("running");
    if (running != kernel.stages.end()) {
        for (const Halide::Func &sums : running->second) keep_running_sums(pipeline, sums);
    }
    return pipeline;
}

} // namespace scalide

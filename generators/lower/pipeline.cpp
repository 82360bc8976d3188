#include "lower/kernel.h"
#include "lower/running_sums.h"
#include <set>
#include <utility>

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

// True where a name stands outside of what a condition guards.
class OutsideOfGuards : public ir::IRGraphVisitor {
public:
    explicit OutsideOfGuards(const std::string &name) : name_(name) {}
    bool is_used = false;

private:
    using IRGraphVisitor::visit;

    void visit(const ir::Variable *variable) override { is_used = is_used || variable->name == name_; }
    void visit(const ir::Call *call) override {
        if (!call->is_intrinsic(ir::Call::if_then_else)) return IRGraphVisitor::visit(call);
        include(call->args[0]);
        include(call->args[2]);
    }

    const std::string &name_;
};

// What if_then_else guards must be read behind the condition: an empty array has nothing to read. Halide 21 takes an expression that
// several of them have out of all, in front of the conditions; it goes back to where it is used. Arguments alone: nobody writes them
// meanwhile.
class GuardedReads : public ir::IRMutator {
    using IRMutator::visit;

    Halide::Expr visit(const ir::Load *load) override {
        reads_ = reads_ || load->name.starts_with(argument_prefix);
        return IRMutator::visit(load);
    }
    Halide::Expr visit(const ir::Variable *variable) override {
        reads_ = reads_ || reading_.contains(variable->name);
        return variable;
    }

    template<typename Let, typename Body>
    Body put_back(const Let *let) {
        const bool around = std::exchange(reads_, false);
        const Halide::Expr value = mutate(let->value);
        const bool is_reading = reads_;
        if (is_reading) reading_.insert(let->name);
        const Body body = mutate(let->body);
        reading_.erase(let->name);
        reads_ = reads_ || around;
        OutsideOfGuards outside(let->name);
        if (is_reading) body.accept(&outside);
        return is_reading && !outside.is_used ? ir::substitute(let->name, value, body) : Let::make(let->name, value, body);
    }

    Halide::Expr visit(const ir::Let *let) override { return put_back<ir::Let, Halide::Expr>(let); }
    ir::Stmt visit(const ir::LetStmt *let) override { return put_back<ir::LetStmt, ir::Stmt>(let); }

    std::set<std::string> reading_; ///< names of what reads an argument
    bool reads_ = false;            ///< what has been visited does
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

#include "lower/halide/amx_tiles.h"
#include "lower/halide/bf16_pairs.h"
#include "lower/lower.h"
#include "lower/rows/running_sums.h"
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace scalide {

namespace {

namespace ir = Halide::Internal;

// Halide 21 (CodeGen_LLVM::add_tbaa_metadata) fails an assertion for vector loads at a constant index below 0. Masked loads of short lines
// in reverse order may have such an index in their last lanes. A named index is not a constant.
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

// If an update reads a result, Halide 21 assumes that the result's memory is aligned to whole vectors, as its own memory is. CodeGen_LLVM
// knows the parameter of a store, but not of such a load. An application's array is aligned only to its elements.
class UnalignedResults : public ir::IRMutator {
public:
    explicit UnalignedResults(std::set<std::string> results) : results_(std::move(results)) {}

private:
    using IRMutator::visit;

    Halide::Expr visit(const ir::Load *load) override {
        const Halide::Expr inner = IRMutator::visit(load);
        if (!results_.contains(load->name)) return inner;
        const auto *read = inner.as<ir::Load>();
        return ir::Load::make(read->type, read->name, read->index, read->image, read->param, read->predicate, ir::ModulusRemainder());
    }

    std::set<std::string> results_; ///< names of the results' buffers
};

/// The uses of a let's name. The if_then_else conditions around a use are combined by `and`, and those of several uses by `or`.
struct Uses {
    int depth = 0; ///< number of enclosing lets and loops
    bool has_unguarded = false, is_condition_known = true;
    Halide::Expr condition; ///< true whenever a use is reached; undefined without uses
    bool is_guarded() const { return !has_unguarded && condition.defined(); }
};

/// Finds the uses of each let in one pass. Bodies are visited before values, because a let's value is used exactly where its name is used.
class FindUses : public ir::IRVisitor {
public:
    std::map<const ir::IRNode *, Uses> uses;

private:
    using IRVisitor::visit;

    struct Condition {
        Halide::Expr holds;
        int depth; ///< depth of the innermost name in it
    };

    void visit(const ir::Variable *variable) override {
        const auto found = named_.find(variable->name);
        if (found == named_.end() || found->second.empty()) return;
        Uses &used = *found->second.back();
        if (conditions_.empty()) return void(used.has_unguarded = true);
        Halide::Expr all;
        for (const Condition &condition : conditions_) {
            used.is_condition_known = used.is_condition_known && condition.depth < used.depth;
            all = all.defined() ? all && condition.holds : condition.holds;
        }
        used.condition = used.condition.defined() && !ir::equal(used.condition, all) ? used.condition || all : all;
    }
    void visit(const ir::Call *call) override {
        if (!call->is_intrinsic(ir::Call::if_then_else)) return IRVisitor::visit(call);
        const auto *broadcast = call->args[0].as<ir::Broadcast>();
        const Halide::Expr condition = broadcast ? broadcast->value : call->args[0];
        call->args[0].accept(this);
        call->args[2].accept(this);
        conditions_.push_back({condition, condition.type().is_scalar() ? depth_of(condition) : std::numeric_limits<int>::max()});
        call->args[1].accept(this);
        conditions_.pop_back();
    }
    template<typename Let>
    void enter(const Let *let) {
        Uses &used = uses[let];
        used.depth = ++depth_;
        named_[let->name].push_back(&used);
        let->body.accept(this);
        named_[let->name].pop_back();
        depth_--;
        if (used.is_guarded()) conditions_.push_back({used.condition, used.is_condition_known ? depth_of(used.condition) : used.depth});
        let->value.accept(this);
        if (used.is_guarded()) conditions_.pop_back();
    }
    void visit(const ir::Let *let) override { enter(let); }
    void visit(const ir::LetStmt *let) override { enter(let); }
    void visit(const ir::For *loop) override {
        Uses none;
        none.depth = ++depth_;
        named_[loop->name].push_back(&none);
        IRVisitor::visit(loop);
        named_[loop->name].pop_back();
        depth_--;
    }

    int depth_of(const Halide::Expr &condition) const {
        int depth = 0;
        for (const auto &[name, bound] : named_)
            if (!bound.empty() && bound.back()->depth > depth && ir::expr_uses_var(condition, name)) depth = bound.back()->depth;
        return depth;
    }

    std::map<std::string, std::vector<Uses *>> named_;
    std::vector<Condition> conditions_;
    int depth_ = 0;
};

bool is_argument(const ir::Load *load) { return load->name.starts_with(argument_prefix); }

// Makes reads of arguments conditional.
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

// Values guarded by if_then_else must be read only if the condition holds, because an empty array has nothing to read. If several branches
// share an expression, Halide 21 moves it before all conditions. This pass gives the expression the condition itself. If the condition is
// not known there yet, the expression is moved back to its uses. This is correct for reads of arguments, because nothing writes them
// meanwhile.
class GuardedReads : public ir::IRMutator {
public:
    using IRMutator::mutate;

    ir::Stmt mutate(const ir::Stmt &statement) override {
        if (is_inside_) return IRMutator::mutate(statement);
        found_ = FindUses();
        statement.accept(&found_);
        is_inside_ = true;
        ir::Stmt result = IRMutator::mutate(statement);
        is_inside_ = false;
        return result;
    }

private:
    using IRMutator::visit;

    Halide::Expr visit(const ir::Load *load) override {
        reads_ = reads_ || is_argument(load);
        return IRMutator::visit(load);
    }
    Halide::Expr visit(const ir::Variable *variable) override {
        reads_moved_ = reads_moved_ || moved_.contains(variable->name);
        return variable;
    }

    template<typename Let, typename Body>
    Body guard(const Let *let) {
        const bool reads_around = std::exchange(reads_, false), reads_moved_around = std::exchange(reads_moved_, false);
        const Halide::Expr value = IRMutator::mutate(let->value);
        const bool reads = std::exchange(reads_, reads_around), reads_moved = std::exchange(reads_moved_, reads_moved_around);
        const Uses &used = found_.uses[let];
        if (!(reads || reads_moved) || !used.is_guarded()) return Let::make(let->name, value, mutate(let->body));
        if (used.is_condition_known && !reads_moved) return Let::make(let->name, Guard(used.condition).mutate(value), mutate(let->body));
        moved_.insert(let->name);
        const Body body = mutate(let->body);
        moved_.erase(let->name);
        return ir::substitute(let->name, value, body);
    }

    Halide::Expr visit(const ir::Let *let) override { return guard<ir::Let, Halide::Expr>(let); }
    ir::Stmt visit(const ir::LetStmt *let) override { return guard<ir::LetStmt, ir::Stmt>(let); }

    FindUses found_;
    bool is_inside_ = false;      ///< within the statement for which mutate() was called
    bool reads_ = false;          ///< the visited expression reads an argument
    bool reads_moved_ = false;    ///< the visited expression uses a moved value
    std::set<std::string> moved_; ///< names of values that are moved back to their uses
};

// A kernel without result elements does nothing. Halide 21 may move the last iteration out of a loop. It then executes this iteration even
// if the loop is empty (for example in a scan of no padded rows).
class SkipEmpty : public ir::IRMutator {
public:
    explicit SkipEmpty(Halide::Expr has_elements) : has_elements_(std::move(has_elements)) {}

    ir::Stmt mutate(const ir::Stmt &kernel) override { return ir::IfThenElse::make(has_elements_, kernel); }

private:
    Halide::Expr has_elements_;
};

/// Returns whether a result has elements. Undefined if a result always has some.
Halide::Expr has_elements(const LoweredKernel &kernel) {
    Halide::Expr any;
    for (const Result &result : kernel.program.results) {
        Halide::Expr all;
        for (const Extent &extent : kernel.program.type(result.value).shape) {
            if (extent.is_static() && extent.value() > 0) continue;
            const Halide::Expr some = to_expr(extent, kernel) > 0;
            all = all.defined() ? all && some : some;
        }
        if (!all.defined()) return {};
        any = any.defined() ? any || all : all;
    }
    return any;
}

std::set<std::string> buffers_of_results(const LoweredKernel &kernel) {
    std::set<std::string> names;
    for (const KernelOutput &output : kernel.outputs)
        for (const Halide::OutputImageParam &buffer : output.func.output_buffers()) names.insert(buffer.name());
    return names;
}

} // namespace

Halide::Pipeline to_pipeline(const LoweredKernel &kernel) {
    std::vector<Halide::Func> funcs;
    for (const KernelOutput &output : kernel.outputs) funcs.push_back(output.func);
    Halide::Pipeline pipeline(funcs);
    pipeline.add_custom_lowering_pass(amx_tiles_pass()); // the pipeline owns its passes
    pipeline.add_custom_lowering_pass(bf16_pairs_pass());
    pipeline.add_custom_lowering_pass(new GuardedReads);
    if (const Halide::Expr some = has_elements(kernel); some.defined()) pipeline.add_custom_lowering_pass(new SkipEmpty(some));
    pipeline.add_custom_lowering_pass(new NamedPlaces);
    pipeline.add_custom_lowering_pass(new UnalignedResults(buffers_of_results(kernel)));
    const auto *row = std::get_if<RowStages>(&kernel.stages);
    if (row && row->sums.running.defined()) keep_running_sums(pipeline, row->sums.running);
    return pipeline;
}

} // namespace scalide

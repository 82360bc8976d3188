#include "kernels/checked_accesses.h"
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace scalide {

namespace {

namespace ir = Halide::Internal;
using Halide::Expr;

std::mutex mutex;
std::string wrong_access;

Expr both(const Expr &a, const Expr &b) { return !a.defined() ? b : !b.defined() ? a : a && b; }

/// Over all lanes.
Expr reduced(ir::VectorReduce::Operator op, const Expr &value) {
    return value.type().is_scalar() ? value : ir::VectorReduce::make(op, value, 1);
}

class CheckAccesses : public ir::IRMutator {
public:
    CheckAccesses(std::map<std::string, Expr> counts, std::map<std::string, int> bytes)
        : counts_(std::move(counts)), bytes_(std::move(bytes)) {}

private:
    using IRMutator::visit;

    /// Calls scalide_check_access.
    Expr check(const std::string &name, const Expr &index, const Expr &predicate) {
        const auto count = counts_.find(name);
        if (count == counts_.end()) throw std::runtime_error("an access of " + name + ", whose extents are not known");
        Expr mask = ir::is_const_one(predicate) ? Expr() : predicate, least = index, most = index;
        if (mask_.defined() && mask_.type().lanes() == index.type().lanes()) mask = both(mask, mask_);
        if (mask.defined()) {
            const auto constant = [&](int value) { return ir::make_const(index.type(), value); };
            least = Halide::select(mask, index, constant(std::numeric_limits<int>::max()));
            most = Halide::select(mask, index, constant(std::numeric_limits<int>::min()));
        }
        return ir::Call::make(Halide::Int(32), "scalide_check_access",
                              {name, count->second, reduced(ir::VectorReduce::Min, least), reduced(ir::VectorReduce::Max, most)},
                              ir::Call::Extern);
    }

    Expr visit(const ir::Load *load) override {
        const Expr checked = IRMutator::visit(load);
        const auto *inner = checked.as<ir::Load>();
        return ir::Call::make(checked.type(), ir::Call::return_second, {check(inner->name, inner->index, inner->predicate), checked},
                              ir::Call::PureIntrinsic);
    }
    ir::Stmt visit(const ir::Store *store) override {
        const ir::Stmt checked = IRMutator::visit(store);
        const auto *inner = checked.as<ir::Store>();
        return ir::Block::make(ir::Evaluate::make(check(inner->name, inner->index, inner->predicate)), checked);
    }

    /// Of a vector condition, the lanes for which it holds read the one choice, the others the other one.
    Expr visit(const ir::Call *call) override {
        if (!call->is_intrinsic(ir::Call::if_then_else) || call->args[0].type().is_scalar()) return IRMutator::visit(call);
        std::vector<Expr> arguments = {mutate(call->args[0])};
        for (size_t choice = 1; choice < call->args.size(); choice++) {
            const Expr around = std::exchange(mask_, both(mask_, choice == 1 ? call->args[0] : !call->args[0]));
            arguments.push_back(mutate(call->args[choice]));
            mask_ = around;
        }
        return ir::Call::make(call->type, call->name, arguments, call->call_type);
    }

    ir::Stmt visit(const ir::Allocate *allocate) override {
        Expr count = 1;
        for (const Expr &extent : allocate->extents) count *= extent;
        count *= allocate->type.lanes();
        bytes_[allocate->name] = allocate->type.element_of().bytes();
        counts_[allocate->name] = count + allocate->padding; // elements after a temporary that strided reads may touch
        return IRMutator::visit(allocate);
    }

    /// A tile of AMX (generators/lower/halide/amx_tiles.cpp) has `rows` rows of `columns` bytes, at a pointer, an offset and a stride.
    Expr check_tile(const ir::Call *call) const {
        const std::string name = call->args[2].as<ir::Variable>()->name;
        const auto count = counts_.find(name);
        if (count == counts_.end()) throw std::runtime_error("a tile of " + name + ", whose extents are not known");
        const auto number = [](const Expr &e) { return Halide::cast<int>(e); };
        const Expr first = number(call->args[3]), last = first + (number(call->args[0]) - 1) * number(call->args[4]);
        return ir::Call::make(Halide::Int(32), "scalide_check_access",
                              {name + " in bytes", count->second * bytes_.at(name), Halide::min(first, last),
                               Halide::max(first, last) + number(call->args[1]) - 1},
                              ir::Call::Extern);
    }
    ir::Stmt visit(const ir::LetStmt *let) override {
        const ir::Stmt checked = IRMutator::visit(let);
        const auto *call = let->value.as<ir::Call>();
        return call && call->name == "tile_load" ? ir::Block::make(ir::Evaluate::make(check_tile(call)), checked) : checked;
    }
    ir::Stmt visit(const ir::Evaluate *evaluate) override {
        const ir::Stmt checked = IRMutator::visit(evaluate);
        const auto *call = evaluate->value.as<ir::Call>();
        return call && call->name == "tile_store" ? ir::Block::make(ir::Evaluate::make(check_tile(call)), checked) : checked;
    }

    std::map<std::string, Expr> counts_; ///< of elements, by the name of an array
    std::map<std::string, int> bytes_;   ///< of an element
    Expr mask_;                          ///< of the lanes whose choice this is; undefined: all
};

} // namespace

void check_accesses(Halide::Pipeline &pipeline, const LoweredKernel &kernel) {
    std::map<std::string, Expr> counts;
    std::map<std::string, int> bytes;
    for (const KernelOperand &operand : call_order(kernel)) {
        if (operand.kind != KernelOperand::Kind::argument) continue;
        const std::string name = argument_prefix + std::to_string(operand.index);
        counts[name] = to_expr(element_count(operand.type.shape), kernel);
        bytes[name] = size_of(operand.type.dtype);
    }
    for (const KernelOutput &output : kernel.outputs) {
        for (size_t component = 0; component < output.results.size(); component++) {
            const std::string suffix = output.results.size() > 1 ? "." + std::to_string(component) : "";
            const Result &result = kernel.program.results[size_t(output.results[component])];
            counts[output.func.name() + suffix] = to_expr(element_count(kernel.program.type(result.value).shape), kernel);
        }
    }
    pipeline.add_custom_lowering_pass(new CheckAccesses(std::move(counts), std::move(bytes))); // the pipeline owns it
}

std::string take_wrong_access() {
    const std::lock_guard lock(mutex);
    return std::exchange(wrong_access, "");
}

} // namespace scalide

extern "C" int scalide_check_access(const char *name, int count, int least, int most) {
    if (least > most || (least >= 0 && most < count)) return 0; // no lane at all, or all inside
    const std::lock_guard lock(scalide::mutex);
    if (scalide::wrong_access.empty())
        scalide::wrong_access = std::string(name) + " has " + std::to_string(count) + " elements, accessed are " + std::to_string(least) +
                                " to " + std::to_string(most);
    return 0;
}

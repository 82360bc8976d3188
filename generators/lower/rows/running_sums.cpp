#include "lower/rows/running_sums.h"
#include "lower/rows/row_sums.h"
#include <algorithm>
#include <set>

namespace scalide {
namespace {

using namespace Halide::Internal;
using Halide::Expr;
using Halide::MemoryType;
using Halide::Type;

/// The sums of a thread: adjacent elements of one array.
struct Place {
    const Store *store; ///< the only store to them
    Expr index;         ///< index of the store, without variables of the loop over rows
    Expr condition;     ///< the store's condition, as far as it does not depend on the row
    std::string name;   ///< name of the registers
    std::set<const Load *> loads = {};

    Type type() const { return store->value.type(); }
    Expr registers() const { return type().is_scalar() ? Expr(0) : Ramp::make(0, 1, type().lanes()); }
    Stmt keep(const Expr &value) const {
        return Store::make(name, value, registers(), Halide::Parameter(), const_true(type().lanes()), {});
    }
    Expr kept() const {
        return Load::make(type(), name, registers(), Halide::Buffer<>(), Halide::Parameter(), const_true(type().lanes()), {});
    }
    Stmt write() const {
        const Stmt stored = Store::make(store->name, kept(), index, store->param, store->predicate, store->alignment);
        return is_const_one(condition) ? stored : IfThenElse::make(condition, stored);
    }
};

/// Finds the accesses to sums in a loop over rows.
class Accesses : public IRVisitor {
public:
    Accesses(const std::string &sums, const For *loop) : sums_(sums) {
        inner_.push(loop->name);
        loop->body.accept(this);
    }

    /// Returns nothing if a load has another index than all stores, or if an index depends on more than the thread.
    std::vector<Place> places() const {
        std::vector<Place> found = stores_;
        for (const auto &[load, index] : loads_) {
            const auto is_here = [&, at = index](const Place &p) { return p.store->name == load->name && equal(p.index, at); };
            const auto place = std::ranges::find_if(found, is_here);
            if (place == found.end() || !is_const_one(load->predicate)) return {};
            place->loads.insert(load);
        }
        const auto is_fixed = [&](const Place &p) { return !expr_uses_vars(p.index, inner_) && is_const_one(p.store->predicate); };
        return std::ranges::all_of(found, is_fixed) ? found : std::vector<Place>();
    }

private:
    using IRVisitor::visit;

    Expr expanded(Expr e) const {
        for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) e = substitute(let->first, let->second, e);
        return simplify(e);
    }

    template<typename L>
    void visit_let(const L *let) {
        let->value.accept(this);
        lets_.emplace_back(let->name, let->value);
        let->body.accept(this);
        lets_.pop_back();
    }
    void visit(const LetStmt *let) override { visit_let(let); }
    void visit(const Let *let) override { visit_let(let); }

    void visit(const For *loop) override {
        inner_.push(loop->name);
        IRVisitor::visit(loop);
    }

    void visit(const IfThenElse *branch) override {
        branch->condition.accept(this);
        conditions_.push_back(branch->condition);
        branch->then_case.accept(this);
        conditions_.back() = !branch->condition;
        if (branch->else_case.defined()) branch->else_case.accept(this);
        conditions_.pop_back();
    }

    void visit(const Load *load) override {
        if (is_sum(load->name)) loads_.emplace_back(load, expanded(load->index));
        IRVisitor::visit(load);
    }

    void visit(const Store *store) override {
        if (is_sum(store->name)) stores_.push_back({store, expanded(store->index), condition(), unique_name("running_sum")});
        IRVisitor::visit(store);
    }

    bool is_sum(const std::string &array) const { return array == sums_ || array.starts_with(sums_ + "."); }

    Expr condition() const {
        Expr all = const_true();
        for (const Expr &c : conditions_) {
            std::vector<Expr> parts;
            split_into_ands(expanded(c), parts);
            for (const Expr &part : parts) {
                if (!expr_uses_vars(part, inner_)) all = all && part;
            }
        }
        return simplify(all);
    }

    const std::string &sums_;
    Scope<> inner_; ///< variables of the loop over rows and of inner loops
    std::vector<std::pair<std::string, Expr>> lets_;
    std::vector<Expr> conditions_;
    std::vector<std::pair<const Load *, Expr>> loads_;
    std::vector<Place> stores_;
};

class KeepSums : public IRMutator {
public:
    explicit KeepSums(std::string sums) : sums_(std::move(sums)) {}

private:
    using IRMutator::visit;

    Stmt visit(const For *loop) override {
        const bool was_on_device = is_on_device_;
        is_on_device_ = is_on_device_ || is_of_gpu(loop->device_api);
        const Stmt mutated =
            is_on_device_ && ends_with(loop->name, std::string(".") + block_row_name) ? keep(loop) : IRMutator::visit(loop);
        is_on_device_ = was_on_device;
        return mutated;
    }

    static bool is_of_gpu(Halide::DeviceAPI api) { return api != Halide::DeviceAPI::None && api != Halide::DeviceAPI::Host; }

    Stmt keep(const For *loop) {
        places_ = Accesses(sums_, loop).places();
        std::vector<Stmt> steps = {IRMutator::visit(loop)};
        for (const Place &place : places_) steps.push_back(place.write());
        Stmt all = Block::make(steps);
        for (const Place &place : places_) {
            all = Allocate::make(place.name, place.type().element_of(), MemoryType::Stack, {place.type().lanes()}, const_true(),
                                 Block::make(all, Free::make(place.name)));
        }
        places_.clear();
        return all;
    }

    Expr visit(const Load *load) override {
        const auto place = std::ranges::find_if(places_, [&](const Place &p) { return p.loads.contains(load); });
        return place == places_.end() ? IRMutator::visit(load) : place->kept();
    }

    Stmt visit(const Store *store) override {
        const auto place = std::ranges::find_if(places_, [&](const Place &p) { return p.store == store; });
        return place == places_.end() ? IRMutator::visit(store) : place->keep(mutate(store->value));
    }

    std::string sums_;
    std::vector<Place> places_;
    bool is_on_device_ = false;
};

} // namespace

void keep_running_sums(Halide::Pipeline &pipeline, const Halide::Func &running) {
    pipeline.add_custom_lowering_pass(new KeepSums(running.name()));
}

} // namespace scalide

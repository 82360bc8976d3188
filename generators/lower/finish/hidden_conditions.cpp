#include "lower/finish/hidden_conditions.h"
#include "lower/finish/definitions.h"

namespace scalide {
using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// True if a condition compares 32-bit integers. Halide's BoxesTouched (Bounds.cpp) solves only such comparisons for loop variables.
class ComparesIndices : public IRGraphVisitor {
public:
    explicit ComparesIndices(const Expr &condition) { condition.accept(this); }
    bool found = false;

private:
    using IRGraphVisitor::visit;

    template<typename Comparison>
    void compare(const Comparison *op) {
        found = found || op->a.type().element_of() == Halide::Int(32);
        if (!found) IRGraphVisitor::visit(op);
    }
    void visit(const LT *op) override { compare(op); }
    void visit(const LE *op) override { compare(op); }
    void visit(const GT *op) override { compare(op); }
    void visit(const GE *op) override { compare(op); }
    void visit(const EQ *op) override { compare(op); }
    void visit(const NE *op) override { compare(op); }
};

/// Returns an equal condition that no bounds analysis understands. Halide removes the promise before code generation, and LLVM removes the
/// conversion.
Expr hidden(const Expr &condition) {
    const Halide::Type byte = Halide::UInt(8);
    return Halide::unsafe_promise_clamped(Halide::cast(byte, condition), make_zero(byte), make_one(byte)) != make_zero(byte);
}

class HideConditions : public IRGraphMutator {
    using IRGraphMutator::visit;

    Expr visit(const Select *select) override {
        const Expr condition = mutate(select->condition);
        return Select::make(ComparesIndices(condition).found ? hidden(condition) : condition, mutate(select->true_value),
                            mutate(select->false_value));
    }
};

} // namespace

void hide_conditions(LoweredKernel &kernel) {
    HideConditions hide;
    mutate_definitions(kernel, hide);
}

} // namespace scalide

#include "lower/halide/bf16_pairs.h"

namespace scalide {

namespace {

using namespace Halide::Internal;
using Halide::BFloat, Halide::Expr, Halide::Float;

constexpr const char *marker = "scalide_add_bf16_pair";

class Bf16Pairs : public IRMutator {
    using IRMutator::visit;

    Expr visit(const Call *call) override {
        const Expr mutated = IRMutator::visit(call);
        if (call->name != marker) return mutated;
        const std::vector<Expr> &at = mutated.as<Call>()->args;
        const int lanes = call->type.lanes();
        if (lanes == 1) return at[0] + number(at[1]) * number(at[3]) + number(at[2]) * number(at[4]);
        const Expr products = Mul::make(pairs(at[1], at[2]), pairs(at[3], at[4]));
        return Add::make(at[0], VectorReduce::make(VectorReduce::Add, products, lanes));
    }

    static Expr number(const Expr &bits) { return Halide::reinterpret<float>(Halide::cast<uint32_t>(bits) << 16); }

    /// Returns the numbers of two vectors in turns. A pair that is the same in all lanes is one word.
    static Expr pairs(const Expr &first, const Expr &second) {
        const int lanes = first.type().lanes();
        Expr bits = Shuffle::make_interleave({first, second});
        const auto *one = first.as<Broadcast>(), *other = second.as<Broadcast>();
        if (one && other && one->value.type().is_scalar() && other->value.type().is_scalar())
            bits = Broadcast::make(Halide::cast<uint32_t>(one->value) | (Halide::cast<uint32_t>(other->value) << 16), lanes);
        return Cast::make(Float(32, 2 * lanes), Reinterpret::make(BFloat(16, 2 * lanes), bits));
    }
};

} // namespace

Expr add_bf16_pair(const Expr &sum, const std::array<Expr, 2> &a, const std::array<Expr, 2> &b) {
    return Call::make(Float(32), marker, {sum, a[0], a[1], b[0], b[1]}, Call::PureExtern);
}

IRMutator *bf16_pairs_pass() { return new Bf16Pairs; }

} // namespace scalide

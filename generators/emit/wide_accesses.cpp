#include "emit/wide_accesses.h"
#include "lower/values/thread_access.h"

namespace scalide {

namespace {

using namespace Halide::Internal;
using Halide::Expr;
using Halide::Type;

const Type four_words = Halide::UInt(32, 4);

/// A vector of adjacent elements, split into accesses of 16 bytes.
struct Pieces {
    int count = 0, lanes = 0; ///< count is 0 if it is no such vector, or if Halide already emits this access; lanes of each access
    Expr base;
    ModulusRemainder alignment; ///< of `base`
    int per_word = 1;

    Pieces(const Type &type, const Expr &index, const Expr &predicate, const ModulusRemainder &aligned) : alignment(aligned) {
        const auto *ramp = index.as<Ramp>();
        const int bytes = type.bytes();
        if (!ramp || !is_const_one(ramp->stride) || !is_const_one(predicate) || type.is_bool() || bytes > 4) return;
        // Halide tells LLVM that accesses at different constant indices do not alias (add_tbaa_metadata). This needs one unit for all
        // indices.
        if (is_const(ramp->base)) return;
        const bool is_aligned = alignment.modulus * bytes % access_bytes == 0 && alignment.remainder * bytes % access_bytes == 0;
        if (!is_aligned || type.lanes() * bytes % access_bytes != 0) return;
        lanes = access_bytes / bytes;
        count = type.lanes() / lanes;
        per_word = 4 / bytes;
        base = ramp->base;
    }

    /// The index in 32-bit words.
    Expr index(int piece) const { return Ramp::make(simplify(base / per_word) + 4 * piece, 1, 4); }
    ModulusRemainder alignment_of(int piece) const { return alignment / per_word + ModulusRemainder(0, 4 * piece); }
};

class WideAccesses : public IRMutator {
    using IRMutator::visit;

    Stmt visit(const For *loop) override {
        const bool was_on_device = is_on_device_;
        is_on_device_ = is_on_device_ || loop->device_api == Halide::DeviceAPI::CUDA;
        const Stmt mutated = IRMutator::visit(loop);
        is_on_device_ = was_on_device;
        return mutated;
    }

    Expr visit(const Load *load) override {
        const Pieces pieces(load->type, load->index, load->predicate, load->alignment);
        if (!is_on_device_ || !load->param.defined() || pieces.count == 0) return IRMutator::visit(load);
        std::vector<Expr> parts;
        for (int i = 0; i < pieces.count; i++) {
            const Expr words =
                Load::make(four_words, load->name, pieces.index(i), load->image, load->param, const_true(4), pieces.alignment_of(i));
            parts.push_back(Reinterpret::make(load->type.with_lanes(pieces.lanes), words));
        }
        return parts.size() == 1 ? parts[0] : Shuffle::make_concat(parts);
    }

    Stmt visit(const Store *store) override {
        const Type type = store->value.type();
        const Pieces pieces(type, store->index, store->predicate, store->alignment);
        if (!is_on_device_ || !store->param.defined() || pieces.count == 0) return IRMutator::visit(store);
        const std::string name = unique_name("wide");
        const Expr value = Halide::Internal::Variable::make(type, name);
        std::vector<Stmt> parts;
        for (int i = 0; i < pieces.count; i++) {
            const Expr part = pieces.count == 1 ? value : Shuffle::make_slice(value, i * pieces.lanes, 1, pieces.lanes);
            parts.push_back(Store::make(store->name, Reinterpret::make(four_words, part), pieces.index(i), store->param, const_true(4),
                                        pieces.alignment_of(i)));
        }
        return LetStmt::make(name, mutate(store->value), Block::make(parts));
    }

    bool is_on_device_ = false;
};

} // namespace

void widen_accesses(Halide::Pipeline &pipeline) { pipeline.add_custom_lowering_pass(new WideAccesses); }

} // namespace scalide

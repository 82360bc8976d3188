#include "lower/finish/device_forms.h"
#include "lower/finish/definitions.h"
#include "lower/halide/strict.h"
#include <bit>

namespace scalide {
using Halide::Expr;
using namespace Halide::Internal;

namespace {

class OpenclForms : public IRMutator {
    using IRMutator::visit;

    Expr visit(const FloatImm *constant) override {
        if (constant->type != Halide::Float(64) || double(float(constant->value)) == constant->value) return constant;
        return Halide::reinterpret<double>(UIntImm::make(Halide::UInt(64), std::bit_cast<uint64_t>(constant->value)));
    }

    Expr visit(const Add *sum) override {
        const Expr a = mutate(sum->a), b = mutate(sum->b);
        if (const Mul *product = float_product(a)) return fma(product->a, product->b, b);
        if (const Mul *product = float_product(b)) return fma(product->a, product->b, a);
        return Add::make(a, b);
    }

    Expr visit(const Sub *difference) override {
        const Expr a = mutate(difference->a), b = mutate(difference->b);
        if (const Mul *product = float_product(a)) return fma(product->a, product->b, negative(b));
        if (const Mul *product = float_product(b)) return fma(negative(product->a), product->b, a);
        return Sub::make(a, b);
    }

    // Halide 21 emits names that OpenCL does not declare.
    Expr visit(const Call *call) override {
        const Expr mutated = IRMutator::visit(call);
        const char *name = call->is_intrinsic(Call::count_leading_zeros) ? "clz"
                           : call->is_intrinsic(Call::popcount)          ? "popcount"
                                                                         : nullptr;
        return name ? Call::make(call->type, name, mutated.as<Call>()->args, Call::PureExtern) : mutated;
    }

    static const Mul *float_product(const Expr &e) { return e.type().is_float() ? e.as<Mul>() : nullptr; }
    static Expr negative(const Expr &x) {
        const Expr bits = float_bits(x);
        return from_bits(bits ^ make_const(bits.type(), uint64_t(1) << (bits.type().bits() - 1)));
    }
    static Expr fma(const Expr &a, const Expr &b, const Expr &c) { return Call::make(a.type(), "fma", {a, b, c}, Call::PureExtern); }
};

/// Finds whether an expression depends on data. Halide computes expressions of constants and sizes alone on the host.
class DependsOnData : public IRGraphVisitor {
public:
    /// `lets`: by let variable in scope, whether it depends on data.
    DependsOnData(const Expr &e, const std::map<std::string, bool> &lets) : lets_(lets) { e.accept(this); }
    bool found = false;

private:
    using IRGraphVisitor::visit;
    void visit(const Call *call) override {
        found = found || call->call_type == Call::Halide || call->call_type == Call::Image;
        IRGraphVisitor::visit(call);
    }
    void visit(const Variable *variable) override {
        const auto let = lets_.find(variable->name);
        found = found || (let == lets_.end() ? !variable->param.defined() : let->second);
    }
    const std::map<std::string, bool> &lets_;
};

class CudaForms : public IRMutator {
    using IRMutator::visit;

    Expr visit(const Let *let) override {
        const Expr value = mutate(let->value);
        lets_[let->name] = DependsOnData(value, lets_).found;
        return Let::make(let->name, value, mutate(let->body));
    }

    Expr visit(const Call *call) override {
        const Expr mutated = IRMutator::visit(call);
        if (!call->is_intrinsic(Call::strict_mul) || !DependsOnData(mutated, lets_).found) return mutated;
        const char *name = call->type.bits() == 32 ? "llvm.nvvm.mul.rn.f" : "llvm.nvvm.mul.rn.d";
        return Call::make(call->type, name, mutated.as<Call>()->args, Call::PureExtern);
    }

    std::map<std::string, bool> lets_;
};

} // namespace

void use_device_forms(LoweredKernel &kernel, const Halide::Target &target) {
    OpenclForms opencl;
    CudaForms cuda;
    if (target.has_feature(Halide::Target::OpenCL)) mutate_definitions(kernel, opencl);
    if (target.has_feature(Halide::Target::CUDA)) mutate_definitions(kernel, cuda);
}

} // namespace scalide

#include "lower/opencl_constants.h"
#include <bit>

namespace scalide {

namespace {

class SpellConstants : public Halide::Internal::IRMutator {
    using IRMutator::visit;
    Halide::Expr visit(const Halide::Internal::FloatImm *constant) override {
        if (constant->type != Halide::Float(64) || double(float(constant->value)) == constant->value) return constant;
        return Halide::reinterpret<double>(Halide::Internal::UIntImm::make(Halide::UInt(64), std::bit_cast<uint64_t>(constant->value)));
    }
};

} // namespace

void spell_constants_for_opencl(LoweredKernel &kernel) {
    SpellConstants spell;
    for (const KernelOutput &output : kernel.outputs) {
        std::map<std::string, Halide::Internal::Function> funcs = find_transitive_calls(output.func.function());
        for (auto &[name, function] : funcs) function.mutate(&spell);
    }
}

} // namespace scalide

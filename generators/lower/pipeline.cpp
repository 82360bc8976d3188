#include "lower/kernel.h"
#include "lower/running_sums.h"

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

} // namespace

Halide::Pipeline to_pipeline(const LoweredKernel &kernel) {
    std::vector<Halide::Func> funcs;
    for (const KernelOutput &output : kernel.outputs) funcs.push_back(output.func);
    Halide::Pipeline pipeline(funcs);
    pipeline.add_custom_lowering_pass(new NamedPlaces); // the pipeline owns it
    const auto running = kernel.stages.find("running");
    if (running != kernel.stages.end()) {
        for (const Halide::Func &sums : running->second) keep_running_sums(pipeline, sums);
    }
    return pipeline;
}

} // namespace scalide

#include "emit/host_code.h"
#include "expr/error.h"

namespace scalide {

namespace {

using namespace Halide::Internal;

/// True for the conditions that Halide's pass skip_stages adds.
bool is_use_of_stage(const std::string &name) { return name.ends_with(".used"); }

class AdaptHostCode : public IRMutator {
    using IRMutator::visit;

    Stmt visit(const LetStmt *let) override {
        const Stmt body = mutate(let->body);
        return LetStmt::make(let->name, is_use_of_stage(let->name) ? const_true() : mutate(let->value), body);
    }

    Stmt visit(const For *loop) override {
        const bool is_on_device = loop->device_api != Halide::DeviceAPI::None && loop->device_api != Halide::DeviceAPI::Host;
        return is_on_device ? Stmt(loop) : IRMutator::visit(loop);
    }

    // Converts the instructions that lower/finish/device_forms.cpp emits.
    Halide::Expr visit(const Call *call) override {
        const Halide::Expr mutated = IRMutator::visit(call);
        const auto &arguments = mutated.as<Call>()->args;
        if (call->name.starts_with("llvm.nvvm.mul.rn.")) return Call::make(call->type, Call::strict_mul, arguments, Call::PureIntrinsic);
        // fmaf of the C library
        if (call->name == "fma" && call->type.bits() == 32) return Call::make(call->type, "fmaf", arguments, Call::PureExtern);
        return mutated;
    }
};

/// Collects the names of arrays whose elements are read or written.
class Accesses : public IRVisitor {
public:
    std::string names;

private:
    using IRVisitor::visit;
    void visit(const Load *load) override {
        add(load->name);
        IRVisitor::visit(load);
    }
    void visit(const Store *store) override {
        add(store->name);
        IRVisitor::visit(store);
    }
    // The variable that holds a kernel's device code is named after the device.
    void add(const std::string &name) {
        if (name != "opencl" && name != "cuda") names += " " + name;
    }
};

} // namespace

void adapt_host_code(Halide::Pipeline &pipeline) { pipeline.add_custom_lowering_pass(new AdaptHostCode); }

void check_host_code(const Halide::Module &module) {
    for (const LoweredFunc &function : module.functions()) {
        Accesses accesses;
        function.body.accept(&accesses);
        internal_check(accesses.names.empty(), "host code of a device's kernel reads no arrays, got" + accesses.names);
    }
}

} // namespace scalide

#include "emit/host_code.h"
#include "expr/error.h"

namespace scalide {

namespace {

using namespace Halide::Internal;

/// What Halide's pass skip_stages calls its conditions.
bool is_use_of_stage(const std::string &name) { return name.ends_with(".used"); }

class UseAllStages : public IRMutator {
    using IRMutator::visit;
    Stmt visit(const LetStmt *let) override {
        const Stmt body = mutate(let->body);
        return LetStmt::make(let->name, is_use_of_stage(let->name) ? const_true() : let->value, body);
    }
};

/// Names of arrays whose elements are read or written.
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
    // The word in which a kernel keeps its device code is named after the device.
    void add(const std::string &name) {
        if (name != "opencl" && name != "cuda") names += " " + name;
    }
};

} // namespace

void use_all_stages(Halide::Pipeline &pipeline) { pipeline.add_custom_lowering_pass(new UseAllStages); }

void check_host_code(const Halide::Module &module) {
    for (const LoweredFunc &function : module.functions()) {
        Accesses accesses;
        function.body.accept(&accesses);
        internal_check(accesses.names.empty(), "host code of a device's kernel reads no arrays, got" + accesses.names);
    }
}

} // namespace scalide

#include "lower/halide/device_ops.h"

namespace scalide {

using Halide::Expr;

namespace {

/// Finds whether an expression reads memory or depends on a loop. Halide computes expressions of constants and parameters on the host.
class Reads : public Halide::Internal::IRGraphVisitor {
public:
    bool found = false;

protected:
    using IRGraphVisitor::visit;
    void visit(const Halide::Internal::Variable *variable) override { found |= !variable->param.defined(); }
    void visit(const Halide::Internal::Call *op) override {
        found |= op->call_type == Halide::Internal::Call::Halide || op->call_type == Halide::Internal::Call::Image;
        IRGraphVisitor::visit(op);
    }
};

} // namespace

Expr device_op(DeviceOp op, const Expr &word) {
    const Halide::Type i32 = Halide::Int(32);
    const Expr mark = Halide::Internal::make_const(i32, int64_t(device_op_mark | uint32_t(op)));
    const Expr marked = Halide::Internal::Call::make(i32, "llvm.nvvm.idp4a.s.u", {Halide::reinterpret(i32, word), Expr(0), mark},
                                                     Halide::Internal::Call::PureExtern);
    return Halide::reinterpret(Halide::UInt(32), marked);
}

bool may_be_device_op(const Expr &word) {
    Reads reads;
    word.accept(&reads);
    return reads.found;
}

} // namespace scalide

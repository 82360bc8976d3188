#include "lower/halide/device_ops.h"

namespace scalide {

using Halide::Expr;

Expr device_op(DeviceOp op, const Expr &word) {
    const Halide::Type i32 = Halide::Int(32);
    const Expr mark = Halide::Internal::make_const(i32, int64_t(device_op_mark | uint32_t(op)));
    const Expr marked = Halide::Internal::Call::make(i32, "llvm.nvvm.idp4a.s.u", {Halide::reinterpret(i32, word), Expr(0), mark},
                                                     Halide::Internal::Call::PureExtern);
    return Halide::reinterpret(Halide::UInt(32), marked);
}

} // namespace scalide

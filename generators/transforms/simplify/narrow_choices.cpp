#include "transforms/simplify/narrow_choices.h"
#include "expr/base_operators.h"
#include "transforms/operators.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace scalide {

namespace {

bool is_f32(double number) {
    if (std::isinf(number)) return true;
    return std::abs(number) <= std::numeric_limits<float>::max() && static_cast<double>(static_cast<float>(number)) == number;
}

/// Returns the f32 value that was widened to `value`, or a constant as f32. Returns nothing if there is none. Values that are not f64 are
/// returned unchanged.
std::optional<ValueId> in_f32(const Candidate &at, ValueId value) {
    const Type type = at.facts.program().type(value);
    if (type.dtype != Dtype::f64) return value;
    const Node *inner = at.facts.producer(value, "convert_element_type");
    if (inner != nullptr && at.facts.program().type(inner->operands[0]).dtype == Dtype::f32) return inner->operands[0];
    const auto number = at.facts.splat(value);
    if (!number || !is_f32(*number) || !type.is_scalar()) return {};
    return at.emit("constant", {}, constant_attributes(*number, Dtype::f32));
}

} // namespace

std::optional<ValueId> choose_in_f32(const Candidate &at) {
    const BaseOperator *op = find_base_operator(at.node.op);
    if (op == nullptr || !op->chooses) return {};
    const auto type_of = [&](ValueId value) { return at.facts.program().type(value).dtype; };
    if (std::ranges::none_of(at.node.operands, [&](ValueId value) { return type_of(value) == Dtype::f64; })) return {};
    std::vector<ValueId> operands;
    for (const ValueId operand : at.node.operands) {
        const auto narrow = in_f32(at, operand);
        if (!narrow) return {};
        operands.push_back(*narrow);
    }
    const ValueId chosen = at.emit(at.node.op, operands, at.node.attributes);
    return type_of(chosen) == at.type.dtype ? chosen : at.emit("convert_element_type", {chosen}, convert_attributes(at.type.dtype));
}

std::optional<ValueId> update_in_format(const Candidate &at) {
    if (at.node.op != "dynamic_update_slice" && at.node.op != "scatter") return {};
    std::vector<ValueId> operands = at.node.operands;
    for (const size_t index : {size_t(0), at.node.op == "scatter" ? size_t(2) : size_t(1)}) {
        const Node *widening = at.facts.producer(operands[index], "convert_element_type");
        if (widening == nullptr) return {};
        operands[index] = widening->operands[0];
    }
    const auto dtype_of = [&](ValueId value) { return at.facts.program().type(value).dtype; };
    const Dtype format = dtype_of(operands[0]);
    const bool is_widened = is_float(format) && is_float(at.type.dtype) && size_of(format) < size_of(at.type.dtype);
    if (!is_widened || dtype_of(operands[at.node.op == "scatter" ? 2 : 1]) != format) return {};
    return at.emit("convert_element_type", {at.emit(at.node.op, operands, at.node.attributes)}, convert_attributes(at.type.dtype));
}

} // namespace scalide

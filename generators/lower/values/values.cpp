#include "lower/values/values.h"
#include "expr/base_operators.h"
#include "lower/formats/formats.h"
#include "lower/math/arithmetic_choice.h"
#include "lower/math/elementwise.h"
#include "lower/values/movement.h"
#include <array>

namespace scalide {
using Halide::Expr;

Expr to_word(Dtype dtype, const Expr &value) { return dtype == Dtype::boolean ? Halide::cast<uint8_t>(value) : value; }

Expr from_word(Dtype dtype, const Expr &word) { return dtype == Dtype::boolean ? word != 0 : word; }

std::vector<Halide::Var> axis_vars(int rank) {
    static const std::vector<std::string> first = {"x", "y"};
    std::vector<Halide::Var> vars(rank);
    for (int d = 0; d < rank; d++) {
        vars[rank - 1 - d] = Halide::Var(d < 2 ? first[d] : "d" + std::to_string(d));
    }
    return vars;
}

void assign(Halide::FuncRef place, const Halide::Tuple &value) {
    if (value.size() == 1) {
        place = value[0];
    } else {
        place = value;
    }
}

Halide::Tuple over(const Halide::RDom &r, const Halide::Tuple &value) {
    for (const Expr &component : value.as_vector()) {
        for (int i = 0; i < r.dimensions(); i++) {
            if (Halide::Internal::expr_uses_var(component, r[i].name())) {
                return value;
            }
        }
    }
    std::vector<Expr> named = value.as_vector();
    named[0] = Halide::select(r[0] >= 0, named[0], Halide::Internal::make_zero(named[0].type())); // always true, because r starts at 0
    return Halide::Tuple(named);
}

void make_strides(Halide::OutputImageParam buffer, const Extents &shape, const LoweredKernel &kernel, bool reads_strides) {
    Extent stride = 1;
    for (int d = 0; d < int(shape.size()); d++) {
        if (d == 0 || !reads_strides) buffer.dim(d).set_stride(to_expr(stride, kernel)); // otherwise the kernel reads it from the buffer
        stride = stride * shape[shape.size() - 1 - d];
    }
}

void fix_layout(Halide::OutputImageParam buffer, const Extents &shape, const LoweredKernel &kernel, bool reads_strides) {
    for (int d = 0; d < int(shape.size()); d++) {
        buffer.dim(d).set_bounds(0, to_expr(shape[shape.size() - 1 - d], kernel));
    }
    make_strides(buffer, shape, kernel, reads_strides);
}

void fix_layout(Halide::Func output, const Extents &shape, const LoweredKernel &kernel, bool reads_strides) {
    std::vector<Halide::OutputImageParam> buffers = output.output_buffers();
    fix_layout(buffers[0], shape, kernel, reads_strides);
    for (size_t i = 1; i < buffers.size(); i++) {
        make_strides(buffers[i], shape, kernel, reads_strides);
    }
}

namespace {

/// Reads memory directly. Halide would inline a Func as Lets, and these have equal names if an array is read at indices that it contains
/// itself.
Values::Reader array_reader(const Halide::ImageParam &array, Dtype dtype) {
    return [=](const Index &index) {
        std::vector<Expr> place = buffer_order(index);
        for (Expr &axis : place) axis = Halide::cast<int>(axis);
        return from_word(dtype, Halide::Internal::Call::make(array.parameter(), place));
    };
}

} // namespace

bool Values::IndexLess::operator()(const Index &a, const Index &b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), Halide::Internal::IRDeepCompare());
}

Values::Values(const LoweredKernel &kernel)
    : kernel_(kernel), producers_(producers(kernel.program)), arithmetic_(kernel.program.values.size(), Arithmetic::exact) {
    if (kernel.has_device_arithmetic) arithmetic_ = choose_arithmetic(kernel.program);
    for (size_t i = 0; i < kernel.inputs.size(); i++) {
        if (!kernel.inputs[i].defined()) continue;
        const ValueId value = program().arguments[i].value;
        const Type &type = program().type(value);
        if (element_count(type.shape) == Extent(0)) { // nothing to read
            const Expr none = from_word(type.dtype, Halide::Internal::make_zero(storage_type(type.dtype)));
            bind(value, [none](const Index &) { return none; });
        } else {
            bind(value, array_reader(kernel.inputs[i], type.dtype));
        }
    }
}

void Values::bind(ValueId value, Reader reader) {
    readers_[value] = std::move(reader);
    known_.clear();
}

void Values::move_adjacent(int most) {
    most_adjacent_ = most;
    known_.clear();
}

void Values::bind(ValueId value, const Halide::Func &func, int component) {
    bind(value, [this, value, func, component](const Index &index) -> Expr {
        Halide::FuncRef word = func(buffer_order(index));
        return from_word(program().type(value).dtype, func.outputs() == 1 ? Expr(word) : Expr(word[component]));
    });
}

Index Values::extents(const Extents &shape) const {
    Index result;
    for (const Extent &e : shape) {
        result.push_back(extent(e));
    }
    return result;
}

const Node *Values::producer(ValueId value) const { return producers_[value] < 0 ? nullptr : &program().nodes[producers_[value]]; }

Expr Values::at(ValueId value, const Index &index) {
    auto &known = known_[value];
    auto found = known.find(index);
    if (found != known.end()) {
        return found->second;
    }
    Expr result = evaluate(value, index);
    known_[value][index] = result;
    return result;
}

Expr Values::evaluate(ValueId value, const Index &index) {
    auto bound = readers_.find(value);
    if (bound != readers_.end()) {
        return bound->second(index);
    }
    const Node *node = producer(value);
    internal_check(node, "value " + program().value_name(value) + " of a kernel is read before it is made");
    const BaseOperator *op = find_base_operator(node->op);
    internal_check(op, "a kernel contains " + node->op + ", which is no base operator");
    return op->shape == Shape::elementwise ? elementwise(*node, index) : lower_movement(*node, index, *this);
}

Expr Values::elementwise(const Node &node, const Index &index) {
    std::vector<ElementwiseOperand> operands;
    for (ValueId operand : node.operands) {
        const Type &type = program().type(operand);
        operands.push_back({at(operand, type.is_scalar() ? Index{} : index), type.dtype});
    }
    const Dtype dtype = program().type(node.results[0]).dtype;
    if (node.op == "convert_element_type") return convert(node, operands[0], dtype);
    return lower_elementwise(node.op, operands, node.attributes, dtype, arithmetic_[node.results[0]]);
}

/// If an f32 value is rounded and widened again, at the same index or moved, it is rounded without a bit pattern.
Expr Values::convert(const Node &node, const ElementwiseOperand &operand, Dtype dtype) {
    const auto known = rounded_.find(operand.value.get());
    if (known != rounded_.end() && dtype == Dtype::f32) return known->second.rounded;
    Expr converted = lower_elementwise(node.op, std::array{operand}, node.attributes, dtype);
    const bool narrows = operand.dtype == Dtype::f32 && is_narrow(dtype);
    if (narrows) rounded_[converted.get()] = {converted, round_to(dtype, operand.value, overflow_of(node.attributes))};
    return converted;
}

} // namespace scalide

#include "lower/formats/formats.h"
#include "lower/halide/amx_tiles.h"
#include "lower/halide/strict.h"
#include "lower/products/contract.h"
#include "lower/values/panels.h"
#include "lower/values/source_dtype.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;

namespace {

/// Finds the array with the most axes that an operand's Expr reads. Its memory order decides the layout.
class WidestRead : public Halide::Internal::IRGraphVisitor {
public:
    const Halide::Internal::Call *call = nullptr;

protected:
    using IRGraphVisitor::visit;
    void visit(const Halide::Internal::Call *op) override {
        bool is_read = op->call_type == Halide::Internal::Call::Halide || op->call_type == Halide::Internal::Call::Image;
        if (is_read && (!call || op->args.size() > call->args.size())) {
            call = op;
        }
        IRGraphVisitor::visit(op);
    }
};

/// Returns the argument that holds the elements of an operand as they are multiplied: an operand that is only widened from it. -1 if there
/// is none.
ValueId stored_operand(const Values &values, const ContractOperand &operand) {
    const Node *widened = values.producer(operand.value);
    const ValueId value = widened && widened->op == "convert_element_type" ? widened->operands[0] : operand.value;
    const Dtype dtype = values.program().type(value).dtype;
    const bool same =
        operand.packed.is_bfloat() ? dtype == Dtype::bf16 : operand.packed.bits() == 8 && storage_type(dtype) == operand.packed;
    const bool is_argument = values.producer(value) == nullptr;
    return is_argument && same && !operand.is_shifted && !operand.factors ? value : -1;
}

/// Sets `plain`, `stored` and `depth_contiguous` by evaluating the operand at symbolic indices.
void find_layout(Values &values, ContractOperand &operand) {
    Halide::Var batch("batch"), free("free"), depth("depth");
    Expr value = operand_at(values, operand, {batch, free, depth});
    WidestRead widest;
    value.accept(&widest);
    bool is_array = widest.call && !widest.call->args.empty();
    operand.plain = value.as<Halide::Internal::Call>() && value.as<Halide::Internal::Call>() == widest.call;
    operand.stored = stored_operand(values, operand);
    operand.depth_contiguous = is_array && Halide::Internal::expr_uses_var(widest.call->args[0], depth.name());
}

/// Returns a type that holds every number of an operand exactly, and products of which are sums of products: bf16 or an integer. If the
/// operand is only moved after a conversion, the dtype before decides. bf16 has the exponents of f32, so only significands matter; pairs
/// treat numbers below 2^-126 as zero.
Halide::Type exact_type(const Program &program, ValueId value) {
    const Dtype dtype = program.type(value).dtype, before = source_dtype(program, value);
    if (is_float(dtype)) return significant_bits(program, value) <= 8 ? Halide::BFloat(16) : Halide::Float(32);
    const Halide::Type own = storage_type(dtype);
    return is_integer(before) && own.can_represent(storage_type(before)) ? storage_type(before) : own;
}

bool is_reversed(const Program &program, ValueId value) {
    std::vector<bool> reversed(program.values.size());
    for (const Node &node : program.nodes) {
        const auto is_so = [&](ValueId operand) { return reversed[operand]; };
        reversed[node.results[0]] = node.op == "rev" || std::ranges::any_of(node.operands, is_so);
    }
    return reversed[value];
}

/// Returns the axis of one side of a list of pairs such as `[[1], [0]]`; -1 if there is none.
int axis_of(const Node &node, const std::string &attribute, int side) {
    auto found = node.attributes.find(attribute);
    if (found == node.attributes.end() || found->second.list.empty()) {
        return -1;
    }
    std::vector<int64_t> axes = to_integers(found->second.list[side]);
    internal_check(axes.size() <= 1, "contract: more than one axis in " + attribute);
    return axes.empty() ? -1 : int(axes[0]);
}

/// Returns the value, axes and exact type of an operand.
ContractOperand describe_axes(const Program &program, const Node &node, int side) {
    ContractOperand operand;
    operand.value = node.operands[side];
    operand.batch_axis = axis_of(node, "batch", side);
    operand.depth_axis = axis_of(node, "contract", side);
    for (int axis = 0; axis < program.type(operand.value).rank(); axis++) {
        if (axis != operand.batch_axis && axis != operand.depth_axis) {
            internal_check(operand.free_axis < 0, "contract: an operand has more than one free axis");
            operand.free_axis = axis;
        }
    }
    operand.exact = exact_type(program, operand.value);
    return operand;
}

ContractOperand describe_operand(const Lowering &lowering, const Node &node, int side) {
    ContractOperand operand = describe_axes(lowering.kernel.program, node, side);
    operand.is_in_panels = side == 1 && panels_of(lowering.kernel.program);
    if (operand.is_in_panels) return operand;
    operand.is_reversed = is_reversed(lowering.kernel.program, operand.value);
    return operand;
}

Extent axis_extent(const Program &program, const ContractOperand &operand, int axis) {
    return axis < 0 ? Extent(1) : program.type(operand.value).shape[axis];
}

const Node *find_contraction(const Program &program) {
    const Node *found = nullptr;
    for (const Node &node : program.nodes) {
        if (node.op == "dot_general") {
            internal_check(!found, "contract: more than one dot_general");
            found = &node;
        }
    }
    internal_check(found, "contract: no dot_general");
    return found;
}

/// Returns the budget, or fewer vectors if the result has fewer columns. Products of tiles have a width of their own.
int panel_width(const Contraction &c, const Halide::Target &target, const Budgets &budgets) {
    if (c.in_tiles) return amx_side;
    const Extent &columns = c.columns;
    const int lanes = target.natural_vector_size<float>();
    int vectors = budgets.panel_vectors;
    while (vectors > 1 && columns.is_static() && columns.value() <= vectors / 2 * lanes) {
        vectors /= 2;
    }
    return vectors * lanes;
}

void set_types(Contraction &c, const Halide::Type &lhs, const Halide::Type &rhs, const Halide::Type &sum, int group) {
    c.lhs.packed = lhs;
    c.rhs.packed = rhs;
    c.sum = sum;
    c.group = group;
}

/// True if a product of this shape is worth tiles: a tile computes 32 rows and 32 columns, however few of them exist.
bool is_worth_tiles(const Contraction &c, const Budgets &budgets) {
    const auto is_long = [&](const Extent &extent) { return !extent.is_static() || extent.value() >= budgets.tile_rows; };
    return budgets.tile_rows > 0 && is_long(c.rows) && is_long(c.columns) && is_long(c.depth) && c.block % (amx_step_bytes / 2) == 0;
}

/// Chooses how elements are multiplied. Without VNNI, bytes are multiplied as i16. vpmaddubsw has products of bytes, but saturates.
void choose_types(Contraction &c, const Halide::Target &target, const Budgets &budgets) {
    using Halide::Float, Halide::Int, Halide::UInt, Halide::BFloat;
    const auto both = [&](const auto &holds) { return holds(c.lhs.exact) && holds(c.rhs.exact); };
    const auto is_bf16 = [](const Halide::Type &type) { return type.is_bfloat(); };
    const auto is_float = [](const Halide::Type &type) { return type.is_float(); };
    const auto is_byte = [](const Halide::Type &type) { return type.bits() == 8; };
    const auto is_i16 = [](const Halide::Type &type) { return Int(16).can_represent(type); };
    c.in_tiles = is_worth_tiles(c, budgets) && (both(is_bf16) || both(is_byte));
    if (c.in_tiles) return set_types(c, c.lhs.exact, c.rhs.exact, both(is_byte) ? Int(32) : Float(32), both(is_byte) ? 4 : 2);
    if (both(is_float)) {
        const bool pairs = budgets.bf16_pairs == 1 && both(is_bf16);
        const Halide::Type element = pairs ? BFloat(16) : Float(32);
        return set_types(c, element, element, Float(32), pairs ? 2 : 1);
    }
    if (budgets.byte_quads == 1 && both(is_byte)) { // one operand must be u8, the other one i8
        c.lhs.is_shifted = c.lhs.exact == c.rhs.exact;
        return set_types(c, c.rhs.exact.is_int() ? UInt(8) : Int(8), c.rhs.exact, Int(32), 4);
    }
    if (!target.has_gpu_feature() && both(is_i16)) return set_types(c, Int(16), Int(16), Int(32), 2);
    set_types(c, UInt(32), UInt(32), UInt(32), 1);
}

/// Returns the dtype whose numbers a Halide type holds.
Dtype dtype_of(const Halide::Type &type) {
    if (type.is_bfloat()) return Dtype::bf16;
    const auto holds = [&](Dtype dtype) { return (is_integer(dtype) || dtype == Dtype::f32) && storage_type(dtype) == type; };
    return *std::ranges::find_if(all_dtypes(), holds);
}

} // namespace

Index operand_index(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    Index index(std::max({operand.batch_axis, operand.free_axis, operand.depth_axis}) + 1);
    const std::array<std::pair<int, Expr>, 3> places = {
        {{operand.batch_axis, at.batch}, {operand.free_axis, at.free}, {operand.depth_axis, at.depth}}};
    const Extents &shape = values.program().type(operand.value).shape;
    for (const auto &[axis, expr] : places) {
        if (axis < 0) continue;
        // The last panel may exceed the matrix. If an operand is read in reverse along a static extent, Halide 21 loses the condition that
        // masks this.
        index[axis] = operand.is_reversed && shape[axis].is_static() ? Halide::min(expr, values.extent(shape[axis]) - 1) : expr;
    }
    return index;
}

Expr operand_at(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    return operand.factors ? code_at(values, operand, at) : values.at(operand.value, operand_index(values, operand, at));
}

Expr packed_at(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    const Expr value = operand_at(values, operand, at);
    if (operand.packed.is_bfloat()) return exact_bf16(value);
    if (operand.packed.is_float()) return value;
    const Expr element = Halide::cast(operand.packed, value);
    return operand.is_shifted ? element ^ Halide::cast(operand.packed, 128) : element;
}

Expr stored_at(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    return values.at(operand.stored, operand_index(values, operand, at));
}

Contraction describe_contraction(const Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    Contraction c;
    c.node = find_contraction(program);
    c.lhs = describe_operand(lowering, *c.node, 0);
    c.rhs = describe_operand(lowering, *c.node, 1);
    c.batch = axis_extent(program, c.lhs, c.lhs.batch_axis);
    c.rows = axis_extent(program, c.lhs, c.lhs.free_axis);
    c.columns = axis_extent(program, c.rhs, c.rhs.free_axis);
    c.depth = axis_extent(program, c.lhs, c.lhs.depth_axis);
    if (lowering.budgets.bf16_pairs == 1 || is_worth_tiles(c, lowering.budgets)) take_factors(lowering, c);
    choose_types(c, lowering.target, lowering.budgets);
    const auto panels = panels_of(program);
    c.width = panels ? int(panels->rbegin()[1].value()) : panel_width(c, lowering.target, lowering.budgets);
    for (ContractOperand *operand : {&c.lhs, &c.rhs})
        if (!operand->is_in_panels) find_layout(lowering.values, *operand);
    return c;
}

std::optional<PanelLayout> contract_panels(const Program &kernel, const Halide::Target &target, const Budgets &budgets) {
    Contraction c;
    const Node &node = *find_contraction(kernel);
    c.lhs = describe_axes(kernel, node, 0);
    c.rhs = describe_axes(kernel, node, 1);
    if (c.rhs.free_axis < 0 || c.rhs.depth_axis < 0) return {};
    c.rows = axis_extent(kernel, c.lhs, c.lhs.free_axis);
    c.columns = axis_extent(kernel, c.rhs, c.rhs.free_axis);
    c.depth = axis_extent(kernel, c.rhs, c.rhs.depth_axis);
    choose_types(c, target, budgets);
    // Half of the bytes for the same numbers. A kernel that multiplies f32 widens bf16 by a shift while it reads.
    const Dtype source = source_dtype(kernel, c.rhs.value);
    const bool halves = c.rhs.packed == Halide::Float(32) && is_narrow(source) && format_of(source).mantissa_bits <= 7;
    PanelLayout layout{halves ? Dtype::bf16 : dtype_of(c.rhs.packed),
                       panel_width(c, target, budgets),
                       c.group,
                       c.rhs.free_axis,
                       {},
                       0,
                       c.in_tiles ? amx_step_groups : 1};
    if (c.rhs.batch_axis >= 0) layout.axes.push_back(c.rhs.batch_axis);
    layout.outside = layout.axes.size();
    layout.axes.push_back(c.rhs.depth_axis);
    return layout;
}

} // namespace scalide

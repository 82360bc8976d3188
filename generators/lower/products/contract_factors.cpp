#include "lower/products/contract.h"
#include "lower/values/source_dtype.h"
#include <algorithm>
#include <numeric>

namespace scalide {
using Halide::Expr;

namespace {

// A block of less than 32 depths costs more for its factors than pairs save. A sum of more than 1,024 terms would be less exact.
constexpr int64_t least_block = 32, most_block = 1024;

const std::string any_depth = "any_depth"; ///< a depth for which an index is written

/// Returns the index at which `moved`, a movement of `source`, reads it.
Index place_in(const Values &values, ValueId moved, const Index &index, ValueId source) {
    Index place;
    Values probe = values;
    probe.bind(source, [&](const Index &at) -> Expr {
        place = at;
        return 0.0f;
    });
    probe.at(moved, index);
    return place;
}

bool uses_depth(const Expr &value) { return Halide::Internal::expr_uses_var(value, any_depth); }

/// True if `value` is the same for all depths of a block of this size.
bool is_constant_along(const Expr &value, int64_t block) {
    const std::string inner = "depth_within_block";
    Halide::Internal::Scope<Halide::Internal::Interval> bounds;
    bounds.push(inner, {0, int(block) - 1});
    const Expr depth = Halide::Var("block_of_depth") * int(block) + Halide::Var(inner);
    const Expr split = Halide::Internal::simplify(Halide::Internal::substitute(any_depth, depth, value), true, bounds);
    return !Halide::Internal::expr_uses_var(split, inner);
}

/// Returns the largest block along which `value` is constant: 0 for all depths, or one of these extents; nothing if there is none.
std::optional<int64_t> constant_block(const Expr &value, const Extents &extents) {
    if (!uses_depth(value)) return 0;
    std::optional<int64_t> largest;
    for (const Extent &extent : extents) {
        if (!extent.is_static() || extent.value() < least_block || extent.value() > most_block) continue;
        if (extent.value() > largest.value_or(0) && is_constant_along(value, extent.value())) largest = extent.value();
    }
    return largest;
}

/// Returns the factors of an operand, if it has such.
std::optional<ContractFactors> find_factors(const Lowering &lowering, const ContractOperand &operand) {
    const Program &program = lowering.kernel.program;
    const ValueId source = source_of_moves(program, operand.value);
    const Node *product = lowering.values.producer(source);
    if (!is_float(program.type(source).dtype) || !product || product->op != "mul") return {};
    const ContractIndex any = {Halide::Var("any_batch"), Halide::Var("any_free"), Halide::Var(any_depth)};
    ContractFactors found;
    found.place = place_in(lowering.values, operand.value, operand_index(lowering.values, operand, any), source);
    for (const size_t side : {0, 1}) {
        found.codes = product->operands[side];
        found.factors = product->operands[1 - side];
        if (significant_bits(program, found.codes) > 8) continue;
        const auto block = constant_block(lowering.values.at(found.factors, found.place), program.type(source).shape);
        if (!block) continue;
        found.block = *block;
        return found;
    }
    return {};
}

/// Returns the index of the codes and factors of an operand.
Index factors_index(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    const Index index = operand_index(values, operand, at);
    std::map<std::string, Expr> positions;
    for (const auto &[axis, name] :
         {std::pair{operand.batch_axis, "any_batch"}, std::pair{operand.free_axis, "any_free"}, std::pair{operand.depth_axis, "any_depth"}})
        if (axis >= 0) positions[name] = index[size_t(axis)];
    Index place;
    for (const Expr &axis : operand.factors->place) place.push_back(Halide::Internal::substitute(positions, axis));
    return place;
}

} // namespace

void take_factors(const Lowering &lowering, Contraction &c) {
    std::vector<std::pair<ContractOperand *, ContractFactors>> taken;
    int64_t block = 0;
    for (ContractOperand *operand : {&c.lhs, &c.rhs}) {
        if (operand->exact.is_bfloat()) continue;
        const auto factors = operand->is_in_panels ? std::nullopt : find_factors(lowering, *operand);
        if (!factors) return;
        block = std::gcd(block, factors->block);
        taken.emplace_back(operand, *factors);
    }
    if (block != 0 && (block < least_block || block % 2 != 0)) return;
    for (const auto &[operand, factors] : taken) {
        operand->factors = factors;
        operand->exact = Halide::BFloat(16);
        c.block = block;
    }
}

Expr code_at(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    return values.at(operand.factors->codes, factors_index(values, operand, at));
}

Expr factor_at(Values &values, const ContractOperand &operand, const ContractIndex &at) {
    return values.at(operand.factors->factors, factors_index(values, operand, at));
}

} // namespace scalide

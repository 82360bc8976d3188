#include "expr/base_operators.h"
#include "lower/halide/strict.h"
#include "lower/sorts/sort_lines.h"
#include "lower/values/outputs.h"
#include <algorithm>

// sort: the order of elements along an axis, with elementwise operators before it. A sorting network sorts short lines. A radix sort sorts
// long lines and lines of unknown length.
namespace scalide {
using Halide::Expr;

namespace {

SortLines::Key key_of(const Expr &value, bool descending) {
    const Halide::Type type = value.type();
    const int bits = type.is_bool() ? 1 : type.bits();
    Expr word = Halide::cast<uint32_t>(value);
    if (type.is_int()) word = Halide::reinterpret<uint32_t>(Halide::cast<int32_t>(value)) + bits32(1u << (bits - 1));
    if (type.is_float()) {
        const Expr zero = float32(0), plain = select(strict_eq(value, zero), zero, scalide::is_nan(value), float32(0x7fc00000u), value);
        word = float_bits(plain);
        word = select((word >> 31) == bits32(0), word | bits32(0x80000000u), ~word);
    }
    const uint32_t all = bits == 32 ? ~0u : (1u << bits) - 1;
    return {descending ? bits32(all) - word : word, bits};
}

} // namespace

SortLines::SortLines(Lowering &lowering, const Node &node)
    : lowering(lowering), node(node), stages(lowering.kernel.stages.emplace<SortStages>()),
      axis(size_t(node.attributes.at("dimension").integer.value())) {
    const Type &type = lowering.kernel.program.type(node.results[0]);
    vars = axis_vars(type.rank());
    size = extent(axis);
    stages.axis = type.rank() - 1 - int(axis);
}

std::vector<SortLines::Key> SortLines::keys(const Index &index) const {
    const bool descending = node.attributes.at("descending").word == "true";
    std::vector<Key> keys;
    for (const ValueId key : node.operands) {
        keys.push_back(key_of(lowering.values.at(key, index), descending));
    }
    return keys;
}

std::vector<Expr> SortLines::args(std::vector<Expr> first, const Index &index) const {
    for (size_t i = index.size(); i-- > 0;) {
        if (i != axis) first.push_back(index[i]);
    }
    return first;
}

bool SortLines::are_many() const {
    constexpr int64_t many = 8;
    int64_t count = 1;
    for (size_t i = 0; i < vars.size(); i++) {
        if (i == axis) continue;
        const Extent &extent = lowering.kernel.program.type(node.results[0]).shape[i];
        if (!extent.is_static()) return true;
        count = std::min(count * extent.value(), many); // no overflow
    }
    return count == many;
}

void SortLines::bind(const Values::Reader &read) {
    lowering.values.bind(node.results[0], read);
    add_output(lowering, {0}, vars);
}

void lower_sort(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const auto is_sort = [](const Node &node) { return find_base_operator(node.op)->shape == Shape::sort; };
    const auto node = std::ranges::find_if(program.nodes, is_sort);
    internal_check(node != program.nodes.end() && program.results.size() == 1, "a sort kernel must give the order that a sort makes");
    SortLines lines(lowering, *node);
    const auto known = Halide::Internal::as_const_int(lines.size);
    const int longest = lines.are_many() ? lowering.budgets.network_lines : lowering.budgets.network;
    const bool is_short = known && *known >= 2 && *known <= longest;
    is_short ? sort_by_network(lines) : sort_by_digits(lines);
}

} // namespace scalide

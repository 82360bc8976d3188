#include "expr/base_operators.h"
#include "lower/values/outputs.h"
#include "lower/values/shared.h"
#include "lower/values/thread_access.h"
#include <algorithm>

// map: everything is inlined into the outputs, one Func for each shape. Only single elements that very many expressions contain are stored.
// On CPUs, the parts of a concatenation are written one after the other: if each element chose its part, vectors would gather. The gradient
// of an LSTM's gates, 32 x 4 parts of 128 elements: 165 us a step so, 9 us by parts (Xeon, AVX-512, two cores, 2026-11-28). Along one axis,
// 300,000, 500,000 and 200,000 elements: 566 us so, 51 us by parts (EPYC Zen 4, two threads, others busy, 2026-11-29).
namespace scalide {

namespace {

bool is_elementwise(const Node &node) { return base_operator(node.op).shape == Shape::elementwise; }

/// Finds the concatenations along one axis that a result reads at its own index.
class JoinSearch {
public:
    JoinSearch(const Program &program, const Values &values)
        : program_(program), values_(values), is_within_(program.values.size(), false) {}

    /// Returns nothing if the concatenations have different parts, or if another value of the result depends on one of them.
    Joins find(ValueId result) {
        shape_ = program_.type(result).shape;
        visit(result);
        std::vector<bool> outside(program_.values.size(), false);
        for (const ValueId value : outside_) outside[value] = true;
        mark_sources(program_, outside);
        const bool is_read_elsewhere = std::ranges::any_of(joins_.values, [&](ValueId join) { return outside[join]; }),
                   has_empty_part = std::ranges::count(joins_.parts, Extent(0)) > 0; // Halide has no updates without elements
        std::ranges::sort(joins_.values);
        return is_read_elsewhere || has_empty_part || !has_one_split_ ? Joins{} : joins_;
    }

private:
    void visit(ValueId value) {
        if (is_within_[value]) return;
        is_within_[value] = true;
        const Node *node = values_.is_bound(value) ? nullptr : values_.producer(value);
        const bool is_here = node != nullptr && program_.type(value).shape == shape_;
        if (is_here && node->op == "concatenate") {
            add(*node);
            outside_.insert(outside_.end(), node->operands.begin(), node->operands.end());
        } else if (is_here && is_elementwise(*node)) {
            for (const ValueId operand : node->operands) visit(operand);
        } else if (node != nullptr) {
            outside_.push_back(value);
        }
    }

    void add(const Node &join) {
        const int axis = int(join.attributes.at("dimension").integer.value());
        std::vector<Extent> parts;
        for (const ValueId operand : join.operands) parts.push_back(program_.type(operand).shape[size_t(axis)]);
        if (joins_.values.empty()) joins_.parts = parts, joins_.axis = axis;
        has_one_split_ = has_one_split_ && joins_.parts == parts && joins_.axis == axis;
        joins_.values.push_back(join.results[0]);
    }

    const Program &program_;
    const Values &values_;
    Extents shape_;
    std::vector<bool> is_within_;
    std::vector<ValueId> outside_;
    Joins joins_;
    bool has_one_split_ = true;
};

/// Divides results of one shape by the concatenations that they read. If a result overwrites an argument, all of them stay in one loop,
/// because the others may read the argument.
std::vector<std::pair<std::vector<int>, Joins>> by_joins(const Lowering &lowering, const std::vector<int> &results) {
    const Program &program = lowering.kernel.program;
    const bool overwrites = std::ranges::any_of(results, [&](int result) { return program.results[result].argument >= 0; });
    if (overwrites || lowering.target.has_gpu_feature()) return {{results, {}}};
    std::vector<std::pair<std::vector<int>, Joins>> groups;
    for (const int result : results) {
        const Joins joins = JoinSearch(program, lowering.values).find(program.results[result].value);
        const auto known = std::ranges::find_if(groups, [&](const auto &group) { return group.second.values == joins.values; });
        if (known == groups.end())
            groups.push_back({{result}, joins});
        else
            known->first.push_back(result);
    }
    return groups;
}

} // namespace

void lower_map(Lowering &lowering) {
    share_single_elements(lowering);
    const Program &program = lowering.kernel.program;
    for (const std::vector<int> &of_shape : results_by_shape(program)) {
        if (lowering.target.has_feature(Halide::Target::CUDA)) lowering.values.move_adjacent(elements_of_access(program, of_shape));
        const std::vector<Halide::Var> vars = axis_vars(program.type(program.results[of_shape[0]].value).rank());
        for (const auto &[results, joins] : by_joins(lowering, of_shape)) add_output(lowering, results, vars, joins);
    }
}

} // namespace scalide

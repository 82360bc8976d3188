#include "transforms/analysis/graph.h"
#include "expr/base_operators.h"
#include "ir/shape.h"
#include "transforms/analysis/updates.h"
#include <algorithm>

namespace scalide {

namespace {

/// Limit for array arithmetic that every kernel may recompute, for each element.
constexpr int repeatable_cost = 8;
/// Limit for rank-0 arithmetic. It costs little per kernel, but Halide must schedule each operation. Computing the scale of a state from
/// several amax values takes about 60 operations, and recomputing it saves a kernel. Shared operations count once for each path to them.
constexpr int repeatable_scalar_cost = 512;
/// Limit for the number of stored rank-0 values that recomputed arithmetic reads, because each kernel reads all of them. The norm of a
/// hundred tensors is therefore stored. Otherwise the hundred kernels that divide by it would each add up a hundred squares.
constexpr size_t most_repeated_reads = 32;
/// Limit for rank-0 arithmetic on targets where every thread recomputes it. It is enough for products of scales.
constexpr int repeatable_in_threads = 4;

void add_once(std::vector<Read> &reads, const Read &read) {
    const bool known = std::ranges::any_of(
        reads, [&](const Read &other) { return other.value == read.value && other.reader == read.reader && other.access == read.access; });
    if (!known) reads.push_back(read);
}

} // namespace

FuseGraph::FuseGraph(const Program &program, bool prepares_kernels, std::set<int> repeated)
    : program_(program), prepares_kernels_(prepares_kernels), repeated_(std::move(repeated)), producers_(producers(program)),
      overwriters_(program.values.size(), -1), floating_(program.nodes.size()), is_result_(program.values.size()),
      is_copied_(program.values.size()), from_arguments_(program.values.size()), repeated_cost_(program.values.size()),
      sources_(program.values.size()), reads_(program.nodes.size()), readers_(program.values.size()) {
    const NominalSizes sizes(program);
    for (const Value &value : program.values) elements_.push_back(sizes.elements(value.type.shape));
    for (const Argument &argument : program.arguments) {
        sources_[argument.value] = {{argument.value, -1, Access::same}};
        from_arguments_[argument.value] = true;
    }
    for (const Result &result : program.results) {
        is_result_[result.value] = true;
        if (result.argument >= 0 && producers_[result.value] >= 0) add_overwrites(program.arguments[result.argument].value, result.value);
    }
    for (const Overwrite &overwrite : overwrites_)
        if (overwriters_[overwrite.argument] < 0) overwriters_[overwrite.argument] = producers_[overwrite.value];
    overwrites_by_node_ = overwrites_;
    std::ranges::stable_sort(overwrites_by_node_, {}, [this](const Overwrite &overwrite) { return producers_[overwrite.value]; });
    for (const Node &node : program.nodes)
        if (is_copy(program, node)) is_copied_[node.operands[0]] = true;
    for (int node = 0; node < static_cast<int>(program.nodes.size()); ++node) {
        decide_floating(node);
        find_sources(node);
        if (!is_floating(node)) add_reads(node);
    }
}

void FuseGraph::add_overwrites(ValueId argument, ValueId value) {
    const auto is_scatter = [this](int node) { return find_base_operator(program_.nodes[node].op)->shape == Shape::scatter; };
    const std::vector<int> updates = updates_between(program_, producers_, argument, value);
    if (updates.empty() || !std::ranges::all_of(updates, is_scatter)) return overwrites_.push_back({argument, value});
    for (const int node : updates) overwrites_.push_back({program_.nodes[node].operands[0], program_.nodes[node].results[0]});
}

ValueId FuseGraph::last_value(const Overwrite &overwrite) const {
    ValueId value = overwrite.value;
    while (overwriters_[value] >= 0) value = program_.nodes[overwriters_[value]].results[0];
    return value;
}

std::span<const Overwrite> FuseGraph::overwrites_by(int node) const {
    const auto found =
        std::ranges::equal_range(overwrites_by_node_, node, {}, [this](const Overwrite &each) { return producers_[each.value]; });
    return {found.begin(), found.end()};
}

void FuseGraph::decide_floating(int index) {
    const Node &node = program_.nodes[index];
    if (find_base_operator(node.op) == nullptr || node.results.size() != 1)
        throw InternalError("internal error: fuse: '" + node.op + "' is no base operator");
    const ValueId result = node.results[0];
    const Shape shape = shapes_.emplace_back(shape_of(node));
    bool leaves_arrays = program_.type(result).is_scalar(); // a rank-0 element of an array is stored once
    leaves_arrays &= std::ranges::any_of(node.operands, [&](ValueId value) { return !program_.type(value).is_scalar(); });
    const bool is_free = shape == Shape::source || shape == Shape::movement || is_decoding(program_, node);
    const bool from_arguments = std::ranges::all_of(node.operands, [&](ValueId value) { return from_arguments_[value]; });
    if (is_result_[result] || leaves_arrays || is_copy(program_, node) || (is_copied_[result] && reads_overwritten(node))) return;
    repeated_cost_[result] = cost_of(node);
    for (ValueId operand : node.operands) repeated_cost_[result] += repeated_cost_[operand];
    const auto is_scalar = [&](ValueId value) { return program_.type(value).is_scalar(); };
    const bool is_rank_0 = is_scalar(result) && std::ranges::all_of(node.operands, is_scalar);
    floating_[index] = is_free || repeated_.contains(index) || ((from_arguments || (is_rank_0 && prepares_kernels_)) && is_cheap(index));
    from_arguments_[result] = floating_[index] && from_arguments;
    // A rank-0 chain that exceeds a limit is stored, and its stored value keeps the limit as its cost. Values computed from it are then
    // stored too. Otherwise each kernel would recompute the part of a long chain between two stored values.
    const bool is_long = is_rank_0 && (repeated_cost_[result] > repeatable_scalar_cost || inputs_of(node).size() > most_repeated_reads);
    if (!floating_[index]) repeated_cost_[result] = is_long ? repeatable_scalar_cost : 0;
}

/// True if the node reads an argument that is overwritten. When its result is copied, the argument may already have its new value.
bool FuseGraph::reads_overwritten(const Node &node) const {
    return std::ranges::any_of(node.operands, [&](ValueId operand) {
        return std::ranges::any_of(sources_[operand], [&](const Read &read) { return overwriters_[read.value] >= 0; });
    });
}

bool FuseGraph::is_cheap(int index) const {
    const Node &node = program_.nodes[index];
    const Type &type = program_.type(node.results[0]);
    if (shape(index) != Shape::elementwise || is_rounding(program_, node) || type.dtype == Dtype::f64) return false;
    const auto reads_f64 = [&](ValueId value) { return program_.type(value).dtype == Dtype::f64; };
    if (std::ranges::any_of(node.operands, reads_f64)) return false;
    const int most = prepares_kernels_ ? repeatable_scalar_cost : repeatable_in_threads;
    if (type.is_scalar())
        return repeated_cost_[node.results[0]] <= most && !is_expensive(node) && inputs_of(node).size() <= most_repeated_reads;
    if (repeated_cost_[node.results[0]] > repeatable_cost) return false;
    double bytes = 0;
    for (ValueId value : inputs_of(node)) bytes += this->bytes(value);
    return bytes <= 2 * this->bytes(node.results[0]); // otherwise storing it saves its readers more bytes than it costs
}

std::set<ValueId> FuseGraph::inputs_of(const Node &node) const {
    std::set<ValueId> inputs;
    for (ValueId operand : node.operands)
        for (const Read &read : sources_[operand]) inputs.insert(read.value);
    return inputs;
}

void FuseGraph::find_sources(int index) {
    const Node &node = program_.nodes[index];
    for (ValueId result : node.results) {
        if (!is_floating(index)) {
            sources_[result] = {{result, -1, Access::same}};
            continue;
        }
        for (ValueId operand : node.operands) {
            const Access outer = access_of(program_, node, operand);
            for (const Read &read : sources_[operand]) add_once(sources_[result], {read.value, -1, compose(read.access, outer)});
        }
    }
}

void FuseGraph::add_reads(int index) {
    const Node &node = program_.nodes[index];
    for (ValueId operand : node.operands) {
        const Access outer = access_of(program_, node, operand);
        for (const Read &read : sources_[operand]) add_once(reads_[index], {read.value, index, compose(read.access, outer)});
    }
    for (const Read &read : reads_[index]) readers_[read.value].push_back(read);
}

} // namespace scalide

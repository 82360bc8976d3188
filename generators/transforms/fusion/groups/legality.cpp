#include "transforms/fusion/groups/legality.h"
#include "expr/base_operators.h"
#include "ir/shape.h"
#include "kinds/dot_general.h"
#include "kinds/small.h"
#include "transforms/fusion/groups/overwrites.h"
#include "transforms/fusion/groups/places.h"
#include <algorithm>

namespace scalide {

namespace {

/// Halide's compile time grows faster than the number of stages (reductions, matmuls, results). Other arithmetic costs less.
constexpr int most_stages = 15;
/// Limit for nodes of a kernel. A node counts once for each index at which it is computed (fusion/groups/places.h). The gradient of a
/// product of 200 elements is a tree of slices and pads. With 400 of them in a kernel it compiles in 24 s, with 100 in 4 s (2-core Zen 5,
/// 2026-11-22).
constexpr int most_nodes = 120;
/// Limit for arithmetic in the packing of an operand. It runs once for each element and each block that packs the element.
constexpr int most_prologue_cost = 12;

/// A producer and a consumer. Usually the consumer reads the producer; otherwise `reads` is empty.
struct Edge {
    const Groups &groups;
    int producer_id, consumer_id;
    const Group &producer, &consumer;
    std::vector<Read> reads;
    const FuseGraph &graph() const { return groups.graph(); }
    const Program &program() const { return groups.program(); }
};

/// The shape over which a node iterates: the operand's shape for reductions, otherwise the result's.
Extents walked(const FuseGraph &graph, int node) {
    const Node &n = graph.program().nodes[node];
    return without_ones(graph.program().type(graph.shape(node) == Shape::reduce ? n.operands[0] : n.results[0]).shape);
}

bool all_walk(const FuseGraph &graph, const Group &group, const std::vector<Extents> &shapes) {
    return !group.moves &&
           std::ranges::all_of(group.nodes, [&](int node) { return std::ranges::find(shapes, walked(graph, node)) != shapes.end(); });
}

bool all_reads_are(const Edge &edge, std::initializer_list<Access> accesses) {
    return std::ranges::all_of(edge.reads, [&](const Read &read) { return std::ranges::find(accesses, read.access) != accesses.end(); });
}

Extents shape_read(const Edge &edge) { return without_ones(edge.program().type(edge.reads.front().value).shape); }

/// The cost of a group's arithmetic. A large number if one of its nodes must not be recomputed.
int repeated_cost(const Program &program, const Group &group) {
    int cost = 0;
    for (int node : group.nodes) {
        const bool once = is_expensive(program.nodes[node]) || is_rounding(program, program.nodes[node]);
        cost += once ? 2 * most_prologue_cost : cost_of(program.nodes[node]);
    }
    return cost;
}

bool map_reads_map(const Edge &edge) {
    if (all_reads_are(edge, {Access::same})) return true;
    const auto repeats = [&](const Read &read) {
        return edge.graph().elements(edge.program().nodes[read.reader].results[0]) > edge.graph().elements(read.value);
    };
    const bool is_cheap = repeated_cost(edge.program(), edge.producer) <= most_prologue_cost;
    return edge.groups.is_read_only_by(edge.producer_id, edge.consumer_id) && (is_cheap || std::ranges::none_of(edge.reads, repeats));
}

/// True if the consumer reads a scalar and the producer reduces whole arrays.
bool reads_totals(const Edge &edge) {
    const auto is_scalar = [&](ValueId value) { return edge.program().type(value).is_scalar(); };
    const auto folds_all = [&](int node) {
        return edge.graph().shape(node) == Shape::reduce && is_scalar(edge.program().nodes[node].results[0]);
    };
    return std::ranges::any_of(edge.reads, [&](const Read &read) { return is_scalar(read.value); }) &&
           std::ranges::any_of(edge.producer.nodes, folds_all);
}

/// True if every value of `other` has one element for each element or each row of `row`.
bool fits_rows(const Edge &edge, const Group &row, const Group &other) {
    const bool is_one_row = row.kept.empty();
    if (!all_walk(edge.graph(), other, {row.iteration, row.kept}) || reads_totals(edge)) return false;
    return is_one_row ? all_reads_are(edge, {Access::same, Access::rows, Access::scalar})
                      : all_reads_are(edge, {Access::same, Access::rows});
}
bool map_feeds_row(const Edge &edge) { return fits_rows(edge, edge.consumer, edge.producer); }
bool row_feeds_map(const Edge &edge) { return fits_rows(edge, edge.producer, edge.consumer); }
bool row_feeds_row(const Edge &edge) {
    return edge.consumer.iteration == edge.producer.iteration && edge.consumer.kept == edge.producer.kept &&
           fits_rows(edge, edge.producer, edge.consumer);
}

/// True for elementwise arithmetic before a reduction, if no other kernel reads its results.
bool map_feeds_reduction(const Edge &edge) {
    return edge.groups.is_read_only_by(edge.producer_id, edge.consumer_id) && all_reads_are(edge, {Access::same}) &&
           all_walk(edge.graph(), edge.producer, {shape_read(edge)});
}

/// True if the consumer reduces, over all axes, an array of one of these shapes that the producer computes.
bool is_reduced_beside(const Edge &edge, const std::vector<Extents> &shapes) {
    return std::ranges::find(shapes, shape_read(edge)) != shapes.end() && all_reads_are(edge, {Access::same}) &&
           all_walk(edge.graph(), edge.consumer, {shape_read(edge)});
}
bool row_feeds_full(const Edge &edge) { return is_reduced_beside(edge, {edge.producer.iteration, edge.producer.kept}); }

/// True if each reduction of the consumer is computed from a reduction of the producer. A column kernel reduces all elements of its results
/// in one pass behind its columns; for a reduction of other arrays it has no pass.
bool reduces_what_was_reduced(const Edge &edge) {
    std::set<ValueId> reduced;
    for (int node : nodes_of(edge.groups, edge.producer_id, edge.consumer_id)) {
        const bool reduces = edge.graph().shape(node) == Shape::reduce, is_of_consumer = edge.groups.group_of(node) == edge.consumer_id;
        const bool reads_reduced =
            std::ranges::any_of(edge.graph().reads(node), [&](const Read &read) { return reduced.contains(read.value); });
        if (reduces && is_of_consumer && !reads_reduced) return false;
        if (reduces || reads_reduced) reduced.insert(edge.program().nodes[node].results[0]);
    }
    return true;
}
bool column_feeds_full(const Edge &edge) { return is_reduced_beside(edge, {edge.producer.kept}) && reduces_what_was_reduced(edge); }

/// True for elementwise arithmetic before a node that reads each element once, or that copies the elements first.
bool map_feeds_scan(const Edge &edge) {
    return edge.groups.is_read_only_by(edge.producer_id, edge.consumer_id) && all_reads_are(edge, {Access::same}) && !edge.producer.moves;
}

/// Like map_feeds_scan, but the arithmetic must be cheap, because it may run once for each element of a window.
bool map_feeds_scatter(const Edge &edge) {
    return map_feeds_scan(edge) && repeated_cost(edge.program(), edge.producer) <= most_prologue_cost;
}

/// A contract kernel runs the reduction over a result that it stores. So at least one value of its shape must be a result of the program,
/// or be read outside the two groups.
bool contract_feeds_full(const Edge &edge) {
    const auto is_stored = [&](ValueId value) {
        const auto is_elsewhere = [&](const Read &read) {
            const int group = edge.groups.group_of(read.reader);
            return group != edge.producer_id && group != edge.consumer_id;
        };
        return without_ones(edge.program().type(value).shape) == edge.producer.iteration &&
               (edge.graph().is_result(value) || std::ranges::any_of(edge.graph().readers(value), is_elsewhere));
    };
    return is_reduced_beside(edge, {edge.producer.iteration}) && std::ranges::any_of(edge.groups.outputs(edge.producer_id), is_stored);
}

/// True if the consumer is elementwise on the shape of what it reads.
bool feeds_elementwise(const Edge &edge) {
    return all_reads_are(edge, {Access::same}) && all_walk(edge.graph(), edge.consumer, {shape_read(edge)});
}

/// A window kernel iterates over all axes of its result, including axes of extent 1, because a tile of a convolution lies along two of
/// them. So the consumer must keep them.
bool window_feeds_map(const Edge &edge) {
    const Extents &shape = edge.program().type(edge.reads.front().value).shape;
    const auto keeps_axes = [&](int node) { return edge.program().type(edge.program().nodes[node].results[0]).shape == shape; };
    return feeds_elementwise(edge) && std::ranges::all_of(edge.consumer.nodes, keeps_axes);
}

/// Returns the nodes of a contract group that its dot_general depends on, and the dot_general.
std::vector<int> prologue_of(const Groups &groups, const Group &group) {
    const FuseGraph &graph = groups.graph();
    std::vector<int> found;
    for (int node : group.nodes)
        if (graph.shape(node) == Shape::contract) found.push_back(node);
    for (size_t i = 0; i < found.size(); ++i)
        for (const Read &read : graph.reads(found[i]))
            if (const int node = graph.producer(read.value); node >= 0 && std::ranges::binary_search(group.nodes, node))
                found.push_back(node);
    return found;
}

/// True if the map can run in the packing of an operand or in the epilogue. In both cases no other kernel may read the map's results.
bool map_feeds_contract(const Edge &edge) {
    if (!edge.groups.is_read_only_by(edge.producer_id, edge.consumer_id)) return false;
    const std::vector<int> prologue = prologue_of(edge.groups, edge.consumer);
    const auto is_operand = [&](const Read &read) { return std::ranges::find(prologue, read.reader) != prologue.end(); };
    if (std::ranges::all_of(edge.reads, is_operand)) return repeated_cost(edge.program(), edge.producer) <= most_prologue_cost;
    return std::ranges::none_of(edge.reads, is_operand) && all_reads_are(edge, {Access::same}) &&
           all_walk(edge.graph(), edge.producer, {edge.consumer.iteration});
}

enum class Shapes { of_producer, of_consumer };

/// States what may be fused, for one pair of kinds.
struct FusionRule {
    KernelKind producer, consumer;
    bool (*allows)(const Edge &); ///< null: never
    Shapes shapes;                ///< whether the fused kernel has the producer's kind and shapes or the consumer's
    std::string_view reason;      ///< printed if the fusion is not allowed
};

using enum KernelKind;
constexpr std::string_view needs_all_elements = "a value that depends on all elements is known only after the kernel that computes it";
constexpr std::string_view needs_all_rows = "a sum over the rows needs all rows, so it reads the stored array";
constexpr std::string_view operand_is_read_often = "a matmul reads its operands many times, so they are stored first";
constexpr std::string_view window_reads_often = "a window reads each element many times, so the elements are stored first";
constexpr std::string_view window_makes_places = "the result of a window operator is stored before it is read at other indices";
constexpr std::string_view not_row_by_row = "the consumer does not iterate over the same rows";

constexpr FusionRule rules[] = {
    {map, map, map_reads_map, Shapes::of_consumer, "the consumer reads it at other indices, so it would be computed more than once"},
    {map, row, map_feeds_row, Shapes::of_consumer, not_row_by_row},
    {map, column, map_feeds_reduction, Shapes::of_consumer, "it is stored for other kernels anyway, so the reduction reads it"},
    {map, full, map_feeds_reduction, Shapes::of_consumer, "it is stored for other kernels anyway, so the reduction reads it"},
    {map, contract, map_feeds_contract, Shapes::of_consumer,
     "an operand is computed while it is packed only if it is cheap, not rounded, and used by this matmul only"},
    {row, map, row_feeds_map, Shapes::of_producer, not_row_by_row},
    {row, row, row_feeds_row, Shapes::of_producer, not_row_by_row},
    {row, column, nullptr, Shapes::of_producer, needs_all_rows},
    {row, full, row_feeds_full, Shapes::of_producer, "the reduction also reads arrays that the row kernel does not compute"},
    {row, contract, nullptr, Shapes::of_producer, operand_is_read_often},
    {column, map, feeds_elementwise, Shapes::of_producer, "the reduction must end before its result is read at other indices"},
    {column, row, nullptr, Shapes::of_producer, "the column reduction must end before its result is read by rows"},
    {column, column, nullptr, Shapes::of_producer, "the first column reduction must end before the second begins"},
    {column, full, column_feeds_full, Shapes::of_producer, "the reduction also reads arrays that the column kernel does not compute"},
    {column, contract, nullptr, Shapes::of_producer, operand_is_read_often},
    {full, map, nullptr, Shapes::of_producer, needs_all_elements},
    {full, row, nullptr, Shapes::of_producer, needs_all_elements},
    {full, column, nullptr, Shapes::of_producer, needs_all_elements},
    {full, full, nullptr, Shapes::of_producer, needs_all_elements},
    {full, contract, nullptr, Shapes::of_producer, needs_all_elements},
    {contract, map, feeds_elementwise, Shapes::of_producer, "the consumer reads the result of the matmul at other indices"},
    {contract, row, nullptr, Shapes::of_producer, "a tile of a matmul does not contain whole rows"},
    {contract, column, nullptr, Shapes::of_producer, "a tile of a matmul does not contain whole columns"},
    {contract, full, contract_feeds_full, Shapes::of_producer,
     "the reduction also reads other arrays, or nothing else reads the result of the matmul"},
    {contract, contract, nullptr, Shapes::of_producer, operand_is_read_often},
    {map, scan, map_feeds_scan, Shapes::of_consumer, "it is stored for other kernels anyway, or read at other indices"},
    {map, scatter, map_feeds_scatter, Shapes::of_consumer, "updates and indices are computed in the same kernel only if they are cheap"},
    {map, sort, map_feeds_scan, Shapes::of_consumer, "it is stored for other kernels anyway, or read at other indices"},
    {scan, map, feeds_elementwise, Shapes::of_producer, "the scan must end before its result is read at other indices"},
    {map, window, nullptr, Shapes::of_consumer, window_reads_often},
    {row, window, nullptr, Shapes::of_consumer, window_reads_often},
    {column, window, nullptr, Shapes::of_consumer, window_reads_often},
    {full, window, nullptr, Shapes::of_consumer, needs_all_elements},
    {contract, window, nullptr, Shapes::of_consumer, window_reads_often},
    {window, map, window_feeds_map, Shapes::of_producer, window_makes_places},
    {window, row, nullptr, Shapes::of_producer, window_makes_places},
    {window, column, nullptr, Shapes::of_producer, window_makes_places},
    {window, full, nullptr, Shapes::of_producer, window_makes_places},
    {window, contract, nullptr, Shapes::of_producer, operand_is_read_often},
    {window, window, nullptr, Shapes::of_producer, window_reads_often},
};

constexpr std::string_view library_computes = "cuBLASLt computes this matmul, so other operators run before or after it";
constexpr std::string_view tiles_alone =
    "kernels that work on tiles (transposed copies, tiled reductions) are fused with scalar kernels only";
constexpr std::string_view walks_alone = "scans, scatters and sorts are fused with elementwise kernels only";
constexpr std::string_view scalar_reads = "scalar operators run after the kernels that compute their operands";
constexpr std::string_view scalar_is_read = "scalar operators run once, before the kernels that need their results";

/// Names a value that shows why another kernel must run between the two. Either `last` reads the value, or a group directly before `last`
/// computes it. That group depends on `first`.
std::string value_between(const Groups &groups, int first, int last) {
    const auto needs_first = [&](int between) { return between != first && groups.has_path(first, between); };
    const int between = *std::ranges::find_if(groups.before(last), needs_first);
    const std::vector<Read> reads = groups.reads_between(between, last);
    return groups.program().value_name(reads.empty() ? groups.outputs(between).front() : reads.front().value);
}

} // namespace

bool is_full(const Groups &groups, int group) {
    return !groups[group].library.empty() || std::ssize(groups[group].nodes) >= most_nodes || groups.stages(group) >= most_stages;
}

std::string why_apart(const Groups &groups, int first, int second) {
    const auto nodes = std::ssize(groups[first].nodes) + std::ssize(groups[second].nodes);
    if (nodes > most_nodes || groups.stages(first) + groups.stages(second) > most_stages) return "the kernel would have too many stages";
    return overwrites_safely(groups, nodes_of(groups, first, second))
               ? ""
               : "an argument would be overwritten while other parts of the kernel still read it";
}

namespace {

Verdict refuse(std::string_view reason) { return {false, {}, std::string(reason)}; }

/// Returns null if there is no rule for this pair.
const FusionRule *find_rule(KernelKind producer, KernelKind consumer) {
    const auto *rule =
        std::ranges::find_if(rules, [&](const FusionRule &row) { return row.producer == producer && row.consumer == consumer; });
    return rule == std::end(rules) ? nullptr : rule;
}

bool moves_within(const Edge &edge) {
    return !all_reads_are(edge, {Access::same, Access::rows, Access::scalar}) || edge.producer.moves || edge.consumer.moves;
}

} // namespace

bool may_join(KernelKind producer, KernelKind consumer) {
    const FusionRule *rule = find_rule(producer, consumer);
    return rule != nullptr && rule->allows != nullptr;
}

namespace {

/// Returns why the kinds of two groups forbid a fusion. Empty if they do not.
std::string_view why_never(const Group &producer, const Group &consumer) {
    if (!producer.library.empty() || !consumer.library.empty()) return library_computes;
    const bool is_tiled = producer.kind == tiled || consumer.kind == tiled;
    if (is_tiled && producer.kind != scalar && consumer.kind != scalar) return tiles_alone;
    const FusionRule *rule = find_rule(producer.kind, consumer.kind);
    if (rule != nullptr) return rule->allows == nullptr ? rule->reason : "";
    if (consumer.kind != scalar && producer.kind != scalar) return walks_alone;
    return consumer.kind == scalar ? scalar_reads : scalar_is_read;
}

} // namespace

Verdict judge(const Groups &groups, int producer, int consumer) {
    const Edge edge{groups, producer, consumer, groups[producer], groups[consumer], groups.reads_between(producer, consumer)};
    if (const std::string_view reason = why_never(edge.producer, edge.consumer); !reason.empty()) return refuse(reason);
    const FusionRule *rule = find_rule(edge.producer.kind, edge.consumer.kind);
    if (edge.reads.empty()) return refuse("one kernel must run after the other, but reads nothing that it computes");
    if (!rule->allows(edge)) return refuse(rule->reason);
    if (const std::string reason = why_apart(groups, producer, consumer); !reason.empty()) return refuse(reason);
    Verdict verdict{true, rule->shapes == Shapes::of_producer ? edge.producer : edge.consumer, ""};
    verdict.merged.moves = moves_within(edge);
    if (verdict.merged.moves && count_places(groups, nodes_of(groups, producer, consumer), most_nodes + 1) > most_nodes)
        return refuse("the kernel would compute too many values more than once, at other indices");
    // This check is last, because a search through the graph costs most.
    return groups.has_path_around(producer, consumer) ? refuse("another kernel must run between the two") : verdict;
}

namespace {

/// Returns why a kernel of class small does not contain the nodes of the other group.
std::string why_not_with_small(const Groups &groups, int other) {
    for (const int node : groups[other].nodes)
        if (const std::string why = why_not_small(groups.program(), groups.program().nodes[node]); !why.empty())
            return "in a small kernel, each operator must be " + why;
    return "the small kernel would have too many nodes, or overwrite an argument";
}

} // namespace

std::string why_two_kernels(const Groups &groups, int producer, int consumer) {
    if (groups[producer].kind == small) return why_not_with_small(groups, consumer);
    if (groups[consumer].kind == small) return why_not_with_small(groups, producer);
    const bool may_be_one = why_never(groups[producer], groups[consumer]).empty();
    if (may_be_one && groups.has_path_around(producer, consumer))
        return "the kernel that computes " + value_between(groups, producer, consumer) + " must run between the two";
    return judge(groups, producer, consumer).reason;
}

namespace {

/// True if the column group is one reduce_sum of an operand of the dot_general over its contracted axis. Elementwise nodes may follow the
/// sum.
bool is_sum_of_operand(const Groups &groups, const Group &contract, const Group &column) {
    const Program &program = groups.program();
    const FuseGraph &graph = groups.graph();
    const auto shape_is = [&](Shape shape) { return [&, shape](int node) { return graph.shape(node) == shape; }; };
    if (std::ranges::count_if(column.nodes, shape_is(Shape::reduce)) != 1) return false;
    const Node &sum = program.nodes[*std::ranges::find_if(column.nodes, shape_is(Shape::reduce))];
    const Node &dot = program.nodes[*std::ranges::find_if(contract.nodes, shape_is(Shape::contract))];
    const auto is_after = [&](int node) { return walked(graph, node) == column.kept || graph.shape(node) == Shape::reduce; };
    return std::ranges::all_of(column.nodes, is_after) && sums_operand(sum, dot);
}

} // namespace

bool share_an_array(const Groups &groups, int first, int second) {
    const std::vector<ValueId> &inputs = groups.inputs(first);
    return std::ranges::any_of(groups.inputs(second), [&](ValueId value) {
        return without_ones(groups.program().type(value).shape) == groups[first].iteration &&
               std::ranges::find(inputs, value) != inputs.end();
    });
}

namespace {

bool rows_beside(const Groups &groups, int first, int second) {
    return groups[first].iteration == groups[second].iteration && groups[first].kept == groups[second].kept &&
           share_an_array(groups, first, second);
}
bool sum_beside_contract(const Groups &groups, int contract, int column) {
    return is_sum_of_operand(groups, groups[contract], groups[column]);
}

/// True if the reductions are over arrays that the epilogue of the matmul reads. Example: the amax of a weight, beside its update.
bool totals_beside_contract(const Groups &groups, int contract, int full) {
    const FuseGraph &graph = groups.graph();
    const Program &program = groups.program();
    const std::vector<int> &nodes = groups[contract].nodes, prologue = prologue_of(groups, groups[contract]);
    const Node &dot = program.nodes[prologue.front()];
    const auto has_its_shape = [&](ValueId value) { return program.type(value).shape == program.type(dot.results[0]).shape; };
    const auto is_in_epilogue = [&](const Read &read) {
        return read.access == Access::same && std::ranges::binary_search(nodes, read.reader) &&
               std::ranges::find(prologue, read.reader) == prologue.end();
    };
    const auto is_read_there = [&](const Read &read) {
        return program.type(read.value).is_scalar() || groups.producer_group(read.value) == full ||
               (read.access == Access::same && has_its_shape(read.value) && std::ranges::any_of(graph.readers(read.value), is_in_epilogue));
    };
    return graph.prepares_kernels() && std::ranges::all_of(groups[full].nodes, [&](int node) {
               const Node &each = program.nodes[node];
               const bool reduces = graph.shape(node) == Shape::reduce;
               return has_its_shape(reduces ? each.operands[0] : each.results[0]) &&
                      (!reduces || program.type(each.results[0]).is_scalar()) && std::ranges::all_of(graph.reads(node), is_read_there);
           });
}
bool always(const Groups &, int, int) { return true; }

struct BesideRule {
    KernelKind first, second;
    bool (*allows)(const Groups &, int first, int second);
};

constexpr BesideRule beside_rules[] = {
    {map, map, always},
    {column, column, always},
    {full, full, always},
    {row, row, rows_beside},
    {contract, column, sum_beside_contract},
    {contract, full, totals_beside_contract},
};

/// True if `later` needs nothing of `earlier`. It may overwrite an argument that `earlier` reads: why_apart() then finds out whether one
/// kernel reads each element before it overwrites it.
bool may_run_at_once(const Groups &groups, int earlier, int later) {
    return groups.reads_between(earlier, later).empty() && !groups.has_path_around(earlier, later);
}

} // namespace

Verdict judge_as_strangers(const Groups &groups, int first, int second) {
    if (!groups[first].library.empty() || !groups[second].library.empty()) return refuse(library_computes);
    const auto *rule = std::ranges::find_if(
        beside_rules, [&](const BesideRule &row) { return row.first == groups[first].kind && row.second == groups[second].kind; });
    if (rule == std::end(beside_rules)) return refuse("kernels of different kinds");
    if (!rule->allows(groups, first, second)) return refuse("they share no array");
    if (const std::string reason = why_apart(groups, first, second); !reason.empty()) return refuse(reason);
    Verdict verdict{true, groups[first], ""};
    verdict.merged.moves = groups[first].moves || groups[second].moves;
    return verdict;
}

Verdict judge_beside(const Groups &groups, int first, int second) {
    const Verdict verdict = judge_as_strangers(groups, first, second);
    if (!verdict.allowed || (may_run_at_once(groups, first, second) && may_run_at_once(groups, second, first))) return verdict;
    return refuse("one kernel depends on the other");
}

} // namespace scalide

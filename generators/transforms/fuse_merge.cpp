#include "transforms/fuse_merge.h"
#include "transforms/fuse_legality.h"
#include "transforms/fuse_order.h"
#include "transforms/fuse_overwrites.h"
#include <algorithm>
#include <limits>
#include <optional>
#include <queue>

namespace scalide {

namespace {

/// Two groups, and the bytes that need not be moved when they are one.
struct Candidate {
    double saved = 0;
    int producer = -1, consumer = -1;
    /// Most bytes first; of equals the producer, then the consumer, that comes first.
    bool operator<(const Candidate &other) const {
        return std::tuple(saved, -producer, -consumer) < std::tuple(other.saved, -other.producer, -other.consumer);
    }
};

double saved_bytes(const Groups &groups, int producer, int consumer) {
    const FuseGraph &graph = groups.graph();
    const std::vector<ValueId> read_before = groups.inputs(producer);
    double bytes = 0;
    for (ValueId value : groups.inputs(consumer)) {
        const double size = graph.sizes().bytes(groups.program().type(value));
        const bool is_made_here = groups.producer_group(value) == producer;
        if (is_made_here || std::ranges::find(read_before, value) != read_before.end()) bytes += size;
        const auto is_inside = [&](const Read &read) {
            const int reader = groups.group_of(read.reader);
            return reader == producer || reader == consumer;
        };
        if (is_made_here && !graph.is_result(value) && std::ranges::all_of(graph.readers(value), is_inside)) bytes += size;
    }
    return bytes;
}

/// When groups can run, counted in array kernels before them.
struct Depths {
    std::vector<int> earliest, latest; ///< by group
    bool overlap(int a, int b) const { return earliest[a] <= latest[b] && earliest[b] <= latest[a]; }
};

Depths find_depths(const Groups &groups) {
    const std::vector<int> order = run_order(groups);
    const auto step = [&](int group) { return groups[group].kind == KernelKind::scalar ? 0 : 1; };
    Depths depths{std::vector<int>(groups.size()), std::vector<int>(groups.size(), std::numeric_limits<int>::max())};
    int last = 0;
    for (int group : order) {
        last = std::max(last, depths.earliest[group]);
        for (int later : groups.after(group))
            depths.earliest[later] = std::max(depths.earliest[later], depths.earliest[group] + step(group));
    }
    for (auto group = order.rbegin(); group != order.rend(); ++group) {
        depths.latest[*group] = std::min(depths.latest[*group], last);
        for (int earlier : groups.before(*group))
            depths.latest[earlier] = std::min(depths.latest[earlier], depths.latest[*group] - step(earlier));
    }
    return depths;
}

/// For kinds whose kernels may always run together.
struct Always {
    bool operator()(int, int) const { return true; }
    void groups_changed() {}
};

/// Maps go together when neither waits for the other's depth: it would keep what it reads in memory. What nobody reads can wait.
class RunTogether {
public:
    explicit RunTogether(const Groups &groups) : groups_(groups) {}

    bool operator()(int first, int second) {
        const bool ends = groups_.after(first).empty(), other_ends = groups_.after(second).empty();
        if (ends || other_ends) return ends && other_ends;
        if (!depths_) depths_ = find_depths(groups_);
        return depths_->overlap(first, second);
    }
    void groups_changed() { depths_.reset(); }

private:
    const Groups &groups_;
    std::optional<Depths> depths_;
};

std::vector<int> alive_of_kind(const Groups &groups, KernelKind kind) {
    std::vector<int> found;
    for (int group = 0; group < groups.size(); ++group)
        if (groups.is_alive(group) && groups[group].kind == kind) found.push_back(group);
    return found;
}

/// Merges every pair of these kinds that may be merged and that `fits`.
template<typename Fits>
void merge_pairs(Groups &groups, KernelKind first_kind, KernelKind second_kind, Fits fits) {
    const std::vector<int> seconds = alive_of_kind(groups, second_kind);
    for (int first : alive_of_kind(groups, first_kind))
        for (int second : seconds) {
            if (first == second || !groups.is_alive(first) || !groups.is_alive(second) || !fits(first, second)) continue;
            const Verdict verdict = judge_beside(groups, first, second);
            if (!verdict.allowed) continue;
            groups.merge(first, second, verdict.merged);
            fits.groups_changed();
        }
}

/// By group: between which array kernels its rank-0 arithmetic can run. Overwriting an argument takes the level after its readers'.
std::vector<int> scalar_levels(const Groups &groups) {
    std::vector<int> level(groups.size());
    for (int group : run_order(groups)) {
        const bool is_scalar = groups[group].kind == KernelKind::scalar;
        for (int earlier : groups.before(group)) {
            const bool is_array = groups[earlier].kind != KernelKind::scalar;
            const bool only_first = groups.reads_between(earlier, group).empty();
            level[group] = std::max(level[group], level[earlier] + (is_scalar && (is_array || only_first)));
        }
    }
    return level;
}

/// A level whose arithmetic nobody needs before the next level joins that one: a kernel less.
void sink_levels(const Groups &groups, std::vector<int> &level) {
    std::map<int, std::set<int>> by_level;
    for (int group : alive_of_kind(groups, KernelKind::scalar)) by_level[level[group]].insert(group);
    for (auto here = by_level.begin(); here != by_level.end() && std::next(here) != by_level.end(); ++here) {
        const auto next = std::next(here);
        const auto can_wait = [&](int group) {
            return std::ranges::all_of(groups.after(group), [&](int later) {
                const bool only_first = groups[later].kind == KernelKind::scalar && groups.reads_between(group, later).empty();
                return here->second.contains(later) || level[later] - only_first >= next->first;
            });
        };
        if (!std::ranges::all_of(here->second, can_wait)) continue;
        for (int group : here->second) level[group] = next->first;
        next->second.merge(here->second);
    }
}

/// The kernel with reductions over all axes that alone gives a scalar group its values; -1 when there is none, or an argument would be
/// overwritten too soon.
int only_producer(const Groups &groups, int scalar) {
    const std::set<int> &before = groups.before(scalar);
    if (before.size() != 1) return -1;
    const int producer = *before.begin();
    const bool reduces_all = groups[producer].kind == KernelKind::full || groups[producer].kind == KernelKind::tiled;
    if (!reduces_all || groups.reads_between(producer, scalar).empty()) return -1;
    return overwrites_safely(groups, nodes_of(groups, producer, scalar)) ? producer : -1;
}

} // namespace

void merge_along_edges(Groups &groups) {
    std::priority_queue<Candidate> candidates;
    const auto add = [&](int producer, int consumer) { candidates.push({saved_bytes(groups, producer, consumer), producer, consumer}); };
    for (int group = 0; group < groups.size(); ++group)
        for (int consumer : groups.after(group)) add(group, consumer);
    while (!candidates.empty()) {
        const auto [saved, producer, consumer] = candidates.top();
        candidates.pop();
        if (!groups.is_alive(producer) || !groups.is_alive(consumer)) continue;
        const Verdict verdict = judge(groups, producer, consumer);
        if (!verdict.allowed) continue;
        groups.merge(producer, consumer, verdict.merged);
        for (int earlier : groups.before(producer)) add(earlier, producer);
        for (int later : groups.after(producer)) add(producer, later);
    }
}

void merge_side_by_side(Groups &groups) {
    merge_pairs(groups, KernelKind::contract, KernelKind::column, Always());
    merge_pairs(groups, KernelKind::row, KernelKind::row, Always());
    merge_pairs(groups, KernelKind::full, KernelKind::full, Always());
    merge_pairs(groups, KernelKind::column, KernelKind::column, Always());
    merge_pairs(groups, KernelKind::map, KernelKind::map, RunTogether(groups));
}

void merge_scalars(Groups &groups) {
    std::vector<int> level = scalar_levels(groups);
    sink_levels(groups, level);
    std::map<int, int> group_of_level;
    for (int group : run_order(groups)) {
        if (groups[group].kind != KernelKind::scalar) continue;
        const auto [place, is_new] = group_of_level.emplace(level[group], group);
        if (!is_new) groups.merge(place->second, group, groups[place->second]);
    }
    for (int scalar : alive_of_kind(groups, KernelKind::scalar))
        if (const int full = only_producer(groups, scalar); full >= 0) groups.merge(full, scalar, groups[full]);
}

} // namespace scalide

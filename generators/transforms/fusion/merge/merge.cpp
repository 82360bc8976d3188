#include "transforms/fusion/merge/merge.h"
#include "transforms/fusion/groups/legality.h"
#include "transforms/fusion/groups/overwrites.h"
#include "transforms/fusion/merge/levels.h"
#include <algorithm>
#include <limits>
#include <optional>
#include <queue>

namespace scalide {

namespace {

/// Halide's compile time grows faster than the number of rank-0 operations in a kernel: 2,662 of them took a minute. Constants count too.
constexpr int most_scalar_nodes = 384;

/// Two groups, and the bytes of memory traffic that merging them saves.
struct Candidate {
    double saved = 0;
    int producer = -1, consumer = -1;
    /// More bytes come first. On a tie, the producer that comes first wins, then the consumer.
    bool operator<(const Candidate &other) const {
        return std::tuple(saved, -producer, -consumer) < std::tuple(other.saved, -other.producer, -other.consumer);
    }
};

double saved_bytes(const Groups &groups, int producer, int consumer) {
    const FuseGraph &graph = groups.graph();
    const std::vector<ValueId> &read_before = groups.inputs(producer);
    double bytes = 0;
    for (ValueId value : groups.inputs(consumer)) {
        const double size = graph.bytes(value);
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

/// The earliest and latest time at which each group can run, counted in array kernels before it.
class Depths {
public:
    explicit Depths(const Groups &groups) : groups_(groups), earliest_(groups.size()) {
        const std::vector<int> order = groups.in_order();
        for (int group : order) renew_earliest(group);
        latest_.assign(groups.size(), order.empty() ? 0 : std::ranges::max(earliest_));
        for (auto group = order.rbegin(); group != order.rend(); ++group) renew_latest(*group);
    }

    bool overlap(int a, int b) const { return earliest_[a] <= latest_[b] && earliest_[b] <= latest_[a]; }

    /// Updates the depths after `group` has absorbed one that could run at the same depth. Depths of other groups only become tighter.
    void grown(int group) {
        renew_earliest(group);
        renew_latest(group);
        spread(groups_.after(group), [this](int next) { return renew_earliest(next) ? &groups_.after(next) : nullptr; });
        spread(groups_.before(group), [this](int next) { return renew_latest(next) ? &groups_.before(next) : nullptr; });
    }

private:
    int step(int group) const { return groups_[group].kind == KernelKind::scalar ? 0 : 1; }

    bool renew_earliest(int group) {
        const int known = earliest_[group];
        for (int earlier : groups_.before(group)) earliest_[group] = std::max(earliest_[group], earliest_[earlier] + step(earlier));
        return earliest_[group] != known;
    }
    bool renew_latest(int group) {
        const int known = latest_[group];
        for (int later : groups_.after(group)) latest_[group] = std::min(latest_[group], latest_[later] - step(group));
        return latest_[group] != known;
    }

    /// Applies `renew` to groups, and then to the groups that it returns.
    template<typename Renew>
    static void spread(const std::set<int> &start, Renew renew) {
        std::vector<int> todo(start.begin(), start.end());
        for (size_t i = 0; i < todo.size(); ++i)
            if (const std::set<int> *next = renew(todo[i])) todo.insert(todo.end(), next->begin(), next->end());
    }

    const Groups &groups_;
    std::vector<int> earliest_, latest_; ///< by group
};

std::vector<int> alive_of_kind(const Groups &groups, KernelKind kind) {
    std::vector<int> found;
    for (int group = 0; group < groups.size(); ++group)
        if (groups.is_alive(group) && groups[group].kind == kind) found.push_back(group);
    return found;
}

/// For kinds whose independent kernels may always be merged.
struct Always {
    bool operator()(int, int) const { return true; }
    void merged(int) const {}
};

/// Merges maps only if both can run at the same depth. Otherwise the merged kernel would keep inputs in memory for longer. Maps that no
/// group follows are merged with each other.
class RunTogether {
public:
    explicit RunTogether(const Groups &groups) : groups_(groups), depths_(groups) {}

    bool operator()(int first, int second) const {
        const bool ends = groups_.after(first).empty(), other_ends = groups_.after(second).empty();
        return ends || other_ends ? ends && other_ends : depths_.overlap(first, second);
    }
    void merged(int group) { depths_.grown(group); }

private:
    const Groups &groups_;
    Depths depths_;
};

/// The groups that one group depends on or that depend on it. They are found once, and updated while the group absorbs others.
class Relatives {
public:
    Relatives(const Groups &groups, int group) : groups_(groups), group_(group), is_earlier_(groups.size()), is_later_(groups.size()) {
        grown();
    }

    bool contains(int group) const { return is_earlier_[group] || is_later_[group]; }
    /// Updates the sets after the group has absorbed another, independent one.
    void grown() {
        spread(is_earlier_, [this](int group) -> const std::set<int> & { return groups_.before(group); });
        spread(is_later_, [this](int group) -> const std::set<int> & { return groups_.after(group); });
    }

private:
    template<typename Next>
    void spread(std::vector<bool> &known, Next next) {
        std::vector<int> todo{group_};
        while (!todo.empty()) {
            const int group = todo.back();
            todo.pop_back();
            for (int other : next(group)) {
                if (known[other]) continue;
                known[other] = true;
                todo.push_back(other);
            }
        }
    }

    const Groups &groups_;
    const int group_;
    std::vector<bool> is_earlier_, is_later_; ///< by group
};

/// Merges every pair of this kind that may be merged and for which `fits` is true.
template<typename Fits>
void merge_pairs(Groups &groups, KernelKind kind, Fits fits) {
    std::vector<int> seconds = alive_of_kind(groups, kind);
    for (int first : std::vector(seconds)) {
        std::optional<Relatives> relatives;
        for (int second : seconds) {
            if (!groups.is_alive(first) || is_full(groups, first)) break;
            if (first == second || !groups.is_alive(second) || !fits(first, second)) continue;
            const Verdict verdict = judge_as_strangers(groups, first, second);
            if (!verdict.allowed) continue;
            if (!relatives) relatives.emplace(groups, first);
            if (relatives->contains(second)) continue;
            groups.merge(first, second, verdict.merged);
            relatives->grown();
            fits.merged(first);
        }
        std::erase_if(seconds, [&](int second) { return !groups.is_alive(second) || is_full(groups, second); });
    }
}

/// The same for kinds whose kernels must share an array.
void merge_neighbours(Groups &groups, KernelKind first_kind, KernelKind second_kind) {
    for (int first : alive_of_kind(groups, first_kind)) {
        int second = -1;
        const auto next = [&] {
            const std::set<int> near = groups.is_alive(first) ? groups.neighbours(first) : std::set<int>();
            const auto found = near.upper_bound(second);
            return found == near.end() ? -1 : *found;
        };
        for (second = next(); second >= 0; second = next()) {
            if (groups[second].kind != second_kind) continue;
            const Verdict verdict = judge_beside(groups, first, second);
            if (verdict.allowed) groups.merge(first, second, verdict.merged);
        }
    }
}

bool overwrites_argument(const Groups &groups, int group) {
    return std::ranges::any_of(groups[group].nodes, [&](int node) { return !groups.graph().overwrites_by(node).empty(); });
}

/// Returns the kernel with reductions over all axes from which a scalar group gets all its inputs. Returns -1 if there is none, or if an
/// argument would be overwritten too soon (a tiled kernel overwrites none).
int only_producer(const Groups &groups, int scalar) {
    const std::set<int> &before = groups.before(scalar);
    if (before.size() != 1) return -1;
    const int producer = *before.begin();
    const bool reduces_all = groups[producer].kind == KernelKind::full || groups[producer].kind == KernelKind::tiled;
    if (!reduces_all || groups.reads_between(producer, scalar).empty()) return -1;
    if (groups[producer].kind == KernelKind::tiled && overwrites_argument(groups, scalar)) return -1;
    const std::vector<int> nodes = nodes_of(groups, producer, scalar);
    return nodes.size() <= 2 * most_scalar_nodes && overwrites_safely(groups, nodes) ? producer : -1;
}

} // namespace

void merge_along_edges(Groups &groups) {
    std::priority_queue<Candidate> candidates;
    const auto add = [&](int producer, int consumer) {
        if (!may_join(groups[producer].kind, groups[consumer].kind)) return;
        candidates.push({saved_bytes(groups, producer, consumer), producer, consumer});
    };
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
    merge_neighbours(groups, KernelKind::contract, KernelKind::column);
    merge_neighbours(groups, KernelKind::contract, KernelKind::full);
    merge_neighbours(groups, KernelKind::row, KernelKind::row);
    merge_pairs(groups, KernelKind::full, Always());
    merge_pairs(groups, KernelKind::column, Always());
    merge_pairs(groups, KernelKind::map, RunTogether(groups));
}

void merge_scalars(Groups &groups) {
    std::vector<bool> is_scalar(groups.size());
    for (const int group : alive_of_kind(groups, KernelKind::scalar)) is_scalar[group] = true;
    groups.merge_all(parts_of_levels(groups, is_scalar, most_scalar_nodes));
    for (int scalar : alive_of_kind(groups, KernelKind::scalar))
        if (const int full = only_producer(groups, scalar); full >= 0) groups.merge(full, scalar, groups[full]);
}

} // namespace scalide

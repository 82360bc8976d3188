#include "transforms/fusion/merge/order.h"
#include <algorithm>

namespace scalide {

namespace {

/// Bytes that are live between kernels while the groups run one by one.
class LiveBytes {
public:
    explicit LiveBytes(const Groups &groups) : groups_(groups), waiting_(groups.program().values.size()) {
        for (int group = 0; group < groups.size(); ++group)
            for (ValueId value : groups.inputs(group)) waiting_[value].insert(group);
    }

    /// By how many bytes the live memory grows when `group` runs.
    double growth(int group) const {
        double bytes = 0;
        for (ValueId value : groups_.outputs(group)) bytes += size(value);
        for (ValueId value : groups_.inputs(group))
            if (waiting_[value].size() == 1) bytes -= size(value);
        return bytes;
    }

    /// Runs a group. Returns the groups that have become the last reader of a value; their growth has changed.
    std::vector<int> run(int group) {
        std::vector<int> last;
        for (ValueId value : groups_.inputs(group)) {
            waiting_[value].erase(group);
            if (waiting_[value].size() == 1) last.push_back(*waiting_[value].begin());
        }
        return last;
    }

private:
    /// Arguments and results count as 0, because they have memory of their own.
    double size(ValueId value) const {
        const FuseGraph &graph = groups_.graph();
        return graph.producer(value) < 0 || graph.is_result(value) ? 0 : graph.bytes(value);
    }

    const Groups &groups_;
    std::vector<std::set<int>> waiting_; ///< by value: groups that have not read it yet
};

/// Groups that can run, sorted by priority.
class Ready {
public:
    Ready(const Groups &groups, const LiveBytes &live) : groups_(groups), live_(live), growth_(groups.size()) {}

    bool empty() const { return queue_.empty(); }
    void add(int group) {
        growth_[group] = live_.growth(group);
        queue_.insert(key(group));
    }
    int take() { return queue_.extract(queue_.begin()).value().group; }
    /// Updates the priority of a group if it is in the queue.
    void renew(int group) {
        if (queue_.erase(key(group)) > 0) add(group);
    }

private:
    struct Key {
        double growth;
        int first_node, group;
        auto operator<=>(const Key &) const = default;
    };
    Key key(int group) const { return {growth_[group], groups_[group].nodes.front(), group}; }

    const Groups &groups_;
    const LiveBytes &live_;
    std::vector<double> growth_; ///< by group: when it was added
    std::set<Key> queue_;
};

} // namespace

std::vector<int> run_order(const Groups &groups) {
    LiveBytes live(groups);
    Ready ready(groups, live);
    std::vector<size_t> missing(groups.size());
    std::vector<int> order;
    for (int group = 0; group < groups.size(); ++group) {
        missing[group] = groups.before(group).size();
        if (groups.is_alive(group) && missing[group] == 0) ready.add(group);
    }
    while (!ready.empty()) {
        const int group = ready.take();
        order.push_back(group);
        for (int last : live.run(group)) ready.renew(last);
        for (int later : groups.after(group))
            if (--missing[later] == 0) ready.add(later);
    }
    for (int group = 0; group < groups.size(); ++group)
        internal_check(!groups.is_alive(group) || missing[group] == 0, "fuse: kernels wait for each other");
    return order;
}

} // namespace scalide

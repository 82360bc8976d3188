#include "transforms/fuse_order.h"
#include <algorithm>

namespace scalide {

namespace {

/// Bytes that live between kernels while the groups run one by one.
class LiveBytes {
public:
    explicit LiveBytes(const Groups &groups) : waiting_(groups.program().values.size()), inputs_(groups.size()), made_(groups.size()) {
        for (int group = 0; group < groups.size(); ++group) {
            for (ValueId value : groups.outputs(group)) made_[group] += size(groups, value);
            for (ValueId value : groups.inputs(group)) {
                inputs_[group].emplace_back(value, size(groups, value));
                ++waiting_[value];
            }
        }
    }

    /// How much more lives after `group` has run.
    double growth(int group) const {
        double bytes = made_[group];
        for (const auto &[value, size] : inputs_[group])
            if (waiting_[value] == 1) bytes -= size;
        return bytes;
    }

    void run(int group) {
        for (const auto &[value, size] : inputs_[group]) --waiting_[value];
    }

private:
    /// Arguments and results have memory of their own.
    static double size(const Groups &groups, ValueId value) {
        const FuseGraph &graph = groups.graph();
        return graph.producer(value) < 0 || graph.is_result(value) ? 0 : graph.sizes().bytes(groups.program().type(value));
    }

    std::vector<int> waiting_;                                    ///< by value: groups that have still to read it
    std::vector<std::vector<std::pair<ValueId, double>>> inputs_; ///< by group: what it reads, and how large that is
    std::vector<double> made_;                                    ///< by group: bytes of what it writes
};

} // namespace

std::vector<int> run_order(const Groups &groups) {
    LiveBytes live(groups);
    std::vector<size_t> missing(groups.size());
    std::vector<int> ready, order;
    for (int group = 0; group < groups.size(); ++group) {
        missing[group] = groups.before(group).size();
        if (groups.is_alive(group) && missing[group] == 0) ready.push_back(group);
    }
    const auto comes_first = [&](int a, int b) {
        return std::pair(live.growth(a), groups[a].nodes.front()) < std::pair(live.growth(b), groups[b].nodes.front());
    };
    while (!ready.empty()) {
        const auto next = std::ranges::min_element(ready, comes_first);
        const int group = *next;
        ready.erase(next);
        order.push_back(group);
        live.run(group);
        for (int later : groups.after(group))
            if (--missing[later] == 0) ready.push_back(later);
    }
    for (int group = 0; group < groups.size(); ++group)
        internal_check(!groups.is_alive(group) || missing[group] == 0, "fuse: kernels wait for each other");
    return order;
}

} // namespace scalide

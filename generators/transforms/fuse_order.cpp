#include "transforms/fuse_order.h"
#include <algorithm>

namespace scalide {

namespace {

/// Bytes that live between kernels while the groups run one by one.
class LiveBytes {
public:
    explicit LiveBytes(const Groups &groups) : groups_(groups), waiting_(groups.program().values.size()) {
        for (int group = 0; group < groups.size(); ++group)
            for (ValueId value : groups.inputs(group)) ++waiting_[value];
    }

    /// How much more lives after `group` has run.
    double growth(int group) const {
        double bytes = 0;
        for (ValueId value : groups_.outputs(group)) bytes += size(value);
        for (ValueId value : groups_.inputs(group))
            if (waiting_[value] == 1) bytes -= size(value);
        return bytes;
    }

    void run(int group) {
        for (ValueId value : groups_.inputs(group)) --waiting_[value];
    }

private:
    /// Arguments and results have memory of their own.
    double size(ValueId value) const {
        const FuseGraph &graph = groups_.graph();
        return graph.producer(value) < 0 || graph.is_result(value) ? 0 : graph.sizes().bytes(groups_.program().type(value));
    }

    const Groups &groups_;
    std::vector<int> waiting_; ///< by value: groups that have still to read it
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

#include "transforms/fusion/groups/reachability.h"
#include "expr/error.h"
#include <algorithm>
#include <queue>

namespace scalide {

namespace {

/// Initial distance between positions. It leaves room for vertices that move between two others.
constexpr int64_t gap = int64_t(1) << 40;

} // namespace

Reachability::Reachability(std::vector<std::set<int>> successors)
    : before_(successors.size()), after_(std::move(successors)), places_(after_.size()), seen_(after_.size()) {
    for (int vertex = 0; vertex < static_cast<int>(after_.size()); ++vertex) {
        put(vertex, vertex * gap);
        for (int next : after_[vertex]) before_[next].insert(vertex);
    }
}

bool Reachability::has_path(int from, int to) const {
    return from == to || (places_[from] < places_[to] && (after_[from].contains(to) || search(from, to).do_meet));
}

bool Reachability::has_path_around(int from, int to) const { return from != to && places_[from] < places_[to] && search(from, to).do_meet; }

Reachability::Seen Reachability::search(int first, int last) const {
    const int number = ++searches_;
    const auto is_between = [&](int vertex) { return places_[first] < places_[vertex] && places_[vertex] < places_[last]; };
    std::vector<int> found[2];                               // by direction: forward, backward
    std::priority_queue<std::pair<int64_t, int>> waiting[2]; // the vertex nearest to the other end comes first
    waiting[0].emplace(0, first);
    waiting[1].emplace(0, last);
    for (size_t direction = 0; !waiting[direction].empty(); direction = 1 - direction) {
        const bool is_forward = direction == 0;
        const int vertex = waiting[direction].top().second, own = is_forward ? number : -number, end = is_forward ? last : first;
        waiting[direction].pop();
        for (int next : is_forward ? after_[vertex] : before_[vertex]) {
            ++edges_seen_;
            if (seen_[next] == -own || (next == end && vertex != first && vertex != last)) return {true, is_forward, {}};
            if (!is_between(next) || seen_[next] == own) continue;
            seen_[next] = own;
            found[direction].push_back(next);
            waiting[direction].emplace(is_forward ? places_[next] : -places_[next], next);
        }
        if (!waiting[direction].empty()) continue;
        std::ranges::sort(found[direction], {}, [this](int each) { return places_[each]; });
        return {false, is_forward, std::move(found[direction])};
    }
    throw InternalError("internal error: fuse: a search ended nowhere");
}

void Reachability::put(int vertex, int64_t place) {
    const auto known = order_.find(places_[vertex]);
    if (known != order_.end() && known->second == vertex) order_.erase(known);
    places_[vertex] = place;
    order_[place] = vertex;
}

void Reachability::put_before(int vertex, const std::vector<int> &moved) {
    const auto here = order_.find(places_[vertex]);
    put_between(here == order_.begin() ? places_[vertex] - gap * (std::ssize(moved) + 1) : std::prev(here)->first, places_[vertex], moved);
}

void Reachability::put_after(int vertex, const std::vector<int> &moved) {
    const auto next = order_.upper_bound(places_[vertex]);
    put_between(places_[vertex], next == order_.end() ? places_[vertex] + gap * (std::ssize(moved) + 1) : next->first, moved);
}

/// `low` and `high` are neighbours in the order.
void Reachability::put_between(int64_t low, int64_t high, const std::vector<int> &moved) {
    const int64_t step = (high - low) / (std::ssize(moved) + 1);
    if (step > 0) {
        for (size_t i = 0; i < moved.size(); ++i) put(moved[i], low + step * static_cast<int64_t>(i + 1));
        return;
    }
    std::vector<int> all;
    for (const auto &[place, vertex] : order_) {
        if (place == high) all.insert(all.end(), moved.begin(), moved.end());
        if (std::ranges::find(moved, vertex) == moved.end()) all.push_back(vertex);
    }
    order_.clear();
    for (size_t i = 0; i < all.size(); ++i) put(all[i], static_cast<int64_t>(i) * gap);
}

bool Reachability::connect(int from, int to) {
    if (places_[from] > places_[to]) {
        Seen seen = search(to, from);
        if (seen.do_meet || after_[to].contains(from)) return false;
        if (seen.is_forward) {
            seen.vertices.insert(seen.vertices.begin(), to);
            put_after(from, seen.vertices);
        } else {
            seen.vertices.push_back(from);
            put_before(to, seen.vertices);
        }
    }
    after_[from].insert(to);
    before_[to].insert(from);
    return true;
}

bool Reachability::merge(int first, int second) {
    const auto [low, high] = places_[first] < places_[second] ? std::pair(first, second) : std::pair(second, first);
    const Seen seen = search(low, high);
    if (seen.do_meet) return false;
    // One of the two has no dependent vertex left between them, so both can take its position.
    seen.is_forward ? put_after(high, seen.vertices) : put_before(low, seen.vertices);
    const int64_t place = places_[seen.is_forward ? high : low];
    order_.erase(places_[second]);
    put(first, place);
    take_edges(first, second);
    return true;
}

void Reachability::take_edges(int first, int second) {
    for (int vertex : before_[second]) {
        after_[vertex].erase(second);
        if (vertex != first && after_[vertex].insert(first).second) before_[first].insert(vertex);
    }
    for (int vertex : after_[second]) {
        before_[vertex].erase(second);
        if (vertex != first && before_[vertex].insert(first).second) after_[first].insert(vertex);
    }
    before_[second].clear();
    after_[second].clear();
}

void Reachability::merge_all(const std::vector<int> &target) {
    for (int vertex = 0; vertex < static_cast<int>(target.size()); ++vertex)
        if (target[vertex] != vertex) take_edges(target[vertex], vertex);
    renew_places();
}

void Reachability::renew_places() {
    std::vector<size_t> missing;
    std::vector<int> ready;
    for (int vertex = 0; vertex < static_cast<int>(before_.size()); ++vertex) {
        missing.push_back(before_[vertex].size());
        if (missing.back() == 0) ready.push_back(vertex);
    }
    order_.clear();
    for (size_t i = 0; i < ready.size(); ++i) {
        put(ready[i], static_cast<int64_t>(i) * gap);
        for (int next : after_[ready[i]])
            if (--missing[next] == 0) ready.push_back(next);
    }
    internal_check(ready.size() == before_.size(), "fuse: merged kernels wait for each other");
}

} // namespace scalide

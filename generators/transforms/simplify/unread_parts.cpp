#include "transforms/simplify/unread_parts.h"
#include "ir/regions.h"
#include "transforms/analysis/splice.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// Marks the carries of a loop on which its live results, or its test, depend.
void add_needed_carries(const RegionEdit &edit, std::vector<bool> &live) {
    for (bool again = true; again;) {
        again = false;
        std::vector<std::vector<bool>> needed;
        for (const Program &region : edit.regions) {
            needed.emplace_back(region.values.size(), false);
            for (size_t r = 0; r < region.results.size(); r++)
                if (&region != &edit.body() || live[r]) needed.back()[static_cast<size_t>(region.results[r].value)] = true;
            mark_sources(region, needed.back());
        }
        for (size_t r = 0; r < live.size(); r++) {
            const int carry = edit.body().results[r].argument;
            if (live[r] || carry < 0) continue;
            for (size_t i = 0; i < needed.size(); i++)
                if (needed[i][static_cast<size_t>(edit.regions[i].arguments[static_cast<size_t>(carry)].value)]) live[r] = again = true;
        }
    }
}

bool is_same_in_all(const RegionEdit &edit, size_t a, size_t b) {
    return std::ranges::all_of(edit.regions, [&](const Program &region) {
        return (edit.is_loop() && &region != &edit.body()) || region.results[a].value == region.results[b].value;
    });
}

/// Numbers values of a body so that equal numbers are equal values if the carries of each class are equal. Returns the numbers of the
/// results.
std::vector<int> numbers_of_results(const RegionEdit &edit, const std::vector<int> &classes) {
    const Program &body = edit.body();
    std::map<std::string, int> known;
    std::vector<int> numbers(body.values.size(), -1);
    const auto number_of = [&](const std::string &key) { return known.try_emplace(key, static_cast<int>(known.size())).first->second; };
    for (size_t i = 0; i < body.arguments.size(); i++)
        numbers[static_cast<size_t>(body.arguments[i].value)] = number_of("argument " + std::to_string(i));
    for (size_t r = 0; r < classes.size(); r++)
        numbers[static_cast<size_t>(body.arguments[static_cast<size_t>(body.results[r].argument)].value)] =
            number_of("carry " + std::to_string(classes[r]));
    for (const Node &node : body.nodes) {
        std::string key = node.op + to_string(node.attributes);
        for (const ValueId operand : node.operands) key += " " + std::to_string(numbers[static_cast<size_t>(operand)]);
        for (const Region &region : node.regions) key += " " + std::to_string(reinterpret_cast<uintptr_t>(region.get()));
        for (size_t i = 0; i < node.results.size(); i++)
            numbers[static_cast<size_t>(node.results[i])] = number_of(key + " result " + std::to_string(i));
    }
    std::vector<int> results;
    for (const Result &result : body.results) results.push_back(numbers[static_cast<size_t>(result.value)]);
    return results;
}

/// Splits the classes of carries by these keys. Returns whether there are more classes now.
template<typename Key>
bool split_classes(std::vector<int> &classes, const std::vector<Key> &keys) {
    std::map<std::pair<int, Key>, int> fresh;
    const int before = std::ranges::max(classes) + 1;
    for (size_t r = 0; r < classes.size(); r++)
        classes[r] = fresh.try_emplace({classes[r], keys[r]}, static_cast<int>(fresh.size())).first->second;
    return static_cast<int>(fresh.size()) > before;
}

} // namespace

bool drop_unread_results(RegionEdit &edit) {
    std::vector<bool> live;
    for (size_t r = 0; r < edit.result_count(); r++) live.push_back(edit.is_read(r));
    if (edit.is_loop()) add_needed_carries(edit, live);
    bool has_changed = false;
    for (size_t r = live.size(); r-- > 0;) {
        if (live[r]) continue;
        edit.drop_result(r);
        has_changed = true;
    }
    return has_changed;
}

bool drop_unread_arguments(RegionEdit &edit) { return erase_unread_arguments(edit.node, edit.regions); }

bool merge_equal_arguments(RegionEdit &edit) {
    std::map<std::pair<ValueId, Supply>, size_t> known;
    bool has_changed = false;
    for (size_t i = 0; i < edit.argument_count();) {
        const Argument &argument = edit.body().arguments[i];
        const auto [found, is_new] =
            argument.inout ? std::pair(known.end(), true) : known.try_emplace({edit.operand(i), argument.supply}, i);
        if (is_new) {
            i++;
            continue;
        }
        for (Program &region : edit.regions) replace_value(region, region.arguments[i].value, region.arguments[found->second].value);
        edit.drop_argument(i);
        has_changed = true;
    }
    return has_changed;
}

bool merge_equal_results(RegionEdit &edit) {
    bool has_changed = false;
    for (size_t r = edit.result_count(); r-- > 0;) {
        if (edit.body().results[r].argument >= 0) continue;
        for (size_t same = 0; same < r; same++) {
            if (edit.body().results[same].argument >= 0 || !is_same_in_all(edit, same, r)) continue;
            edit.merge_results(r, same);
            has_changed = true;
            break;
        }
    }
    return has_changed;
}

bool give_kept_carries(RegionEdit &edit) {
    bool has_changed = false;
    for (size_t r = edit.result_count(); r-- > 0;) {
        const Result &result = edit.body().results[r];
        if (result.argument < 0) continue;
        const auto carry = static_cast<size_t>(result.argument);
        if (edit.body().arguments[carry].value != result.value) continue;
        edit.give(r, edit.operand(carry));
        has_changed = true;
    }
    return has_changed;
}

bool merge_twin_carries(RegionEdit &edit) {
    std::vector<ValueId> inits;
    for (const Result &result : edit.body().results)
        if (result.argument >= 0) inits.push_back(edit.operand(static_cast<size_t>(result.argument)));
    if (inits.size() < 2) return false;
    std::vector<int> classes(inits.size(), 0);
    split_classes(classes, inits);
    const auto count = static_cast<std::ptrdiff_t>(classes.size());
    while (std::ranges::max(classes) + 1 < count && split_classes(classes, numbers_of_results(edit, classes))) {
    }
    bool has_changed = false;
    for (size_t r = classes.size(); r-- > 0;) {
        const auto same = static_cast<size_t>(std::ranges::find(classes, classes[r]) - classes.begin());
        if (same == r) continue;
        const auto twin = static_cast<size_t>(edit.body().results[r].argument),
                   kept = static_cast<size_t>(edit.body().results[same].argument);
        for (Program &region : edit.regions) replace_value(region, region.arguments[twin].value, region.arguments[kept].value);
        edit.merge_results(r, same);
        has_changed = true;
    }
    return has_changed;
}

} // namespace scalide

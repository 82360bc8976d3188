#include "ir/names.h"
#include "ir/program.h"
#include <algorithm>
#include <cctype>
#include <functional>
#include <unordered_map>

namespace scalide {

/// A hash table of the numbers of values, with open addressing, linear probing, at most half full. It copies no names: passes make every
/// value anew, and a set of strings was a tenth of the time of all passes.
struct Names::Index {
    enum : int { is_free = -1, was_renamed = -2 }; ///< a search ends at the first and passes over the second

    struct Slot {
        uint32_t hash = 0;
        int value = is_free;
    };

    std::vector<Slot> slots = std::vector<Slot>(64);
    std::unordered_map<std::string, int64_t> next; ///< by name: all smaller numbers are taken
    size_t used = 0;                               ///< slots that are not free
    size_t seen = 0;                               ///< values that are in `slots`

    static uint32_t hash_of(const std::string &name) { return static_cast<uint32_t>(std::hash<std::string>()(name)); }

    /// The slot of a name, or the free one where it would stand.
    Slot &find(const std::vector<Value> &values, const std::string &name) { return find(values, name, hash_of(name)); }

    Slot &find(const std::vector<Value> &values, const std::string &name, uint32_t hash) {
        for (size_t place = hash;; place++) {
            Slot &slot = slots[place & (slots.size() - 1)];
            if (slot.value == is_free || (slot.value >= 0 && slot.hash == hash && values[slot.value].name == name)) return slot;
        }
    }

    /// `name` is that of value number `value`.
    void insert(const std::vector<Value> &values, const std::string &name, int value) {
        if (2 * used + 2 > slots.size()) grow();
        const uint32_t hash = hash_of(name);
        Slot &slot = find(values, name, hash);
        used += slot.value == is_free ? 1 : 0;
        slot = {hash, value};
    }

    void grow() {
        std::vector<Slot> old(2 * slots.size());
        old.swap(slots);
        used = 0;
        for (const Slot &slot : old) {
            if (slot.value < 0) continue;
            size_t place = slot.hash;
            while (slots[place & (slots.size() - 1)].value != is_free) place++;
            slots[place & (slots.size() - 1)] = slot;
            used++;
        }
    }
};

Names::Names() = default;
Names::Names(const Names &) {}
Names::Names(Names &&) noexcept = default;
Names &Names::operator=(const Names &) {
    index_.reset();
    return *this;
}
Names &Names::operator=(Names &&) noexcept = default;
Names::~Names() = default;

Names::Index &Names::index(const std::vector<Value> &values) {
    if (!index_) index_ = std::make_unique<Index>();
    for (; index_->seen < values.size(); index_->seen++) index_->insert(values, values[index_->seen].name, static_cast<int>(index_->seen));
    return *index_;
}

bool Names::contains(const std::vector<Value> &values, const std::string &name) {
    return index(values).find(values, name).value != Index::is_free;
}

std::string Names::fresh(const std::vector<Value> &values, const std::string &name) {
    if (!contains(values, name)) return name;
    int64_t &number = index_->next[name];
    for (;; number++) {
        std::string candidate = number == 0 ? name : name + std::to_string(number);
        if (!contains(values, candidate)) return candidate;
    }
}

void Names::rename(const std::vector<Value> &values, int value, const std::string &name) {
    Index &known = index(values);
    const std::string &before = values[value].name;
    if (Index::Slot &slot = known.find(values, before); slot.value != Index::is_free) slot.value = Index::was_renamed;
    known.insert(values, name, value);
    // `x12` is free again: number 0 of x12, 2 of x1 and 12 of x.
    constexpr size_t most_digits = 18;
    for (size_t digits = 0; digits <= most_digits && digits < before.size(); digits++) {
        const size_t first = before.size() - digits;
        if (digits > 0 && std::isdigit(static_cast<unsigned char>(before[first])) == 0) break;
        if (digits > 0 && before[first] == '0') continue;
        const auto found = known.next.find(before.substr(0, first));
        const int64_t number = digits == 0 ? 0 : std::stoll(before.substr(first));
        if (found != known.next.end()) found->second = std::min(found->second, number);
    }
}

} // namespace scalide

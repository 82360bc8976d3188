#include "ir/names.h"
#include "ir/program.h"
#include <functional>
#include <unordered_map>

namespace scalide {

/// A hash table of value numbers, with open addressing and linear probing, at most half full. It does not copy names. Passes create every
/// value again, and with a set of strings, a tenth of the time of all passes was spent here.
struct Names::Index {
    enum : int { is_free = -1, was_renamed = -2 }; ///< a search ends at `is_free` and continues at `was_renamed`

    struct Slot {
        uint32_t hash = 0;
        int value = is_free;
    };

    std::vector<Slot> slots = std::vector<Slot>(64);
    std::unordered_map<std::string, int64_t> next; ///< by name that was already taken: all smaller numbers are taken too
    size_t used = 0;                               ///< slots that are not free
    size_t seen = 0;                               ///< values that `slots` already contains

    static uint32_t hash_of(const std::string &name) { return static_cast<uint32_t>(std::hash<std::string>()(name)); }

    /// Returns the slot of a name, or the free slot for it.
    Slot &find(const std::vector<Value> &values, const std::string &name) { return find(values, name, hash_of(name)); }

    Slot &find(const std::vector<Value> &values, const std::string &name, uint32_t hash) {
        for (size_t place = hash;; place++) {
            Slot &slot = slots[place & (slots.size() - 1)];
            if (slot.value == is_free || (slot.value >= 0 && slot.hash == hash && values[slot.value].name == name)) return slot;
        }
    }

    /// Records that value number `value` has the name `name`.
    void insert(const std::vector<Value> &values, const std::string &name, int value) {
        if (2 * used + 2 > slots.size()) grow();
        const uint32_t hash = hash_of(name);
        put(find(values, name, hash), hash, value);
    }

    /// Like insert(), but only if no value has this name. Returns false otherwise.
    bool take(const std::vector<Value> &values, const std::string &name, int value) {
        if (2 * used + 2 > slots.size()) grow();
        const uint32_t hash = hash_of(name);
        Slot &slot = find(values, name, hash);
        if (slot.value != is_free) return false;
        put(slot, hash, value);
        return true;
    }

    void put(Slot &slot, uint32_t hash, int value) {
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

std::string Names::claim(const std::vector<Value> &values, const std::string &name) {
    Index &known = index(values);
    const int next = static_cast<int>(known.seen++);
    auto counted = known.next.find(name);
    if (counted == known.next.end()) {
        if (known.take(values, name, next)) return name;
        counted = known.next.emplace(name, 1).first;
    }
    for (int64_t &number = counted->second;; number++) {
        std::string candidate = name + std::to_string(number);
        if (known.take(values, candidate, next)) return candidate;
    }
}

bool Names::rename(const std::vector<Value> &values, int value, const std::string &name) {
    Index &known = index(values);
    if (!known.take(values, name, value)) return false;
    if (Index::Slot &slot = known.find(values, values[value].name); slot.value == value) slot.value = Index::was_renamed;
    return true;
}

} // namespace scalide

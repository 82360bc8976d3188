#include "ir/names.h"
#include "ir/program.h"
#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

namespace scalide {

struct Names::Index {
    std::unordered_set<std::string> taken;
    std::unordered_map<std::string, int64_t> next; ///< by name: all smaller numbers are taken
    size_t seen = 0;                               ///< values whose names are in `taken`
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
    for (; index_->seen < values.size(); index_->seen++) index_->taken.insert(values[index_->seen].name);
    return *index_;
}

bool Names::contains(const std::vector<Value> &values, const std::string &name) { return index(values).taken.contains(name); }

std::string Names::fresh(const std::vector<Value> &values, const std::string &name) {
    Index &known = index(values);
    if (!known.taken.contains(name)) return name;
    int64_t &number = known.next[name];
    for (;; number++) {
        std::string candidate = number == 0 ? name : name + std::to_string(number);
        if (!known.taken.contains(candidate)) return candidate;
    }
}

void Names::rename(const std::vector<Value> &values, const std::string &before, const std::string &after) {
    Index &known = index(values);
    known.taken.erase(before);
    known.taken.insert(after);
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

#include "transforms/reachability.h"

namespace scalide {

Reachability::Reachability(const std::vector<std::set<int>> &successors)
    : words_((successors.size() + 63) / 64), rows_(words_ * successors.size()) {
    for (size_t vertex = successors.size(); vertex-- > 0;) {
        rows_[vertex * words_ + vertex / 64] |= uint64_t(1) << (vertex % 64);
        for (int next : successors[vertex])
            for (size_t word = 0; word < words_; ++word) rows_[vertex * words_ + word] |= rows_[next * words_ + word];
    }
}

void Reachability::connect(int from, int to) {
    if (has_path(from, to)) return;
    const uint64_t *gained = &rows_[to * words_];
    for (size_t row = 0; row < rows_.size(); row += words_) {
        if (!(rows_[row + from / 64] >> (from % 64) & 1)) continue;
        for (size_t word = 0; word < words_; ++word) rows_[row + word] |= gained[word];
    }
}

} // namespace scalide

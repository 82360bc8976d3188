#include "rulebook/nearest.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns the optimal string alignment distance.
size_t distance(const std::string &a, const std::string &b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); i++) {
        for (size_t j = 0; j <= b.size(); j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

/// Returns the only name that starts with `word`, which must have some letters. Empty if several names do.
std::string only_continuation(const std::string &word, const std::vector<std::string> &names) {
    constexpr size_t fewest_letters = 4;
    if (word.size() < fewest_letters) return "";
    const auto continues = [&](const std::string &name) { return name.starts_with(word); };
    return std::ranges::count_if(names, continues) == 1 ? *std::ranges::find_if(names, continues) : "";
}

} // namespace

std::string nearest(const std::string &word, const std::vector<std::string> &names) {
    std::string best;
    size_t least = std::max<size_t>(word.size() > 1, word.size() / 3) + 1;
    for (const std::string &name : names) {
        const size_t lengths = std::max(word.size(), name.size()) - std::min(word.size(), name.size());
        if (lengths >= least) continue; // the distance is at least this difference; this also bounds the time for hostile input
        const size_t edits = distance(word, name);
        if (edits < least) {
            least = edits;
            best = name;
        }
    }
    return best.empty() ? only_continuation(word, names) : best;
}

std::string joined(const std::vector<std::string> &words, const std::string &separator) {
    std::string text;
    for (const std::string &word : words) text += (text.empty() ? "" : separator) + word;
    return text;
}

std::string suggestion(const std::string &word, const std::vector<std::string> &names, const std::string &otherwise) {
    const std::string near = nearest(word, names);
    return near.empty() ? otherwise : "Did you mean '" + near + "'?";
}

std::string suggestion(const std::string &word, const std::vector<std::string> &names) {
    return suggestion(word, names, names.empty() ? "" : "One of: " + joined(names));
}

} // namespace scalide

#include "tool/written_tensors.h"
#include "ir/words.h"
#include "tool/tables.h"
#include <algorithm>
#include <fmt/ranges.h>

namespace scalide {

namespace {

constexpr size_t most_words = 4; ///< of one column

/// Returns the different words in their order, without `-`.
template<typename Word>
std::string different_words(const std::vector<Origin> &written, const Word &word) {
    std::vector<std::string> words;
    for (const Origin &origin : written)
        if (std::string each = word(origin); each != "-" && !std::ranges::count(words, each)) words.push_back(std::move(each));
    if (words.empty()) return "-";
    const size_t more = words.size() - std::min(words.size(), most_words);
    words.resize(words.size() - more);
    return fmt::format("{}{}", fmt::join(words, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

} // namespace

WrittenTensors in_columns(const std::vector<Origin> &written) {
    return {different_words(written, [](const Origin &origin) { return origin.is_unnamed() ? origin.op : name_to_string(origin.tensor); }),
            different_words(written, [](const Origin &origin) { return std::string(to_string(origin.direction)); }),
            different_words(written, [](const Origin &origin) { return scope_or_dash(origin.scope); }),
            different_words(written, [](const Origin &origin) { return short_place(origin.location, "-"); })};
}

std::string in_words(const std::vector<Origin> &written, bool has_gradient) {
    std::vector<std::pair<std::string, std::vector<std::string>>> places; // with the tensors there
    for (const Origin &origin : written) {
        std::vector<std::string> words;
        if (!origin.scope.empty() && !origin.is_unnamed()) words.push_back(origin.scope);
        if (has_gradient && origin.direction != Direction::none) words.emplace_back(to_string(origin.direction));
        if (origin.location.line > 0) words.push_back(short_place(origin.location, ""));
        const std::string place = words.empty() ? "" : fmt::format(" ({})", fmt::join(words, ", "));
        const std::string tensor = origin.is_unnamed() ? origin.tensor : name_to_string(origin.tensor);
        if (places.empty() || places.back().first != place) places.push_back({place, {}});
        std::vector<std::string> &tensors = places.back().second;
        if (!std::ranges::count(tensors, tensor)) tensors.push_back(tensor);
    }
    std::string text;
    for (const auto &[place, tensors] : places) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", fmt::join(tensors, ", "), place);
    return text;
}

} // namespace scalide

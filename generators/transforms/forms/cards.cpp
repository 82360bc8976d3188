#include "transforms/forms/cards.h"
#include "ir/text.h"
#include "transforms/analysis/passes.h"
#include "transforms/library/library_call.h"
#include <algorithm>
#include <map>

namespace scalide {

std::vector<CardProgram> fuse_for_cards(const Program &expanded, const Program &fused, const TargetFacts &facts) {
    const auto rows_of = [&](const std::vector<int> &cards) {
        std::vector<bool> rows;
        for (const LibraryProduct &product : facts.products) rows.push_back(has_cards(product, cards));
        return rows;
    };
    std::map<std::vector<bool>, std::vector<int>> groups;
    for (const int card : facts.cards) groups[rows_of({card})].push_back(card);
    groups.erase(rows_of(facts.cards));
    std::map<std::string, CardProgram> variants;
    for (const auto &[rows, cards] : groups) {
        TargetFacts own = facts;
        own.cards = cards;
        Program variant = fuse(expanded, own);
        const std::string text = to_string(variant);
        if (text == to_string(fused)) continue;
        CardProgram &place = variants.try_emplace(text, CardProgram{std::move(variant), {}}).first->second;
        place.cards.insert(place.cards.end(), cards.begin(), cards.end());
    }
    std::vector<CardProgram> found;
    for (auto &[text, variant] : variants) found.push_back(std::move(variant));
    std::ranges::sort(found, {}, &CardProgram::cards);
    return found;
}

} // namespace scalide

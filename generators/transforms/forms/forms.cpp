#include "transforms/forms/forms.h"

namespace scalide {

std::string prefix_of(const FormCondition &condition) {
    std::string prefix;
    for (const int card : condition.cards) prefix += (prefix.empty() ? "sm_" : ",sm_") + std::to_string(card);
    if (!prefix.empty()) prefix += ".";
    for (const auto &[symbol, value] : condition.values) prefix += symbol + "=" + std::to_string(value) + ".";
    return prefix;
}

} // namespace scalide

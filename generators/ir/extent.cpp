#include "ir/extent.h"

#include "expr/error.h"

#include <algorithm>
#include <limits>
#include <set>

namespace scalide {

namespace {

// Wide enough for a sum or a product of two 64-bit numbers.
__extension__ typedef __int128 Wide;

constexpr int64_t limit = std::numeric_limits<int64_t>::max();

bool fits(Wide value) { return value >= -Wide(limit) && value <= Wide(limit); }

int64_t narrow(Wide value) {
    if (!fits(value)) throw UserError({Location(), "extent", "must have coefficients below 2^63 in magnitude", "a larger one", ""});
    return static_cast<int64_t>(value);
}

void accumulate(std::map<Extent::Monomial, int64_t> &terms, const Extent::Monomial &monomial, Wide coefficient) {
    const auto [place, fresh] = terms.try_emplace(monomial, 0);
    place->second = narrow(place->second + coefficient);
    if (place->second == 0) terms.erase(place);
}

std::string term_to_string(const Extent::Monomial &monomial, uint64_t magnitude) {
    std::string text = magnitude == 1 && !monomial.empty() ? "" : std::to_string(magnitude);
    for (const std::string &symbol : monomial) text += (text.empty() ? "" : "*") + symbol;
    return text;
}

uint64_t magnitude_of(int64_t value) { return value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value); }

} // namespace

Extent::Extent(int64_t value) {
    if (value != 0) terms_[{}] = value;
}

Extent Extent::symbol(const std::string &name) {
    Extent extent;
    extent.terms_[{name}] = 1;
    return extent;
}

bool Extent::is_static() const { return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty()); }

int64_t Extent::value() const {
    internal_check(is_static(), "extent " + to_string(*this) + " is not static");
    return terms_.empty() ? 0 : terms_.begin()->second;
}

int64_t Extent::evaluate(const Bindings &bindings) const {
    Wide sum = 0;
    bool fitting = true;
    for (const auto &[monomial, coefficient] : terms_) {
        Wide product = coefficient;
        for (const std::string &symbol : monomial) {
            const auto binding = bindings.find(symbol);
            if (binding == bindings.end()) {
                throw UserError({Location(), "extent " + to_string(*this), "must have a value for each symbol", "none for " + symbol, ""});
            }
            fitting = fitting && fits(product);
            product = fitting ? product * binding->second : 0;
        }
        fitting = fitting && fits(product) && fits(sum + product);
        sum = fitting ? sum + product : 0;
    }
    if (!fitting || sum < 0 || sum > std::numeric_limits<int32_t>::max()) {
        const std::string got = fitting ? std::to_string(static_cast<int64_t>(sum)) : "a number beyond 64 bits";
        throw UserError({Location(), "extent " + to_string(*this), "must be from 0 to 2147483647", got, ""});
    }
    return static_cast<int64_t>(sum);
}

std::vector<std::string> Extent::symbols() const {
    std::set<std::string> names;
    for (const auto &[monomial, coefficient] : terms_) names.insert(monomial.begin(), monomial.end());
    return {names.begin(), names.end()};
}

std::optional<Extent> Extent::divide(const Extent &other) const {
    if (other.terms_.size() != 1) return std::nullopt;
    const auto &[divisor, divisor_coefficient] = *other.terms_.begin();
    Extent quotient;
    for (const auto &[monomial, coefficient] : terms_) {
        const Wide wide = coefficient;
        if (wide % divisor_coefficient != 0) return std::nullopt;
        if (!std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end())) return std::nullopt;
        Monomial rest;
        std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
        accumulate(quotient.terms_, rest, wide / divisor_coefficient);
    }
    return quotient;
}

Extent Extent::operator+(const Extent &other) const {
    Extent sum = *this;
    for (const auto &[monomial, coefficient] : other.terms_) accumulate(sum.terms_, monomial, coefficient);
    return sum;
}

Extent Extent::operator-(const Extent &other) const {
    Extent difference = *this;
    for (const auto &[monomial, coefficient] : other.terms_) accumulate(difference.terms_, monomial, -Wide(coefficient));
    return difference;
}

Extent Extent::operator*(const Extent &other) const {
    Extent product;
    for (const auto &[left, left_coefficient] : terms_) {
        for (const auto &[right, right_coefficient] : other.terms_) {
            Monomial monomial;
            std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(monomial));
            accumulate(product.terms_, monomial, Wide(left_coefficient) * right_coefficient);
        }
    }
    return product;
}

std::string to_string(const Extent &extent) {
    std::string text;
    const auto append = [&](const Extent::Monomial &monomial, int64_t coefficient) {
        const bool negative = coefficient < 0;
        if (text.empty())
            text = negative ? "-" : "";
        else
            text += negative ? " - " : " + ";
        text += term_to_string(monomial, magnitude_of(coefficient));
    };
    // The constant term sorts first but reads best last.
    for (const auto &[monomial, coefficient] : extent.terms()) {
        if (!monomial.empty()) append(monomial, coefficient);
    }
    const auto constant = extent.terms().find({});
    if (constant != extent.terms().end()) append({}, constant->second);
    return text.empty() ? "0" : text;
}

} // namespace scalide

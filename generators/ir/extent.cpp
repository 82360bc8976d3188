#include "ir/extent.h"

#include "expr/error.h"

#include <algorithm>
#include <limits>
#include <set>

namespace scalide {

namespace {

// Wide enough for the sum or the product of two 64-bit numbers.
__extension__ typedef __int128 Wide;

constexpr int64_t limit = std::numeric_limits<int64_t>::max();

bool fits(Wide value) { return value >= -Wide(limit) && value <= Wide(limit); }

int64_t narrow(Wide value) {
    if (!fits(value))
        throw UserError(
            {Location(), "", "the coefficients of an extent must be less than 2^63", "a larger coefficient", ""}); // the caller knows whose
    return static_cast<int64_t>(value);
}

void accumulate(Extent::Terms &terms, const Extent::Monomial &monomial, Wide coefficient) {
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

Extent::Extent(Terms terms) : constant_(0), symbolic_(std::move(terms)) {
    const auto constant = symbolic_.find({});
    if (constant == symbolic_.end()) return;
    constant_ = constant->second;
    symbolic_.erase(constant);
}

Extent Extent::symbol(const std::string &name) { return Extent(Terms{{{name}, 1}}); }

Extent::Terms Extent::terms() const {
    Terms terms = symbolic_;
    if (constant_ != 0) terms.emplace(Monomial(), constant_);
    return terms;
}

Extent Extent::with_values(const Bindings &bindings) const {
    if (is_static()) return *this;
    Extent sum;
    for (const auto &[monomial, coefficient] : terms()) {
        Extent term = coefficient;
        for (const std::string &name : monomial) {
            const auto found = bindings.find(name);
            term = term * (found == bindings.end() ? symbol(name) : Extent(found->second));
        }
        sum = sum + term;
    }
    return sum;
}

int64_t Extent::value() const {
    if (!is_static()) throw InternalError("internal error: extent " + to_string(*this) + " is not static");
    return constant_;
}

int64_t Extent::evaluate(const Bindings &bindings) const {
    Wide sum = constant_;
    bool fitting = true;
    for (const auto &[monomial, coefficient] : symbolic_) {
        Wide product = coefficient;
        for (const std::string &symbol : monomial) {
            const auto binding = bindings.find(symbol);
            if (binding == bindings.end()) {
                throw UserError({Location(), "extent " + to_string(*this), "needs a value of symbol '" + symbol + "'", "", ""});
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
    for (const auto &[monomial, coefficient] : symbolic_) names.insert(monomial.begin(), monomial.end());
    return {names.begin(), names.end()};
}

std::optional<Extent> Extent::divide(const Extent &other) const {
    if (is_static() && other.is_static())
        return other.constant_ == 0 || constant_ % other.constant_ != 0 ? std::nullopt : std::optional(Extent(constant_ / other.constant_));
    const Terms divisors = other.terms();
    if (divisors.size() != 1) return std::nullopt;
    const auto &[divisor, divisor_coefficient] = *divisors.begin();
    Terms quotient;
    for (const auto &[monomial, coefficient] : terms()) {
        const Wide wide = coefficient;
        if (wide % divisor_coefficient != 0) return std::nullopt;
        if (!std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end())) return std::nullopt;
        Monomial rest;
        std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
        accumulate(quotient, rest, wide / divisor_coefficient);
    }
    return Extent(std::move(quotient));
}

Extent Extent::operator+(const Extent &other) const {
    Extent sum = *this;
    sum.constant_ = narrow(Wide(constant_) + other.constant_);
    for (const auto &[monomial, coefficient] : other.symbolic_) accumulate(sum.symbolic_, monomial, coefficient);
    return sum;
}

Extent Extent::operator-(const Extent &other) const {
    Extent difference = *this;
    difference.constant_ = narrow(Wide(constant_) - other.constant_);
    for (const auto &[monomial, coefficient] : other.symbolic_) accumulate(difference.symbolic_, monomial, -Wide(coefficient));
    return difference;
}

Extent Extent::operator*(const Extent &other) const {
    if (is_static() && other.is_static()) return narrow(Wide(constant_) * other.constant_);
    Terms product;
    for (const auto &[left, left_coefficient] : terms()) {
        for (const auto &[right, right_coefficient] : other.terms()) {
            Monomial monomial;
            std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(monomial));
            accumulate(product, monomial, Wide(left_coefficient) * right_coefficient);
        }
    }
    return Extent(std::move(product));
}

std::string to_string(const Extent &extent) {
    if (extent.is_static()) return std::to_string(extent.constant());
    std::string text;
    const auto append = [&](const Extent::Monomial &monomial, int64_t coefficient) {
        const bool negative = coefficient < 0;
        if (text.empty())
            text = negative ? "-" : "";
        else
            text += negative ? " - " : " + ";
        text += term_to_string(monomial, magnitude_of(coefficient));
    };
    // The constant term is the first in the order of terms, but it is printed last.
    for (const auto &[monomial, coefficient] : extent.terms()) {
        if (!monomial.empty()) append(monomial, coefficient);
    }
    if (extent.constant() != 0) append({}, extent.constant());
    return text;
}

} // namespace scalide

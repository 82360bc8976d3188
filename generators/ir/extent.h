#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalide {

/// An array extent: a polynomial with integer coefficients over named symbols, such as `7`, `b`, `4*b` or `b*s + 1`. It is canonical
/// (sorted, without zero terms), so two extents are equal if their values are equal for all symbols.
class Extent {
public:
    using Monomial = std::vector<std::string>; ///< sorted symbol names, repeated for powers; empty = the constant term
    using Terms = std::map<Monomial, int64_t>;
    using Bindings = std::map<std::string, int64_t>;

    Extent(int64_t value = 0) : constant_(value) {}
    static Extent symbol(const std::string &name);

    bool is_static() const { return symbolic_.empty(); }
    /// Returns the value of a static extent (a number). Throws InternalError for a symbolic extent.
    int64_t value() const;
    /// Returns the term without symbols, or 0.
    int64_t constant() const { return constant_; }
    /// Returns all nonzero terms, including the constant term.
    Terms terms() const;
    /// Returns the value for these symbols. Throws UserError if a symbol has no binding or the value is outside [0, 2^31).
    int64_t evaluate(const Bindings &bindings) const;
    /// Returns the extent with numbers instead of the symbols that have a binding.
    Extent with_values(const Bindings &bindings) const;
    std::vector<std::string> symbols() const;
    /// Returns *this / other if the division has no remainder for all symbol values. Supports only divisors with one term.
    std::optional<Extent> divide(const Extent &other) const;

    Extent operator+(const Extent &other) const;
    Extent operator-(const Extent &other) const;
    Extent operator*(const Extent &other) const;
    auto operator<=>(const Extent &other) const = default; ///< any total order, for maps

private:
    explicit Extent(Terms terms);

    // Most extents are numbers. A separate constant term avoids an allocation for them.
    int64_t constant_;
    Terms symbolic_;
};

/// Returns text such as `4*b + 1`, which parse_extent reads back.
std::string to_string(const Extent &extent);

} // namespace scalide

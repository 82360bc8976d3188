#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalide {

/// An array extent: a polynomial with integer coefficients over named symbols, kept canonical (sorted, no zero terms), so that
/// equality is equality of values for all symbols. `7`, `b`, `4*b`, `b*s + 1`.
class Extent {
public:
    using Monomial = std::vector<std::string>; ///< sorted symbol names, repeated for powers; empty = the constant term
    using Bindings = std::map<std::string, int64_t>;

    Extent(int64_t value = 0);
    static Extent symbol(const std::string &name);

    bool is_static() const;
    /// The value of a static extent. Throws InternalError otherwise.
    int64_t value() const;
    const std::map<Monomial, int64_t> &terms() const { return terms_; }
    /// Throws UserError when a symbol has no binding or the value leaves [0, 2^31).
    int64_t evaluate(const Bindings &bindings) const;
    std::vector<std::string> symbols() const;
    /// *this / other when it divides without remainder for all symbol values (one-term divisors only).
    std::optional<Extent> divide(const Extent &other) const;

    Extent operator+(const Extent &other) const;
    Extent operator-(const Extent &other) const;
    Extent operator*(const Extent &other) const;
    bool operator==(const Extent &other) const = default;
    bool operator<(const Extent &other) const { return terms_ < other.terms_; } ///< any total order, for maps

private:
    std::map<Monomial, int64_t> terms_;
};

/// `4*b + 1`; parses back through parse_extent.
std::string to_string(const Extent &extent);

} // namespace scalide

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
    using Terms = std::map<Monomial, int64_t>;
    using Bindings = std::map<std::string, int64_t>;

    Extent(int64_t value = 0) : constant_(value) {}
    static Extent symbol(const std::string &name);

    bool is_static() const { return symbolic_.empty(); }
    /// The value of a static extent. Throws InternalError otherwise.
    int64_t value() const;
    /// The term without symbols, 0 where there is none.
    int64_t constant() const { return constant_; }
    /// The terms that are not zero, the constant one too.
    Terms terms() const;
    /// Throws UserError when a symbol has no binding or the value leaves [0, 2^31).
    int64_t evaluate(const Bindings &bindings) const;
    std::vector<std::string> symbols() const;
    /// *this / other when it divides without remainder for all symbol values (one-term divisors only).
    std::optional<Extent> divide(const Extent &other) const;

    Extent operator+(const Extent &other) const;
    Extent operator-(const Extent &other) const;
    Extent operator*(const Extent &other) const;
    auto operator<=>(const Extent &other) const = default; ///< any total order, for maps

private:
    explicit Extent(Terms terms);

    // Most extents are numbers: apart from the rest, a number takes no memory of its own.
    int64_t constant_;
    Terms symbolic_;
};

/// `4*b + 1`; parses back through parse_extent.
std::string to_string(const Extent &extent);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/policy.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Where a value's scale comes from.
struct ScaleOrigin {
    enum class Kind {
        none,       ///< an ordinary number
        values,     ///< its own values: the operator `op` chose it
        bound,      ///< a bound of its values that is known before they are (norm_bound), by the operator `op`
        argument,   ///< a scaled argument, moved and converted
        propagated, ///< operands' scales, by the rules of operators
        blocks,     ///< several: one for each block of a product's operand
    };
    Kind kind = Kind::none;
    std::string op = {};
    std::string block = {};    ///< its extents: "32", "128 x 128"; "one row"
    Dtype format = Dtype::f32; ///< of the scales of blocks
    bool operator==(const ScaleOrigin &) const = default;
};

/// What assign_numerics decided at one place of a program.
struct NumericsDecision {
    PolicyRule::Place place;
    std::string tensor; ///< of the source program
    std::string use;    ///< "dot_general.lhs" of an operand or a result of a node; else empty
    std::string scope;  ///< of the node
    Location row;       ///< of the policy; none: the program's own types decided
    Location source;    ///< of the node; of an argument, where it is declared
    ValueId value = -1; ///< in the program that was made; once it is there, what the value is read from
    Dtype stored = Dtype::f32;
    ScaleOrigin scale = {};
    int operand = -1; ///< of a node that was replaced, whose result is `value` until what is read is known

    bool is_policys() const { return row.line != 0; }
    /// A conversion to 8 bits of an ordinary number: what is small becomes zero, what is large the end of the format.
    bool is_unsafe() const { return place != PolicyRule::Place::argument && size_of(stored) == 1 && scale.kind == ScaleOrigin::Kind::none; }
};

/// Fills in what the program that was made says of each decision's value: how it is stored, and its scale.
void complete(std::vector<NumericsDecision> &decisions, const Program &made, const Rulebook &rulebook);

/// How the values of a program that assign_numerics made are stored, and where their scales come from.
class StoredForms {
public:
    StoredForms(const Program &made, const Rulebook &rulebook);

    /// What `value` is read from: behind movement, stop_scaling and conversions that widen.
    ValueId stored(ValueId value) const;
    const ScaleOrigin &scale(ValueId value) const { return scales_[value]; }

private:
    const Program &program_;
    const std::vector<int> producers_;
    std::vector<ScaleOrigin> scales_; ///< by value
};

/// Formats of the contractions of a program, and of its state: a product is narrow when both operands are stored in fewer than 32 bits.
struct ProductFormats {
    size_t products = 0; ///< matmuls and convolutions
    size_t convolutions = 0;
    std::map<std::string, size_t> narrow; ///< "f8", "f16", "bf16": that of the wider operand
    std::map<std::string, size_t> blocks; ///< those of the narrow ones that are scaled by blocks: "32"
    size_t own = 0;                       ///< narrow ones of the program's own: it says itself that an operand is narrow and has no scale
    size_t unscaled = 0;                  ///< other narrow ones with an operand that has no scale, and not the range of f32 (bf16)
    size_t unsafe_conversions = 0;        ///< of the policy, to 8 bits without a scale, in products or not
    size_t own_conversions = 0;           ///< the program's own
    std::map<std::string, size_t> states; ///< arguments that are overwritten, by how they are stored: "f16, scaled, rounded to nearest"
    void add(const ProductFormats &other);
    size_t narrow_products() const;
};

/// Of a program that assign_numerics made with these decisions.
ProductFormats product_formats(const Program &made, const Rulebook &rulebook, const std::vector<NumericsDecision> &decisions);

/// Bytes that the kernels of a fused program write, by float format, with nominal sizes of symbols (fusion/groups/costs.h).
std::map<Dtype, double> bytes_written(const Program &fused);

/// Arrays in f32 that a kernel hands to others, largest first: what a policy could store in fewer bits.
std::vector<std::pair<std::string, double>> wide_intermediates(const Program &fused);

} // namespace scalide

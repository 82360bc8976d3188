#pragma once
#include "rulebook/policy.h"
#include "rulebook/rulebook.h"
#include "transforms/analysis/directions.h"

namespace scalide {

/// True for a float format with the range of f32, such as bf16. Values need no scale there.
bool has_wide_range(Dtype dtype);

/// Where the scale of a value comes from.
struct ScaleOrigin {
    enum class Kind {
        none,       ///< no scale: an ordinary number
        values,     ///< computed from the values themselves by the operator `op`
        bound,      ///< computed by the operator `op` from a bound that is known before the values (norm_bound)
        state,      ///< the state `op` of the policy, computed from earlier runs
        fixed,      ///< a constant of the program, from a calibration
        argument,   ///< the scale of a scaled argument, which was moved or converted
        propagated, ///< computed from scales of operands by the rules of operators
        blocks,     ///< several scales: one for each block of a matmul operand
    };
    Kind kind = Kind::none;
    std::string op = {};       ///< the operator that computes it, or the state
    std::string block = {};    ///< extents of a block: "32", "128 x 128"; "row"; "column"
    Dtype format = Dtype::f32; ///< dtype of the scales of blocks
    bool operator==(const ScaleOrigin &) const = default;
};

/// The use of an array that the policy adds.
inline constexpr const char *state_of_policy = "state of the policy";

/// Describes what one of several scales belongs to: "block of 32", "row", "column".
std::string described_block(const std::string &block);

/// What assign_numerics decided at one site of a program.
struct NumericsDecision {
    PolicyRule::Place place;
    std::string tensor;  ///< name in the source program
    std::string use;     ///< "dot_general.lhs" for an operand or a result of a node; otherwise empty
    std::string scope;   ///< of the node
    Direction direction; ///< of the node; none for an argument
    Location row;        ///< the policy's rule; none if the program's own types decided
    Location source;     ///< of the node; of an argument: its declaration
    ValueId value = -1;  ///< in the rewritten program; after complete(): the stored value that is read
    Dtype stored = Dtype::f32;
    ScaleOrigin scale = {};
    int operand = -1; ///< set for a node that the policy replaced. Until complete() finds the operand, `value` is the node's result.

    bool computes = false; ///< `row` is a rule with `compute`

    bool is_policys() const { return row.line != 0; }
    /// True for a conversion to f16 or 8 bits without a scale: small values become zero. Large ones become infinite, or the largest number
    /// of the format.
    bool is_unsafe() const {
        return place != PolicyRule::Place::argument && scale.kind == ScaleOrigin::Kind::none &&
               (size_of(stored) == 1 || !has_wide_range(stored));
    }
};

/// How a policy treats an operand of a matmul.
struct OperandDecision {
    std::string tensor; ///< name in the source program
    Location row;       ///< the policy's rule that decides; none if no rule matches
    std::string why;    ///< the conditions of the rule, "layer: first"; without a rule, why none matches
    bool is_kept;       ///< the rule has no action
    ValueId value = -1; ///< in the rewritten program; after complete(): the stored value that is read
    Dtype stored = Dtype::f32;
    ScaleOrigin scale = {};
};

/// What assign_numerics decided for a matmul or convolution of a program.
struct MatmulDecision {
    std::string tensor; ///< name of the result in the source program
    std::string op;     ///< after a replacement: the new operator
    std::string scope;
    Direction direction;
    Location source;
    std::vector<OperandDecision> operands = {};
    ValueId replacement = -1; ///< result of the operator that the policy put in place; -1: none

    /// Returns the rule without an action that decides for an operand, if all operands have at least 32 bits.
    std::optional<Location> keeping_row() const;
};

/// What assign_numerics decided for a program.
struct PolicyDecisions {
    std::vector<NumericsDecision> sites;
    std::vector<MatmulDecision> matmuls;
    std::vector<PolicyDecisions> regions; ///< of the nodes that own programs, in order; their values are those regions'

    /// Returns the decisions of the program and of its regions.
    std::vector<NumericsDecision> all_sites() const;
    std::vector<MatmulDecision> all_matmuls() const;
};

/// Fills in how the values of all decisions are stored in the rewritten program, and their scales.
void complete(PolicyDecisions &decisions, const Program &made, const Rulebook &rulebook);

/// How the values of a program are stored after assign_numerics, and where their scales come from.
class StoredForms {
public:
    StoredForms(const Program &made, const Rulebook &rulebook);

    /// Returns the stored value from which `value` is read through movement, stop_scaling and widening conversions.
    ValueId stored(ValueId value) const;
    const ScaleOrigin &scale(ValueId value) const { return scales_[value]; }

private:
    const Program &program_;
    const std::vector<int> producers_;
    std::vector<ScaleOrigin> scales_; ///< by value
};

/// Counts the number formats of a program's matmuls and state. A matmul is low-precision if both operands are stored in fewer than 32 bits.
struct ProductFormats {
    size_t products = 0; ///< matmuls and convolutions
    size_t convolutions = 0;
    std::map<std::string, size_t> narrow; ///< "f8", "f16", "bf16": that of the wider operand
    std::map<std::string, size_t> blocks; ///< those of the narrow ones that are scaled by blocks: "32"
    size_t own = 0;                       ///< narrow ones of the program's own: it says itself that an operand is narrow and has no scale
    size_t unscaled = 0;                  ///< other narrow ones with an operand that has no scale, and not the range of f32 (bf16)
    size_t unsafe_conversions = 0;        ///< of the policy, to 8 bits without a scale, in products or not
    size_t unsafe_halves = 0;             ///< of the policy, to f16 without a scale
    size_t own_conversions = 0;           ///< the program's own, to 8 bits
    size_t policy_states = 0;             ///< arrays that the policy adds
    size_t saturating = 0; ///< arrays on which is_finite depends and that the policy may saturate: the scale is not from the data
    std::map<std::pair<std::string, int>, size_t> kept; ///< matmuls that a rule leaves in 32 bits, by file and line of the rule
    std::map<std::string, size_t> states; ///< arguments that are overwritten, by how they are stored: "f16, scaled, rounded to nearest"
    void add(const ProductFormats &other);
    size_t narrow_products() const;
};

/// Counts the formats of a program that assign_numerics made with these decisions.
ProductFormats product_formats(const Program &made, const Rulebook &rulebook, const PolicyDecisions &decisions);

/// Returns the bytes that the kernels of a fused program write, by float format. Symbols have nominal sizes (fusion/groups/costs.h).
std::map<Dtype, double> bytes_written(const Program &fused);

/// Returns the f32 arrays that one kernel passes to others, largest first. A policy could store them in fewer bits.
std::vector<std::pair<std::string, double>> wide_intermediates(const Program &fused);

} // namespace scalide

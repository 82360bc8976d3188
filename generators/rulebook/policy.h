#pragma once
#include "rulebook/instance.h"

namespace scalide {

/// One operator that a policy inserts on a value (`{dynamic_rescale: {norm: max, to: 224}}`, `{convert: f8_e4m3fn}`), or puts in the place
/// of a node's. What has the name of its second operand is the name of a state: `{hashed_round: {dtype: f16, step: rounding_step}}`.
struct Insertion {
    std::string op;
    Attributes attributes;
};

/// An array that a policy adds to a program which needs it: an inout argument behind the program's own.
///   - {name: rounding_step, dtype: u32, initial: 0, next: next_step}
struct PolicyState {
    std::string name;
    Type type;       ///< `shape` may be left out: rank 0
    int64_t initial; ///< each element before the first run
    Insertion next;  ///< makes what the state is after a run of what it was
    Location location;
};

/// One row of a policy; the first row that matches a place decides for it. Absent conditions match everything.
///   - {argument: inout, store: f16, scaled: true}                      retypes program arguments (and the inout results that go there)
///   - {op: [dot_general], operand: primal, insert: [...]}              on an operand edge
///   - {op: [dot_general], operands: any, replace: {...}}               on a node, by what all of its operands are
///   - {op: [dot_general, reduce_sum], result: any, store: bf16}        on a node's result: with op or scope
///   - {result: inout, insert: [...], store: f16}                       on a program result
///   - {keep: "head/**"}                                                leaves nodes of a scope, and an argument, as the program has them
/// A row that decides for nothing is an error (transforms/numerics/policy_match.h) unless it is `optional`.
struct PolicyRule {
    enum class Place { argument, operand, node_result, program_result, node, keep };
    Place place;
    std::string which;            ///< one of place_words, or a name: of arguments and program results a glob ("params.**"); of keep a glob
    std::string scope;            ///< glob over scopes ("head/**"); empty: all
    std::vector<std::string> ops; ///< empty: all
    std::optional<int64_t> size_below; ///< matches only values of fewer elements (static extents)
    std::vector<Insertion> insert;     ///< `scale: {by: max}` is the first of them
    std::optional<Dtype> store;        ///< rounds the value to this dtype and stores it so
    std::optional<bool> scaled;
    Location location;
    bool optional = false;                ///< may decide for nothing
    bool inherited = false;               ///< of a policy that this one extends
    std::vector<std::string> operands;    ///< of a node: a word for all operands, or one for each
    std::optional<Insertion> replacement; ///< of a node

    /// The dtype in which the row leaves a value: that of its last conversion.
    std::optional<Dtype> stored_dtype() const;
};

/// The words that `which` may be at a place, beside names: what a value is in the program (transforms/numerics/policy_roles.h).
const std::vector<std::string> &place_words(PolicyRule::Place place);

/// A numerics policy, from YAML: `policy, doc, extends, scales, strategy, rounding, key, round, overflow, intermediates, accumulation,
/// precision, state, rules`. It inserts operators, retypes arguments and adds state.
struct Policy {
    std::string name = "f32", doc;
    ScaleSettings scales;
    /// `scales: stored` (default): a scale belongs to the stored array; where it is read, data * scale is an ordinary f32 number again.
    /// `scales: propagated`: operators compute on data and combine scales by their rules, as Scalify does. A program that itself has
    /// scaled arguments or results, or a strategy, is always propagated.
    bool propagates = false;
    bool round_every_node =
        false; ///< `round: every_node`: a node typed f16 or bf16 is rounded where it stands (as JAX does); default `materialized`
    Overflow overflow = Overflow::saturate; ///< of the roundings that the policy places; a conversion's own attribute goes first
    /// `intermediates: bf16`: f32 arrays that one kernel writes and a product of another reads are stored so
    /// (transforms/fusion/stores.h). Only a format with the range of f32 is
    /// safe without a scale.
    std::optional<Dtype> intermediates;
    bool fast_accumulation = false; ///< `accumulation: fast`: of products of primal values; those of gradients are always split
    bool tf32 = false;              ///< `precision: tf32`: a GPU may round f32 operands of products to 11 bits
    std::vector<PolicyState> state;
    std::vector<PolicyRule> rules;

    /// The state of this name, or nullptr.
    const PolicyState *find_state(std::string_view name) const;
};

/// Loads one policy file, and what it extends: `extends: base.yaml` is a path beside it, `extends: f8_scaled` one of ours, in the folder
/// `ours`. UserError with file and line as for rules.
Policy load_policy(const std::filesystem::path &file, const std::filesystem::path &ours = {});
Policy parse_policy(const std::string &yaml, const std::string &file, const std::filesystem::path &ours = {});

/// The names of the policies in a folder, sorted.
std::vector<std::string> policy_names(const std::filesystem::path &folder);

} // namespace scalide

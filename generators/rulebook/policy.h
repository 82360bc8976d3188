#pragma once
#include "rulebook/calibration.h"
#include "rulebook/instance.h"
#include "rulebook/policy_statistics.h"

namespace scalide {

/// One operator that a policy inserts after a value, or that replaces a node: `{dynamic_rescale: {norm: max, to: 224}}`, `{convert:
/// f8_e4m3fn}`. An entry with the name of the second operand names a state: `{hashed_round: {dtype: f16, step: rounding_step}}`.
struct Insertion {
    std::string op;
    Attributes attributes;
};

/// An array that a policy adds to a program if a rule needs it: an inout argument after the arguments of the program.
///   - {name: rounding_step, dtype: u32, initial: 0, next: next_step}
///   - {name: scale, per: tensor, dtype: f32, initial: 1, next: {delayed_scale: {history: amax_history}}}
struct PolicyState {
    /// How many arrays there are: one for the program; one for the tensors of each scope, merged by max; or one for each tensor for which a
    /// rule names the state. An array of tensors is called `<tensor>.<name>`. A state may read only states with a smaller or equal `per`.
    enum class Per { program, scope, tensor };
    std::string name;
    Per per = Per::program;
    Type type;       ///< `shape` is optional; default: a scalar
    int64_t initial; ///< value of each element before the first run
    /// Computes the next state. Its first operand is the state. An attribute with the name of another operand names a state, whose next
    /// value it gets. An operand that is left is the tensor.
    Insertion next;
    Location location;
    bool inherited = false; ///< it comes from a policy that this policy extends
};

/// The dtype in which a rule lets an operator compute, `compute: f16`: its float operands are rounded to it, and so is its result.
struct ComputeDtype {
    enum class Kind : uint8_t {
        fixed,   ///< `dtype`
        widest,  ///< the widest dtype of the operands in the program: f32, bf16, f16
        original ///< the dtype of the program
    };
    Kind kind = Kind::original;
    Dtype dtype = Dtype::f32;
};

/// One rule of a policy. The first rule that matches a site decides for it. A condition that is left out matches everything.
///   - {argument: inout, store: f16, scaled: true}                      retypes arguments (and the inout results that update them)
///   - {op: [dot_general], operand: primal, insert: [...]}              for an operand
///   - {op: [dot_general], operands: any, replace: {...}}               for a node, selected by all its operands
///   - {op: [dot_general, add], operands: any, compute: f16}            for a node; a rule with the outermost scope decides
///   (policy_match.h)
///   - {op: [dot_general, reduce_sum], result: any, store: bf16}        for the result of a node (needs op or scope)
///   - {result: inout, insert: [...], store: f16}                       for a result of the program
///   - {keep: "head/**"}                                                keeps nodes of a scope, or an argument, unchanged
///   - {op: dot_general, operand: any, layer: [first, last]}            keeps the operands of the first and the last layer unchanged
/// A rule that decides for no site is an error (transforms/numerics/policy_match.h), unless it is `optional`.
struct PolicyRule {
    enum class Place { argument, operand, node_result, program_result, node, keep };
    Place place;
    std::string which;                 ///< one of place_words, or a name. For arguments, results and keep it may be a glob ("params.**")
    std::string scope;                 ///< glob for scopes ("head/**"); empty: all
    std::vector<std::string> ops;      ///< empty: all
    std::optional<int64_t> size_below; ///< matches only values with fewer elements (and static extents); of a matmul: of its weight
    std::vector<Insertion> insert;     ///< `scale: {by: max}` is the first insertion
    std::optional<Dtype> store;        ///< rounds the value to this dtype and stores it in this dtype
    std::optional<bool> scaled;
    Location location;
    bool optional = false;             ///< it may match no site
    bool inherited = false;            ///< it comes from a policy that this policy extends
    std::vector<std::string> operands; ///< for a node: one word for all operands, or one word for each
    /// `scale: {by: calibration, margin: 1}`: attributes of delayed_scale, which computes the scale from the amax of the calibration
    Attributes calibrated;
    std::optional<Insertion> replacement;   ///< for a node: the operator that replaces it
    std::optional<ComputeDtype> compute;    ///< for a node: the dtype in which it computes
    std::vector<std::string> layers;        ///< of layer_words(); empty: all. transforms/numerics/policy_layers.h finds the layers
    std::vector<Dtype> dtypes;              ///< matches only values with these dtypes in the program; empty: all
    std::optional<int64_t> not_multiple_of; ///< matches only matmuls whose weight has rows or columns that are not a multiple
    std::string tensor; ///< matches only sites of this value or result of the program; empty: all. Only `scalide compare` sets it
    std::optional<int64_t> contracted_below; ///< matches only matmuls whose sums have fewer terms (and static extents)

    /// Returns the dtype of the value after the rule: the dtype of the last conversion.
    std::optional<Dtype> stored_dtype() const;
    /// True if the rule has an action. A rule without one leaves its sites unchanged.
    bool acts() const { return store || scaled || replacement || compute || !insert.empty(); }
};

/// Returns the words that `which` may be, in addition to names. They are roles of values (transforms/numerics/policy_roles.h).
const std::vector<std::string> &place_words(PolicyRule::Place place);

/// Returns the words that `layer` may be: first, last.
const std::vector<std::string> &layer_words();

/// A precision policy from a YAML file. It inserts operators, retypes arguments and adds state.
struct Policy {
    std::string name = "f32", doc;
    ScaleSettings scales;
    /// `scales: stored` (default): a scale belongs to a stored array. A kernel that reads the array computes with data * scale in f32.
    /// `scales: propagated`: operators compute on data and combine scales by their rules, as jax_scalify does. A program with scaled
    /// arguments or results, or with a strategy, always propagates.
    bool propagates = false;
    bool round_every_node =
        false; ///< `round: every_node`: each f16 or bf16 node is rounded, as in JAX. Default `materialized`: only stored values
    Overflow overflow = Overflow::saturate; ///< default for conversions without an attribute `overflow`
    /// `intermediates: bf16`: an f32 array that one kernel writes and a matmul in another kernel reads is stored in bf16
    /// (transforms/fusion/stores.h). Without a scale, only a format with the range of f32 is safe.
    std::optional<Dtype> intermediates;
    bool fast_accumulation = false;         ///< `accumulation: fast`: for matmuls of the forward pass; gradients always accumulate in f32
    bool tf32 = false;                      ///< `precision: tf32`: a GPU may round f32 operands of matmuls to 11 significant bits
    bool require_libraries = false;         ///< `libraries: required`: a library must compute each matmul of a GPU program
    bool exact_arithmetic = false;          ///< `arithmetic: exact`: functions have the same bits on a CUDA GPU as on a CPU
    std::optional<Calibration> calibration; ///< `calibration: scales.yaml`
    std::vector<PolicyState> state;
    std::vector<PolicyRule> rules;
    std::vector<StatisticsRow> statistics;

    /// Returns the state with this name, or nullptr.
    const PolicyState *find_state(std::string_view name) const;
};

/// An insertion with this word instead of the name of a state gets its scale from the calibration.
inline constexpr std::string_view calibration_word = "calibration";
/// The operator that computes the scale from the amax.
inline constexpr const char *calibrated_scale = "delayed_scale";

/// Loads a policy file and the policies that it extends. `extends: base.yaml` is a path relative to the file; `extends: f8_master` is a
/// built-in policy in the folder `ours`. Throws UserError with file and line.
Policy load_policy(const std::filesystem::path &file, const std::filesystem::path &ours = {});
Policy parse_policy(const std::string &yaml, const std::string &file, const std::filesystem::path &ours = {});

/// Returns the names of the policies in a folder, sorted.
std::vector<std::string> policy_names(const std::filesystem::path &folder);

} // namespace scalide

#pragma once
#include "frontend/generator.h"
#include "frontend/tree.h"
#include <optional>
#include <type_traits>
#include <utility>

/// Loops and branches, with the meaning of jax.lax. Bodies and branches are functions, which run once, while the program is built. They may
/// use tensors from outside. Carries, sequences and results are trees of tensors (scalide::tree): a tensor, or a std::vector, std::array or
/// std::map of trees. A library runs loops of any number of steps, and one branch. A library with a policy that rounds operands at
/// random unrolls each loop, which must have a known number of at most 64 steps, and computes all branches.
///
///     const auto [last, hs] = scan([&](Tensor h, Tensor x) { h = tanh(dot(h, w) + x); return std::pair(h, h); }, h0, xs);
///     const Tensor root = fori_loop(0, 5, [&](Tensor, Tensor x) { return 0.5 * (x + a / x); }, a);
///     const Tensor power = while_loop([&](Tensor p) { return p < limit; }, [](Tensor p) { return 2 * p; }, one, {.max_steps = 100});
///     const Tensor y = cond(is_last, [&] { return x; }, [&] { return 2 * x; });
namespace scalide {

/// Options of map() and fori_loop().
struct LoopOptions {
    bool remat = false;  ///< a gradient computes the values of each step again, instead of storing them
    bool unroll = false; ///< the program has the nodes of all steps, at most 64, so that kernels can span steps
};

/// Options of scan().
struct ScanOptions {
    std::optional<Dimension> length = {}; ///< the number of steps; empty: the extent of the first axis of the sequences
    bool reverse = false;                 ///< from the last element to the first one
    bool remat = false;                   ///< as in LoopOptions
    bool unroll = false;                  ///< as in LoopOptions
};

/// Options of while_loop().
struct WhileOptions {
    std::optional<int64_t> max_steps = {}; ///< a run that needs more steps fails; empty: no limit
};

/// What a loop is, for add_loop().
struct LoopNode {
    std::string op; ///< scan, map, fori or while
    Attributes attributes;
    std::vector<Tensor> init, sequences;
    bool has_step = false; ///< the body takes the number of the element
};

/// The arguments of a body, and its results.
struct LoopStep {
    Tensor step; ///< i32 scalar
    std::vector<Tensor> carries, elements;
};
struct LoopResults {
    std::vector<Tensor> carries, stacked;
};
/// Gets the carries and returns a bool scalar: whether a `while` makes another step.
using LoopTest = std::function<Tensor(const std::vector<Tensor> &carries)>;

/// Adds a loop: calls `body` once, and before it `test`, which only a `while` has. Returns the carries after the last step, then the
/// stacked results. The functions below have trees.
std::vector<Tensor> add_loop(const LoopNode &loop, const std::function<LoopResults(const LoopStep &)> &body,
                             const std::source_location &where, const LoopTest &test = {});
/// Adds a `cond` or a `switch`: calls each branch once. Returns the results.
std::vector<Tensor> add_branches(const std::string &op, const Tensor &selector,
                                 const std::vector<std::function<std::vector<Tensor>()>> &branches, const std::source_location &where);
/// Returns the attributes of a scan. Throws UserError if nothing gives the number of steps.
Attributes scan_attributes(const ScanOptions &options, const std::vector<Tensor> &sequences, const std::source_location &where);
/// Returns the attributes of the options. Throws UserError if `max_steps` is negative.
Attributes loop_attributes(const LoopOptions &options);
Attributes while_attributes(const WhileOptions &options, const std::source_location &where);

/// Returns a tree with the same tensors; for a State, its value.
template<typename T>
auto tree_of(const T &tree) {
    return tree::map([](const Tensor &leaf) { return leaf; }, tree);
}

/// Calls `body` in each step with the carry and the element number `step` of xs: (carry, x), or (step, carry, x). It returns the next carry
/// and a result, as a std::pair. Returns the last carry, and the results stacked along a new first axis (lax.scan). The carry keeps its
/// dtypes and shapes. Throws UserError otherwise.
template<typename Body, typename Carry, typename Sequences>
auto scan(const Body &body, const Carry &init, const Sequences &xs, const ScanOptions &options = {},
          const std::source_location &where = std::source_location::current()) {
    const auto start = tree_of(init);
    const auto sequences = tree_of(xs);
    using State = std::remove_const_t<decltype(start)>;
    using Element = std::remove_const_t<decltype(sequences)>;
    constexpr bool has_step = std::is_invocable_v<Body, Tensor, State, Element>;
    const auto call = [&](const LoopStep &step) {
        const State carry = tree::unflatten(start, step.carries);
        const Element x = tree::unflatten(sequences, step.elements);
        if constexpr (has_step)
            return body(step.step, carry, x);
        else
            return body(carry, x);
    };
    using Stacked = std::remove_cvref_t<decltype(call(LoopStep()).second)>;
    std::optional<Stacked> made;
    const std::vector<Tensor> parts = tree::leaves(sequences), carries = tree::leaves(start);
    std::vector<Tensor> results = add_loop(
        {"scan", scan_attributes(options, parts, where), carries, parts, has_step},
        [&](const LoopStep &step) -> LoopResults {
            auto [carry, result] = call(step);
            made = result;
            return {tree::leaves(carry), tree::leaves(result)};
        },
        where);
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(carries.size());
    return std::pair<State, Stacked>(tree::unflatten(start, {results.begin(), middle}), tree::unflatten(*made, {middle, results.end()}));
}

/// Calls `body` with each element of xs, along the first axis. Returns the results stacked along a new first axis (lax.map).
template<typename Body, typename Sequences>
auto map(const Body &body, const Sequences &xs, const LoopOptions &options = {},
         const std::source_location &where = std::source_location::current()) {
    const auto sequences = tree_of(xs);
    using Result = decltype(tree_of(body(sequences)));
    std::optional<Result> made;
    const std::vector<Tensor> parts = tree::leaves(sequences);
    const std::vector<Tensor> results = add_loop(
        {"map", scan_attributes({.remat = options.remat, .unroll = options.unroll}, parts, where), {}, parts},
        [&](const LoopStep &step) -> LoopResults {
            made = tree_of(body(tree::unflatten(sequences, step.elements)));
            return {{}, tree::leaves(*made)};
        },
        where);
    return tree::unflatten(*made, results);
}

/// Calls `body` with i = lower, lower + 1 .. upper - 1 and the carry: (i, carry). It returns the next carry. Returns the last carry
/// (lax.fori_loop). If upper <= lower, this is `init`.
template<typename Body, typename Carry>
auto fori_loop(const Dimension &lower, const Dimension &upper, const Body &body, const Carry &init, const LoopOptions &options = {},
               const std::source_location &where = std::source_location::current()) {
    const auto start = tree_of(init);
    Attributes attributes = loop_attributes(options);
    attributes.insert({{"lower", lower.extent}, {"upper", upper.extent}});
    const auto step = [&](const LoopStep &arguments) -> LoopResults {
        return {tree::leaves(tree_of(body(arguments.step, tree::unflatten(start, arguments.carries)))), {}};
    };
    return tree::unflatten(start, add_loop({"fori", attributes, tree::leaves(start), {}, true}, step, where));
}

/// Calls `body` with the carry while test(carry), a bool scalar, is true. It returns the next carry. Returns the last carry
/// (lax.while_loop). A run fails if `test` is still true after `max_steps` steps. No gradient: use scan() or fori_loop().
template<typename Test, typename Body, typename Carry>
auto while_loop(const Test &test, const Body &body, const Carry &init, const WhileOptions &options = {},
                const std::source_location &where = std::source_location::current()) {
    const auto start = tree_of(init);
    const auto goes_on = [&](const std::vector<Tensor> &carries) -> Tensor { return test(tree::unflatten(start, carries)); };
    const auto step = [&](const LoopStep &arguments) -> LoopResults {
        return {tree::leaves(tree_of(body(tree::unflatten(start, arguments.carries)))), {}};
    };
    return tree::unflatten(start, add_loop({"while", while_attributes(options, where), tree::leaves(start), {}}, step, where, goes_on));
}

/// Returns yes() if the predicate, a bool scalar, is true, and otherwise no() (lax.cond). Both must return the same dtypes and shapes.
template<typename Yes, typename No>
auto cond(const Tensor &predicate, const Yes &yes, const No &no, const std::source_location &where = std::source_location::current()) {
    std::optional<decltype(tree_of(yes()))> made;
    const auto first = [&] { return tree::leaves(*(made = tree_of(yes()))); };
    const auto second = [&] { return tree::leaves(tree_of(no())); };
    const std::vector<Tensor> results = add_branches("cond", predicate, {first, second}, where);
    return tree::unflatten(*made, results);
}

/// Returns the result of branch number `index`, an i32 scalar (lax.switch). An index below 0 counts as 0, one that is too large as the
/// last. All branches must return the same dtypes and shapes.
template<typename Tree>
Tree switch_case(const Tensor &index, const std::vector<std::function<Tree()>> &branches,
                 const std::source_location &where = std::source_location::current()) {
    std::optional<Tree> made;
    std::vector<std::function<std::vector<Tensor>()>> flat;
    for (const std::function<Tree()> &branch : branches) flat.push_back([&] { return tree::leaves(*(made = branch())); });
    const std::vector<Tensor> results = add_branches("switch", index, flat, where);
    return tree::unflatten(*made, results);
}

} // namespace scalide

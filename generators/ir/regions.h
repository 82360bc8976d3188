#pragma once
#include "ir/program.h"
#include <functional>

namespace scalide {

/// Nodes that own programs: loops and branches. Each argument of a region that is not `step` takes one operand, in order, after the
/// leading operands; all regions of a node take the same operands. The results of a node are the new values of the inout arguments, in the
/// order of the arguments, then the other results.
///
///     node    leading operands     regions      results
///     scan    with {count: true}:  body         carries, then stacks of the other results, [length, ...]
///             the steps, i32[]
///     map     -                    body         stacks; a scan without inouts
///     fori    without {lower}:     body         carries; `step` is lower .. upper - 1
///             lower, upper, i32[]
///     while   -                    test, body   carries; test gives one bool[], before each step
///     cond    predicate, bool[]    two          those of the first region if it is true, else of the second
///     switch  index, i32[]         one or more  those of the region with this number, clamped to 0 .. regions - 1
///     straight -                   body         those of the region, which runs once; only passes make it (fusion/split_regions.h)
///
/// An argument of the body of a loop that is `inout` is a carry: the operand is its value before the first step. An inout argument of a
/// straight region says that the result overwrites the operand. `each` is element `step` of the first
/// axis of the operand; others see the same array in each step. The attribute `length` of scan and map is an extent. With `count`, a scan
/// runs min(count, length) steps, and the later elements of stacks are 0. With `reverse: true`, steps run from the last element to the
/// first one. `unroll: true` asks for the nodes of all steps instead of a loop (transforms/calls/unroll.h).
/// With `remat: true`, the gradient of a loop computes the values of each step again from its carries and elements. Otherwise
/// it reads them from stacks that the loop makes.
struct RegionKind {
    std::string_view op;
    int least_regions, most_regions;
    bool is_loop;
    int (*leading_operands)(const Node &node);
    std::vector<std::string_view> attributes;
};

/// Returns nullptr if nodes with this operator own no programs.
const RegionKind *find_region_kind(std::string_view op);

/// How a loop and its body belong together: an element for each argument of the body.
struct LoopView {
    explicit LoopView(const Node &node);

    int leading = 0;
    std::vector<int> operands; ///< the operand of each argument; -1 for `step`
    std::vector<int> carries;  ///< the number of the result that is the new value of each argument; -1 if the argument is no carry
    int carry_count = 0;       ///< results of the node after these are stacks
};

/// Returns the number of steps of a scan, a map or a fori with static bounds, as an extent; empty if an operand gives it.
std::optional<Extent> length_of(const Node &node);

/// Returns true if an attribute of the node is `true`.
bool has_flag(const Node &node, const std::string &name);

/// Checks operands, attributes and regions of a node, whose regions have types. Returns the types of its results. Throws UserError.
std::vector<Type> region_result_types(const Program &program, const Node &node);

/// True for an argument of a region that is the operand itself: no carry, no element, and not the number of the step.
bool is_capture(const Argument &argument);

/// Returns true if a node of the program owns programs.
bool has_regions(const Program &program);

/// Returns the type of the stack of a value: an axis for the steps in front.
Type stacked(Type type, const Extent &length);

/// Returns the number of the operand that argument `argument` of the regions takes. It must not be `step`.
size_t operand_of(const Node &node, const Program &region, size_t argument);

/// Removes an argument from regions of a node, and its operand.
void erase_argument(Node &node, std::vector<Program> &regions, size_t argument);
/// Removes the arguments that no region reads, except inouts. Returns whether there were any.
bool erase_unread_arguments(Node &node, std::vector<Program> &regions);

/// Returns a region with the symbols and sub-programs of `owner`, the program of its node.
Program open_region(const Region &region, const Program &owner);
/// Returns the region without symbols and sub-programs.
Region close_region(Program program);

/// Replaces each region of a node by f(region). f gets the region with the symbols and sub-programs of `owner`, the program of the node.
void rewrite_regions(Node &node, const Program &owner, const std::function<Program(Program region)> &f);

/// Calls visit(program) for a program and for all of its regions.
template<typename Visit>
void visit_programs(const Program &program, const Visit &visit) {
    visit(program);
    for (const Node &node : program.nodes)
        for (const Region &region : node.regions) visit_programs(*region, visit);
}

/// Returns the program with f(region) as each region, inner ones first. f gets a region with the symbols and sub-programs of `program`.
Program map_regions(Program program, const std::function<Program(Program region)> &f);

} // namespace scalide

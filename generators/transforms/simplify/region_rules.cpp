#include "transforms/simplify/region_rules.h"
#include "transforms/simplify/cheap_elements.h"
#include "transforms/simplify/chosen_branches.h"
#include "transforms/simplify/counted_loops.h"
#include "transforms/simplify/loop_invariants.h"
#include "transforms/simplify/unread_parts.h"
#include <algorithm>

namespace scalide {

namespace {

/// Changes a node if the rule applies, and returns whether it did.
using RegionRule = bool (*)(RegionEdit &edit);

constexpr RegionRule region_rules[] = {
    drop_unread_results,   // stacks, results of branches, and carries that only themselves read
    give_kept_carries,     // a carry that never changes is a capture; its last value is the first one
    merge_twin_carries,    // carries that start equal and change equally
    merge_equal_results,   // stacks of one value, and results that are equal in each branch
    merge_equal_arguments, // captures and elements of one operand
    drop_unread_arguments, // captures, elements and the number of the step
    inline_chosen_branch,  // a switch with a constant index, or with equal branches
    give_common_captures,  // a result that is the same capture in each branch
    count_steps,           // a `while` with a counter
    settle_count,          // a constant count of steps becomes the length
    give_start_without_steps,
    inline_single_step,
    move_constants_in,      // captures and elements that are one number
    replace_known_elements, // elements of a broadcast or an iota
    give_known_stacks,      // stacks of a capture, an element, the number of the step, or an invariant
    compute_cheap_elements, // elements of a stack that a few nodes compute from other elements
    move_invariants_out,    // nodes that depend on captures alone
};

} // namespace

bool apply_region_rules(RegionEdit &edit) {
    bool has_changed = false;
    for (bool again = true; again && edit.result_count() > 0;) {
        again = false;
        for (const RegionRule rule : region_rules) {
            if (edit.result_count() == 0 || !rule(edit)) continue;
            edit.remove_dead_nodes();
            has_changed = again = true;
        }
    }
    return has_changed;
}

} // namespace scalide

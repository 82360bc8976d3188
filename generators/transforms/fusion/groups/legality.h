#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// States whether two groups can become one kernel: either the merged group, or the reason against it.
struct Verdict {
    bool allowed = false;
    Group merged;       ///< its kind and shapes
    std::string reason; ///< a text for the report; why_two_kernels() gives the more helpful one
};

/// True if a group takes no further nodes.
bool is_full(const Groups &groups, int group);

/// Returns why two groups cannot be one kernel whatever their kinds: size limits and overwritten arguments. Empty if nothing forbids it.
std::string why_apart(const Groups &groups, int first, int second);

/// True if both groups read the same array, and it has the iteration shape of the first group.
bool share_an_array(const Groups &groups, int first, int second);

/// False if a producer of this kind and a consumer of that kind can never become one kernel.
bool may_join(KernelKind producer, KernelKind consumer);

/// Checks whether two groups can be fused. `consumer` reads values of `producer`, or must run after it. Cheap checks come first, so the
/// reason is the first one found.
Verdict judge(const Groups &groups, int producer, int consumer);

/// Explains in the report why these are two kernels. If a third kernel must run between them, the text names it and no other reason.
std::string why_two_kernels(const Groups &groups, int producer, int consumer);

/// Checks whether two groups can be fused that do not depend on each other. Such groups are kernels of one kind, or a matmul and the sum of
/// its operand.
Verdict judge_beside(const Groups &groups, int first, int second);
/// The same check for groups whose independence the caller has already established.
Verdict judge_as_strangers(const Groups &groups, int first, int second);

} // namespace scalide

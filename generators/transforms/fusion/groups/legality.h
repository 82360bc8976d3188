#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Whether two groups can be one kernel, and either what that kernel is or why not.
struct Verdict {
    bool allowed = false;
    Group merged;       ///< kind and shapes
    std::string reason; ///< in words; why_two_kernels() has the one for people
};

/// True when nothing more fits into a group's kernel.
bool is_full(const Groups &groups, int group);

/// What forbids any two groups to be one kernel, in words; empty when nothing does.
std::string why_apart(const Groups &groups, int first, int second);

/// Both read an array over which the first iterates.
bool share_an_array(const Groups &groups, int first, int second);

/// False where no producer of this kind may be one kernel with a consumer of that kind.
bool may_join(KernelKind producer, KernelKind consumer);

/// `consumer` reads values of `producer`, or must run after it. The first reason that is cheap to find.
Verdict judge(const Groups &groups, int producer, int consumer);

/// Why these are two kernels, for a person: before other reasons that a third kernel must run between them, and which.
std::string why_two_kernels(const Groups &groups, int producer, int consumer);

/// Neither needs the other: kernels of one kind side by side, and the sum of an operand beside the contraction that reads it.
Verdict judge_beside(const Groups &groups, int first, int second);
/// The same of two of which the caller knows that.
Verdict judge_as_strangers(const Groups &groups, int first, int second);

} // namespace scalide

#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// True when a dot_general has at most one batch axis and exactly one free lhs, free rhs and contracting axis.
bool is_normal_dot(const Program &program, const Node &dot);

/// The same dot_general in that form: axes of a group are merged into one by a reshape (and a transpose where they don't stand side by
/// side), a group without axes gets one of extent 1; the result is reshaped back. A Remake (splice.h).
std::vector<ValueId> normalize_dot(Builder &builder, const Node &dot);

} // namespace scalide

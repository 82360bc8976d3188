#pragma once
#include "context/context.h"
#include "scalide/plan.h"

namespace scalide {

/// Checks the table of statistics of a program whose other tables are correct, and the statistics program.
scalide_status check_statistics(scalide_context *context, const scalide_program &program);

/// Sets is_number[i] for each argument of the statistics program that has a number of a tensor. The others are the arguments of the program
/// itself, in order. Returns false if an index is out of range, or occurs twice.
bool mark_numbers(const scalide_statistics_plan &plan, bool *is_number);

} // namespace scalide

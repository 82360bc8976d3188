#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Computes products of all steps of a loop at once, because one large matmul is faster than many small ones. For a weight w:
///
///     in step t of the loop                       becomes
///     x[t] @ w, if x is known before              x @ w before the loop, whose rows the loop reads
///     y[t] = f(h @ w), if no step reads it        h is a stack; y = f(h @ w) after the loop
///     g = g + transpose(x[t]) @ d                 x and d are stacks; g is one product after the loop, also over the steps
///     b = b + reduce_sum(d), if d is a stack      one sum after the loop
///
/// Products of concatenations, and slices of products, are split first (split_products.h).
/// The terms of the sums are the same, in another order. Loops whose number of steps is only known during the run stay as they are.
/// `notes` receives a sentence for each product and sum that left its loop.
Program batch_products(const Program &program, const Rulebook &rulebook, std::vector<std::string> *notes = nullptr);

} // namespace scalide

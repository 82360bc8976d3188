#pragma once
#include "context.h"
#include "scalide/plan.h"

/// What scalide_bind refuses. Each check leaves its message in the context: `<program>.<argument>: requirement, got value. way out`.
namespace scalide {

/// The caller's arrays for a program.
struct Call {
    scalide_context *context;
    const scalide_program &program;
    const scalide_array *arrays;
};

/// ` b = 32, n = 5`
Text &print_values(Text &text, const scalide_program &program, const int32_t *symbols);
/// Begins the message about an argument: `<program>.<argument>: `.
Text complain(const Call &call, int32_t argument);

/// Plan version, indices in range, CPU features.
scalide_status check_program(scalide_context *context, const scalide_program &program);

bool check_count(const Call &call, size_t count);
/// Dtype, rank, range of the extents and number of elements of one argument.
bool check_type(const Call &call, int32_t argument);
/// A run reads the argument and writes it.
inline bool is_overwritten(int32_t role) { return role == SCALIDE_INOUT || role == SCALIDE_STATE; }

/// Finds the symbols' values in the shapes of inputs and inouts (whose types are checked) and checks their ranges.
scalide_status solve_symbols(const Call &call, int32_t *symbols);
/// What operators ask of symbols beside their ranges.
bool check_requirements(const Call &call, const int32_t *symbols);
/// Extents of one argument.
bool check_shape(const Call &call, int32_t argument, const int32_t *symbols);
/// Strides, data and scale pointers of one argument, and the value of its scale where the host can read it.
bool check_memory(const Call &call, int32_t argument);
/// Arguments that a run writes share no memory with others.
bool check_overlap(const Call &call);

} // namespace scalide

#pragma once
#include "context/context.h"
#include "scalide/plan.h"

/// The checks of scalide_bind. Each check writes its message to the context: `<program>.<argument>: requirement, got value. way out`.
namespace scalide {

/// The arrays that the caller passes to a program.
struct Call {
    scalide_context *context;
    const scalide_program &program;
    const scalide_array *arrays;
    const void *arena = nullptr; ///< memory of the caller for intermediate values; NULL: none
    uint64_t arena_bytes = 0;
    const scalide_array *constants = nullptr; ///< by argument: dtypes and extents of prepared constants. NULL: `arrays` has the constants

    const scalide_array &array(int32_t argument) const {
        return constants && program.arguments[argument].role == SCALIDE_CONSTANT ? constants[argument] : arrays[argument];
    }
};

/// Prints ` b = 32, n = 5`.
Text &print_values(Text &text, const scalide_program &program, const int32_t *symbols);
/// Returns true if the program allows this value of the symbol.
bool allows(const scalide_symbol &symbol, int64_t value);
/// Prints which values a symbol may have: `b must be a multiple of 2 in [2, 1024]`.
Text &print_allowed(Text &text, const scalide_symbol &symbol);
/// Starts the message about an argument: `<program>.<argument>: `.
Text complain(const Call &call, int32_t argument);

/// Checks the plan version. If it is another one, no other field of the program is known.
bool check_version(scalide_context *context, const scalide_program &program);
/// Checks that the program is for the kind of device of the context.
scalide_status check_device(scalide_context *context, const scalide_program &program);
/// Checks the plan version, the device and the range of indices.
scalide_status check_program(scalide_context *context, const scalide_program &program);
/// Checks that the CPU has all features of the program's target.
scalide_status check_cpu(scalide_context *context, const scalide_program &program);

bool check_count(const Call &call, size_t count);
/// Checks dtype, rank, range of the extents and number of elements of one argument.
bool check_type(const Call &call, int32_t argument);
/// Returns true if a run reads or writes the argument's memory. The prepare program has read constants before.
inline bool is_used_by_runs(int32_t role) { return role != SCALIDE_CONSTANT; }
/// Returns true if a run both reads and writes the argument.
inline bool is_overwritten(int32_t role) { return role == SCALIDE_INOUT || role == SCALIDE_STATE; }

/// Returns true if the caller's arrays give the symbol its value. The groups of the context give it to the other symbols.
inline bool is_from_arguments(const scalide_symbol &symbol) { return symbol.source == SCALIDE_FROM_ARGUMENTS; }
/// Computes the symbols' values from the shapes of inputs and inouts, and from the groups of the context, and checks their ranges. The
/// types must have been checked.
scalide_status solve_symbols(const Call &call, int32_t *symbols);
/// Computes the values of the symbols that are not from arguments. `symbols` has the values of the others.
scalide_status solve_group_symbols(scalide_context *context, const scalide_program &program, int32_t *symbols);
/// Returns true if the groups of the context give the symbols these values.
bool has_group_values(const scalide_context &context, const scalide_program &program, const int32_t *symbols);
/// Checks the requirements of operators on symbols, other than their ranges.
bool check_requirements(const Call &call, const int32_t *symbols);
/// Checks the extents of one argument.
bool check_shape(const Call &call, int32_t argument, const int32_t *symbols);
/// Checks the strides, data and scale pointers of one argument, and the value of its scale if the host can read it.
bool check_memory(const Call &call, int32_t argument);
/// Checks that arguments that a run writes share no memory with others, and that no argument is in the arena of the caller.
bool check_overlap(const Call &call);

/// Checks arrays for a binding whose symbols are known, but not their number.
bool check_like(const Call &call, const int32_t *symbols);

} // namespace scalide

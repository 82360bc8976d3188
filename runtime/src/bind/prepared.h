#pragma once
#include "bind/binding.h"
#include <atomic>

/// What the prepare program of a program computed. One block of memory contains the structure and its tables; `memory` is another one.
struct scalide_constants {
    std::atomic<int32_t> holders; ///< the caller and the bindings
    scalide_allocator allocator;  ///< of the context that prepared them
    scalide_context *context;     ///< of the device that has the memory, which they hold; NULL: the CPU
    const scalide_program *prepare;
    int32_t argument_count, prepared_count;
    scalide_array *arguments; ///< by argument of the program: dtype and extents of a constant, without memory
    scalide_array *prepared;  ///< by output of the prepare program
    void *memory;             ///< of the prepared arrays
    uint64_t bytes;
};

namespace scalide {

struct Call;

/// Constants for a binding that does not exist yet.
class HeldConstants {
public:
    /// Holds constants of a caller. NULL: there are none yet.
    explicit HeldConstants(scalide_constants *constants) : constants_(constants) {
        if (constants) constants->holders.fetch_add(1);
    }
    HeldConstants(const HeldConstants &) = delete;
    HeldConstants &operator=(const HeldConstants &) = delete;
    ~HeldConstants() { scalide_constants_destroy(constants_); }

    /// Checks that the constants are for the program of the call. If there are none yet, prepares them from the arrays of the call.
    scalide_status provide(const Call &call);
    /// Returns the constants by argument of the program, without memory. NULL: the program has none.
    const scalide_array *arguments() const { return constants_ ? constants_->arguments : nullptr; }
    /// Gives the constants to a binding, which then holds them. Afterwards, its arrays of constants have no memory.
    void give_to(scalide_binding &binding);

private:
    scalide_constants *constants_;
};

/// Checks that prepared buffers have the extents that the program expects.
scalide_status check_prepared(const scalide_binding &binding);
/// Returns the constants of the last scalide_set_constants or bind, and holds them. NULL: the program has none. Other threads may run the
/// binding and replace its constants.
scalide_constants *hold_newest_constants(const scalide_binding &binding);
/// At the start of a run: takes the constants of the last scalide_set_constants.
scalide_status take_next_constants(scalide_binding &binding);

} // namespace scalide

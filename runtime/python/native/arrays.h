#pragma once
#include "loaded_program.h"
#include <nanobind/nanobind.h>

/// Conversions between NumPy arrays and arrays of the runtime.
namespace scalide::python {

/// Sets the NumPy dtypes by name. A dtype that is None or missing cannot be an argument. scalide/library.py calls it once.
void set_dtypes(const nanobind::dict &dtypes);

/// Returns a NumPy array that owns `memory`.
nanobind::object to_numpy(const scalide_array &array, Memory memory);
nanobind::object scalar_to_numpy(float value);

/// The expected argument, for messages about an array.
struct Wanted {
    std::string name; ///< "step.x"
    int32_t dtype;
};
/// Describes a NumPy array. It makes a copy if the array is not contiguous, not aligned, not in native byte order, or if it has a 64-bit
/// dtype for a 32-bit argument (converted as JAX does). `keep` gets the objects that must stay alive.
scalide_array view_input(const nanobind::handle &array, const Wanted &wanted, std::vector<nanobind::object> &keep);
/// Returns true if a run can update the array of `view_input` in place: the array is writable, and its memory has the alignment of inouts.
bool is_updatable(const nanobind::handle &array, const scalide_array &view);
/// Describes an array that a run writes. Throws if it is read-only or not contiguous.
scalide_array view_output(const nanobind::handle &array, const Wanted &wanted);
/// Returns the memory of an f32 scalar array.
float *view_scale(const nanobind::handle &array, const Wanted &wanted);

} // namespace scalide::python

#pragma once
#include "loaded_program.h"
#include <nanobind/nanobind.h>

/// NumPy arrays as arrays of the runtime, and back.
namespace scalide::python {

/// Tells NumPy's dtypes by our names; those that are None or missing are never an argument. Called once, by scalide/library.py.
void set_dtypes(const nanobind::dict &dtypes);

/// A NumPy array over memory that it takes.
nanobind::object to_numpy(const scalide_array &array, Memory memory);
nanobind::object scalar_to_numpy(float value);

/// For messages about an array that no bind would see.
struct Wanted {
    std::string name; ///< "step.x"
    int32_t dtype;
};
/// Describes a NumPy array: itself, or a copy when it is not dense, aligned and in native byte order, or has 64 bits where 32 are wanted,
/// which are then what JAX takes them for. `keep` holds what must live on.
scalide_array view_input(const nanobind::handle &array, const Wanted &wanted, std::vector<nanobind::object> &keep);
/// As it is: what a run writes into. Throws when it is read-only or not dense.
scalide_array view_output(const nanobind::handle &array, const Wanted &wanted);
/// The memory of an f32 array of rank 0.
float *view_scale(const nanobind::handle &array, const Wanted &wanted);

} // namespace scalide::python

#pragma once
#include "loaded_program.h"
#include <nanobind/nanobind.h>

/// NumPy arrays as arrays of the runtime, and back.
namespace scalide::python {

/// Tells NumPy's dtypes of the numbers in scalide_dtype; None for those that are never an argument. Called once, by scalide/library.py.
void set_dtypes(const nanobind::list &dtypes);

/// Memory that NumPy will own, aligned to 64 bytes.
using Memory = std::unique_ptr<void, void (*)(void *)>;
/// For a dense array of this dtype, rank and extents. Throws Failure.
Memory allocate_data(const scalide_array &array);
size_t data_bytes(const scalide_array &array);

/// A NumPy array over memory that it takes.
nanobind::object to_numpy(const scalide_array &array, Memory memory);
nanobind::object scalar_to_numpy(float value);

/// For messages about an array that no bind would see.
struct Wanted {
    std::string name; ///< "step.x"
    int32_t dtype;
};
/// Describes a NumPy array: itself, or a copy when it is not dense, aligned and in native byte order. `keep` holds what must live on.
scalide_array view_input(const nanobind::handle &array, const Wanted &wanted, std::vector<nanobind::object> &keep);
/// As it is: what a run writes into. Throws when it is read-only or not dense.
scalide_array view_output(const nanobind::handle &array, const Wanted &wanted);
/// The memory of an f32 array of rank 0.
float *view_scale(const nanobind::handle &array, const Wanted &wanted);

} // namespace scalide::python

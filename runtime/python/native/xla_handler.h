#pragma once
#include "loaded_program.h"
#include <nanobind/nanobind.h>

namespace scalide::python {

/// A capsule with XLA's FFI handler, or None when this module was built without XLA's headers.
nanobind::object xla_handler();
/// Makes the program callable by its key from jitted functions, for as long as the process lives: they are never told to forget it.
void register_for_xla(const std::shared_ptr<LoadedProgram> &program, int64_t key);

} // namespace scalide::python

#pragma once
#include "loaded_program.h"
#include <nanobind/nanobind.h>

namespace scalide::python {

/// Returns a capsule with the FFI handler for XLA, or None if this module was built without the headers of XLA.
nanobind::object xla_handler();
/// Registers a program by its key, so that jitted functions can call it. It stays registered as long as the process lives. With prepared
/// `constants` (or NULL), calls work as long as the caller keeps them.
void register_for_xla(const std::shared_ptr<LoadedProgram> &program, const std::shared_ptr<Constants> &constants, int64_t key);

} // namespace scalide::python

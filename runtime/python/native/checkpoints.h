#pragma once
#include <nanobind/nanobind.h>

namespace scalide::python {

/// Adds the functions on checkpoints and msgpack files to the module.
void add_checkpoints(nanobind::module_ &module);

} // namespace scalide::python

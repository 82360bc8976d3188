#pragma once

namespace scalide {

/// The text of default_kernels.yaml, which is compiled into the tool.
extern const char *const default_kernels_text;

} // namespace scalide

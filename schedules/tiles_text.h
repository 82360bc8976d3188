#pragma once

namespace scalide {

/// tiles.yaml, as it was when this library was built.
extern const char *const tiles_text;
/// dispatch.yaml, likewise.
extern const char *const dispatch_text;

} // namespace scalide

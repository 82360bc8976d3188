#pragma once

namespace scalide {

/// tiles.yaml, as it was when this library was built.
extern const char *const tiles_text;

} // namespace scalide

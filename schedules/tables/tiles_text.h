#pragma once

namespace scalide {

/// The text of tiles.yaml when this library was built.
extern const char *const tiles_text;
/// The text of dispatch.yaml when this library was built.
extern const char *const dispatch_text;

} // namespace scalide

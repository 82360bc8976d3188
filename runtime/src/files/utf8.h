#pragma once
#include <cstddef>

namespace scalide {

/// True if the text is UTF-8. Each character must have its shortest form and be no surrogate.
bool is_utf8(const char *text, size_t size);
bool is_utf8(const char *text);

} // namespace scalide

#pragma once

namespace scalide {

/// True with AddressSanitizer. It makes the tests of rules ten to thirty times slower, so they draw fewer cases.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

} // namespace scalide

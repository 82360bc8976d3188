#pragma once

namespace scalide {

/// Built with AddressSanitizer, which makes the tests of rules ten to thirty times as slow: they draw fewer cases, on the same code.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

} // namespace scalide

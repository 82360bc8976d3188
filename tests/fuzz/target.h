#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

// One part of Scalide on any bytes, which it takes, or refuses as it documents (UserError, a status). With clang's libFuzzer this is its
// entry point; otherwise driver.cpp calls it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

inline std::string to_text(const uint8_t *data, size_t size) { return {reinterpret_cast<const char *>(data), size}; }

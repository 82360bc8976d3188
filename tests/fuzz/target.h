#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

// Runs one part of Scalide on arbitrary bytes. The part must accept them or reject them as documented (UserError, a status). With clang's
// libFuzzer this is its entry point; otherwise driver.cpp calls it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

inline std::string to_text(const uint8_t *data, size_t size) { return {reinterpret_cast<const char *>(data), size}; }

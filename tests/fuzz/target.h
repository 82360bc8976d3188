#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

// One parser: reads any bytes, and either takes them or throws UserError. With clang's libFuzzer this is its entry point; otherwise
// driver.cpp calls it on mutated seeds.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

inline std::string to_text(const uint8_t *data, size_t size) { return {reinterpret_cast<const char *>(data), size}; }

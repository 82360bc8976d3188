#pragma once
#include "base/halide_abi.h"
#include <cstddef>

extern "C" {
int halide_do_par_for(void *user_context, scalide::HalideTask task, int min, int size, uint8_t *closure);
void *halide_malloc(void *user_context, size_t bytes);
void halide_free(void *user_context, void *memory);
void halide_error(void *user_context, const char *message);
}

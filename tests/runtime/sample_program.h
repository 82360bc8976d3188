#pragma once
#include "scalide/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

const scalide_program *sample_program(void);

int sample_rows(void **arguments);
int sample_reduce(void **arguments);
int sample_update(void **arguments);

#ifdef __cplusplus
}
#endif

// The compiler reads this header before each source of libscalide_runtime.so. Functions are hidden by default (CXX_VISIBILITY_PRESET). The
// functions that these public headers declare become visible.
#ifndef SCALIDE_EXPORTS_H
#define SCALIDE_EXPORTS_H

#pragma GCC visibility push(default)
#include "scalide/checkpoints.h"
#include "scalide/groups.h"
#include "scalide/metrics.h"
#include "scalide/msgpack.h"
#include "scalide/safetensors.h"
#include "scalide/scalide.h"
#include "scalide/statistics.h"
#pragma GCC visibility pop

#endif

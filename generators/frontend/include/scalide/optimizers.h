/// Include this header in a source with generators that train: optimizers, schedules of learning rates, and arrays of
/// integers with a factor for each column.
#pragma once
#include "frontend/optimizers.h"
#include "frontend/quantized_columns.h"
#include "scalide/generator.h"

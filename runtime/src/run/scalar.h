#pragma once
#include <cstdint>

namespace scalide {

/// Rank-0 values as numbers: of the dtypes that C has. Narrow floats have no number here.
bool is_scalar_dtype(int32_t dtype);
void store_scalar(int32_t dtype, int64_t value, void *memory);
double load_scalar(int32_t dtype, const void *memory);

} // namespace scalide

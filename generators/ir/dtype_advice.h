#pragma once
#include <string>
#include <string_view>

namespace scalide {

/// Returns what to write for a dtype that programs do not have, such as i64, f64 or float32. Empty if there is no advice.
std::string dtype_advice(std::string_view name);

} // namespace scalide

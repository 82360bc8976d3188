#include "ir/dtype_advice.h"
#include <utility>

namespace scalide {

std::string dtype_advice(std::string_view name) {
    constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"float32", "f32"}, {"float", "f32"},    {"single", "f32"}, {"float16", "f16"}, {"half", "f16"},   {"bfloat16", "bf16"},
        {"int32", "i32"},   {"int", "i32"},      {"int16", "i16"},  {"int8", "i8"},     {"uint32", "u32"}, {"uint16", "u16"},
        {"uint8", "u8"},    {"boolean", "bool"}, {"int64", "i64"},  {"long", "i64"}};
    for (const auto &[other, own] : names)
        if (name == other) return "Write " + std::string(own);
    if (name == "f64" || name == "float64" || name == "double") return "Arrays have at most 32 bits. Use f32";
    if (name == "u64" || name == "uint64") return "Unsigned integers have at most 32 bits. Use u32, or index by i64";
    return "";
}

} // namespace scalide

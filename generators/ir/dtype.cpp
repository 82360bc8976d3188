#include "ir/dtype.h"

#include <array>

namespace scalide {

namespace {

struct DtypeRow {
    Dtype dtype;
    std::string_view name;
    bool is_float;
    int size;
};

// In the order of the enumeration, so that a dtype is the index of its row.
constexpr std::array<DtypeRow, 11> rows{{
    {Dtype::f32, "f32", true, 4},
    {Dtype::f16, "f16", true, 2},
    {Dtype::bf16, "bf16", true, 2},
    {Dtype::f8_e4m3fn, "f8_e4m3fn", true, 1},
    {Dtype::f8_e5m2, "f8_e5m2", true, 1},
    {Dtype::f8_e4m3fnuz, "f8_e4m3fnuz", true, 1},
    {Dtype::f8_e5m2fnuz, "f8_e5m2fnuz", true, 1},
    {Dtype::f8_e8m0fnu, "f8_e8m0fnu", true, 1},
    {Dtype::i32, "i32", false, 4},
    {Dtype::boolean, "bool", false, 1},
    {Dtype::f64, "f64", true, 8},
}};

constexpr auto dtypes = [] {
    std::array<Dtype, rows.size()> list{};
    for (size_t i = 0; i < rows.size(); i++) list[i] = rows[i].dtype;
    return list;
}();

const DtypeRow &row_of(Dtype dtype) { return rows[static_cast<size_t>(dtype)]; }

} // namespace

std::string_view to_string(Dtype dtype) { return row_of(dtype).name; }

std::optional<Dtype> parse_dtype(std::string_view name) {
    for (const DtypeRow &row : rows) {
        if (row.name == name) return row.dtype;
    }
    return std::nullopt;
}

std::span<const Dtype> all_dtypes() { return dtypes; }

bool is_float(Dtype dtype) { return row_of(dtype).is_float; }

int size_of(Dtype dtype) { return row_of(dtype).size; }

} // namespace scalide

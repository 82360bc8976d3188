#include "ir/dtype.h"
#include "expr/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace scalide {

namespace {

enum class Kind { floating, signed_integer, unsigned_integer, truth };

struct DtypeRow {
    Dtype dtype;
    std::string_view name;
    Kind kind;
    int size;
};

// In the order of the enumeration, so that a dtype is the index of its row.
constexpr std::array<DtypeRow, 16> rows{{
    {Dtype::f32, "f32", Kind::floating, 4},
    {Dtype::f16, "f16", Kind::floating, 2},
    {Dtype::bf16, "bf16", Kind::floating, 2},
    {Dtype::f8_e4m3fn, "f8_e4m3fn", Kind::floating, 1},
    {Dtype::f8_e5m2, "f8_e5m2", Kind::floating, 1},
    {Dtype::f8_e4m3fnuz, "f8_e4m3fnuz", Kind::floating, 1},
    {Dtype::f8_e5m2fnuz, "f8_e5m2fnuz", Kind::floating, 1},
    {Dtype::f8_e8m0fnu, "f8_e8m0fnu", Kind::floating, 1},
    {Dtype::i32, "i32", Kind::signed_integer, 4},
    {Dtype::boolean, "bool", Kind::truth, 1},
    {Dtype::f64, "f64", Kind::floating, 8},
    {Dtype::i8, "i8", Kind::signed_integer, 1},
    {Dtype::u8, "u8", Kind::unsigned_integer, 1},
    {Dtype::i16, "i16", Kind::signed_integer, 2},
    {Dtype::u16, "u16", Kind::unsigned_integer, 2},
    {Dtype::u32, "u32", Kind::unsigned_integer, 4},
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

bool is_float(Dtype dtype) { return row_of(dtype).kind == Kind::floating; }

bool is_integer(Dtype dtype) { return is_signed(dtype) || is_unsigned(dtype); }

bool is_signed(Dtype dtype) { return row_of(dtype).kind == Kind::signed_integer; }

bool is_unsigned(Dtype dtype) { return row_of(dtype).kind == Kind::unsigned_integer; }

int size_of(Dtype dtype) { return row_of(dtype).size; }

IntegerRange range_of(Dtype dtype) {
    internal_check(is_integer(dtype), "range_of: " + std::string(to_string(dtype)) + " is no integer");
    const double codes = std::ldexp(1.0, 8 * size_of(dtype));
    return is_signed(dtype) ? IntegerRange{-codes / 2, codes / 2 - 1} : IntegerRange{0, codes - 1};
}

double wrap_integer(Dtype dtype, double value) {
    if (!std::isfinite(value)) return saturate_integer(dtype, value);
    const int unused = 64 - 8 * size_of(dtype);
    const auto words = static_cast<int64_t>(std::fmod(value, 0x1p63)); // 2^63 is a multiple of every range
    const uint64_t code = static_cast<uint64_t>(words) << unused;
    return is_signed(dtype) ? static_cast<double>(static_cast<int64_t>(code) >> unused) : static_cast<double>(code >> unused);
}

double saturate_integer(Dtype dtype, double value) {
    if (std::isnan(value)) return 0;
    const IntegerRange range = range_of(dtype);
    return std::clamp(std::trunc(value), range.smallest, range.largest);
}

} // namespace scalide

#include "ir/dtype.h"
#include "expr/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace scalide {

namespace {

enum class Kind { SCALIDE_DTYPE_KINDS };

struct DtypeRow {
    Dtype dtype;
    std::string_view name;
    Kind kind;
    int bits;
};

#define SCALIDE_ROW(id, name, text, number, kind, bits, ...) DtypeRow{Dtype::name, text, Kind::kind, bits},
constexpr std::array rows{
    SCALIDE_DTYPES(SCALIDE_ROW)}; // the value of a dtype is the index of its row; runtime/src/base/status.cpp checks this
#undef SCALIDE_ROW

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

bool is_narrow(Dtype dtype) { return is_float(dtype) && bits_of(dtype) < 32; }

int bits_of(Dtype dtype) { return row_of(dtype).bits; }

int size_of(Dtype dtype) { return bits_of(dtype) / 8; }

IntegerRange range_of(Dtype dtype) {
    internal_check(is_integer(dtype), "range_of: " + std::string(to_string(dtype)) + " is no integer");
    const double codes = std::ldexp(1.0, bits_of(dtype));
    return is_signed(dtype) ? IntegerRange{-codes / 2, codes / 2 - 1} : IntegerRange{0, codes - 1};
}

bool is_exact_in_f64(int64_t number) {
    const auto nearest = static_cast<double>(number);
    return nearest < 0x1p63 && static_cast<int64_t>(nearest) == number;
}

double wrap_integer(Dtype dtype, double value) {
    if (!std::isfinite(value)) return saturate_integer(dtype, value);
    const int unused = 64 - bits_of(dtype);
    if (unused == 0) return std::clamp(std::trunc(value), -0x1p63, 0x1p63); // no operation leaves the range of i64
    const auto words = static_cast<int64_t>(std::fmod(value, 0x1p63));      // 2^63 is a multiple of the range of every integer dtype
    const uint64_t code = static_cast<uint64_t>(words) << unused;
    return is_signed(dtype) ? static_cast<double>(static_cast<int64_t>(code) >> unused) : static_cast<double>(code >> unused);
}

double saturate_integer(Dtype dtype, double value) {
    if (std::isnan(value)) return 0;
    const IntegerRange range = range_of(dtype);
    return std::clamp(std::trunc(value), range.smallest, range.largest);
}

} // namespace scalide

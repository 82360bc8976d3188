// scalide_convert: elements of one dtype become elements of another dtype, by the rules of the operator convert_element_type.
// Integers and bools become each other as i64. All other values are f64 in between. This is exact for data of at most 32 bits times an f32
// scale, so each element is rounded once. An i64 keeps the bits that rounding it once to another float format needs.
#include "base/float_environment.h"
#include "bind/extent.h"
#include "context/context.h"
#include "context/entry.h"
#include <cstring>
#include <limits>
#include <type_traits>

using namespace scalide;

namespace {

enum class Ties { even, up };

/// One row of SCALIDE_FORMATS.
struct Format {
    int exponent_bits, mantissa_bits, bias;
    bool has_sign, has_infinity, has_subnormals, has_negative_zero;
    uint32_t nan, largest;
    Ties ties;
};

template<int32_t dtype>
constexpr Format format_of = {};
#define SCALIDE_FORMAT(id, name, exponent, mantissa, bias, sign, infinity, subnormals, negative_zero, nan, largest, ties)                  \
    template<>                                                                                                                             \
    constexpr Format format_of<SCALIDE_##id> = {exponent,   mantissa,      bias, sign,    infinity,                                        \
                                                subnormals, negative_zero, nan,  largest, Ties::ties};
SCALIDE_FORMATS(SCALIDE_FORMAT)
#undef SCALIDE_FORMAT

constexpr int f64_mantissa = 52, f64_bias = 1023;
constexpr uint64_t f64_infinity = uint64_t{0x7ff} << f64_mantissa, f64_sign = uint64_t{1} << 63;

template<typename To, typename From>
To reinterpret(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}

/// Returns 2^exponent. The result must be a normal number.
double power(int exponent) { return reinterpret<double>(static_cast<uint64_t>(exponent + f64_bias) << f64_mantissa); }

double decode(const Format &format, uint32_t code) {
    const uint32_t mask = (1u << (format.exponent_bits + format.mantissa_bits)) - 1, magnitude = code & mask;
    const bool is_negative = format.has_sign && code > mask;
    if (format.has_infinity && magnitude == format.largest + 1)
        return is_negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    if (magnitude > format.largest || code == format.nan) return std::numeric_limits<double>::quiet_NaN();
    const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    const auto mantissa = static_cast<int>(magnitude & ((1u << format.mantissa_bits) - 1));
    const bool is_subnormal = exponent == 0 && format.has_subnormals;
    const int significand = mantissa + (is_subnormal ? 0 : 1 << format.mantissa_bits);
    const double value = significand * power((is_subnormal ? 1 : exponent) - format.bias - format.mantissa_bits);
    return is_negative ? -value : value;
}

/// Rounds |value|, which is finite. The result may exceed the largest number of the format.
uint32_t round_magnitude(const Format &format, double value) {
    const uint64_t bits = reinterpret<uint64_t>(value) & ~f64_sign;
    const int exponent = static_cast<int>(bits >> f64_mantissa) - f64_bias, smallest = 1 - format.bias;
    if (exponent + format.bias >= 1 << format.exponent_bits) return UINT32_MAX;
    if (exponent < smallest) { // the units of subnormal numbers are integers: the sum with 2^52 rounds to even
        const double units = reinterpret<double>(bits) * power(format.mantissa_bits - smallest);
        return static_cast<uint32_t>((units + power(f64_mantissa)) - power(f64_mantissa));
    }
    const int dropped = f64_mantissa - format.mantissa_bits;
    const uint64_t rebiased = bits - (static_cast<uint64_t>(f64_bias - format.bias) << f64_mantissa), half = uint64_t{1} << (dropped - 1);
    const uint64_t odd = rebiased >> dropped & 1;
    return static_cast<uint32_t>((rebiased + (format.ties == Ties::up ? half : half - 1 + odd)) >> dropped);
}

uint32_t encode(const Format &format, double value) {
    const uint64_t bits = reinterpret<uint64_t>(value), magnitude = bits & ~f64_sign;
    if (magnitude > f64_infinity) return format.nan;
    const bool is_infinite = magnitude == f64_infinity;
    if (!format.has_sign && !(value > 0)) return is_infinite ? format.nan : 0;
    const uint32_t sign = bits >> 63 ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
    if (is_infinite) return format.has_infinity ? (format.largest + 1) | sign : format.nan;
    const uint32_t code = round_magnitude(format, value);
    if (code > format.largest) return format.largest | sign;
    return code == 0 && !format.has_negative_zero ? 0 : code | sign;
}

/// Converts a float to an integer dtype. The result saturates, and NaN becomes 0.
template<typename Integer>
Integer saturate(double value) {
    using Limits = std::numeric_limits<Integer>;
    if (!(value > static_cast<double>(Limits::min()))) return value <= static_cast<double>(Limits::min()) ? Limits::min() : Integer{0};
    return value < static_cast<double>(Limits::max()) ? static_cast<Integer>(value) : Limits::max();
}

/// Reads and writes elements of one dtype that are `step` bytes apart.
struct Elements {
    void (*load)(const char *at, int64_t step, int64_t count, double *values);
    void (*store)(char *at, int64_t step, int64_t count, const double *values);
    /// Convert an element from and to i64. Null for floats.
    int64_t (*integer)(const char *at);
    void (*store_integer)(char *at, int64_t value);
};

/// Returns the nearest f64 if it is `value`. Otherwise returns a neighbour whose last bit is set, as rounding to odd does: rounding it to
/// at most 51 bits equals rounding `value`.
double to_odd(int64_t value) {
    constexpr int64_t limit = int64_t{1} << 53, rest = 2047;
    if (-limit <= value && value <= limit) return static_cast<double>(value);
    return static_cast<double>((value & ~rest) | ((value & rest) != 0 ? 1024 : 0));
}

template<typename Word, typename Decode>
void load_words(const char *at, int64_t step, int64_t count, double *values, Decode decode_word) {
    for (int64_t i = 0; i < count; ++i) {
        Word word;
        std::memcpy(&word, at + i * step, sizeof(word));
        values[i] = decode_word(word);
    }
}

template<typename Word, typename Encode>
void store_words(char *at, int64_t step, int64_t count, const double *values, Encode encode_word) {
    for (int64_t i = 0; i < count; ++i) {
        const Word word = encode_word(values[i]);
        std::memcpy(at + i * step, &word, sizeof(word));
    }
}

/// Elements of a type that C has.
template<typename T>
struct Plain {
    static void load(const char *at, int64_t step, int64_t count, double *values) {
        load_words<T>(at, step, count, values, [](T word) {
            if constexpr (std::is_same<T, int64_t>::value) return to_odd(word);
            return static_cast<double>(word);
        });
    }
    static void store(char *at, int64_t step, int64_t count, const double *values) {
        if constexpr (std::is_floating_point<T>::value) {
            store_words<T>(at, step, count, values, [](double value) { return static_cast<T>(value); });
        } else {
            store_words<T>(at, step, count, values, saturate<T>);
        }
    }
    static int64_t integer(const char *at) {
        T word;
        std::memcpy(&word, at, sizeof(word));
        return static_cast<int64_t>(word);
    }
    static void store_integer(char *at, int64_t value) { // the value wraps around
        const auto word = static_cast<T>(value);
        std::memcpy(at, &word, sizeof(word));
    }
};

struct Truth {
    static void load(const char *at, int64_t step, int64_t count, double *values) {
        load_words<uint8_t>(at, step, count, values, [](uint8_t word) { return word != 0 ? 1.0 : 0.0; });
    }
    static void store(char *at, int64_t step, int64_t count, const double *values) {
        store_words<uint8_t>(at, step, count, values, [](double value) { return static_cast<uint8_t>(value != 0); });
    }
    static int64_t integer(const char *at) { return *at != 0; }
    static void store_integer(char *at, int64_t value) { *at = value != 0; }
};

/// Elements of a float format of 8 or 16 bits.
template<int32_t dtype, typename Word>
struct Encoded {
    static void load(const char *at, int64_t step, int64_t count, double *values) {
        load_words<Word>(at, step, count, values, [](Word word) { return decode(format_of<dtype>, word); });
    }
    static void store(char *at, int64_t step, int64_t count, const double *values) {
        store_words<Word>(at, step, count, values, [](double value) { return static_cast<Word>(encode(format_of<dtype>, value)); });
    }
};

enum class Kind { SCALIDE_DTYPE_KINDS };

template<typename Access>
constexpr Elements float_elements = {Access::load, Access::store, nullptr, nullptr};

template<typename Access>
constexpr Elements integer_elements = {Access::load, Access::store, Access::integer, Access::store_integer};

template<int bits, bool is_signed>
using Integer =
    std::conditional_t<bits == 8, std::conditional_t<is_signed, int8_t, uint8_t>,
                       std::conditional_t<bits == 16, std::conditional_t<is_signed, int16_t, uint16_t>,
                                          std::conditional_t<bits == 32, std::conditional_t<is_signed, int32_t, uint32_t>, int64_t>>>;

template<int32_t dtype, Kind kind, int bits>
constexpr Elements elements_of() {
    if constexpr (kind == Kind::truth) return integer_elements<Truth>;
    if constexpr (kind == Kind::floating && bits <= 16)
        return float_elements<Encoded<dtype, std::conditional_t<bits == 8, uint8_t, uint16_t>>>;
    if constexpr (kind == Kind::floating) return float_elements<Plain<std::conditional_t<bits == 32, float, double>>>;
    if constexpr (kind == Kind::signed_integer || kind == Kind::unsigned_integer)
        return integer_elements<Plain<Integer<bits, kind == Kind::signed_integer>>>;
}

/// What a conversion needs to know about a dtype.
struct DtypeFacts {
    Elements elements;
    bool is_float;
    double target; ///< of the largest magnitude of the data of a scaled array: it is in [target, 2 * target)
};

// Small formats have no range to spare: the data fills the upper half of it, as in the operator row_scales. FP16 gets the target of the
// policies that store state in FP16. Wider formats have the exponents of f32.
template<int32_t dtype, int bits>
double target_of() {
    if constexpr (bits == 8 && format_of<dtype>.exponent_bits > 0) return decode(format_of<dtype>, format_of<dtype>.largest) / 2;
    return dtype == SCALIDE_F16 ? 16384 : 1;
}

DtypeFacts facts_of(int32_t dtype) {
    switch (dtype) {
#define SCALIDE_CASE(id, name, text, number, kind, bits, ...)                                                                              \
    case number: return {elements_of<number, Kind::kind, bits>(), Kind::kind == Kind::floating, target_of<number, bits>()};
        SCALIDE_DTYPES(SCALIDE_CASE)
#undef SCALIDE_CASE
    default: return {};
    }
}

/// Walks over two arrays of one shape, one row of the last axis at a time.
template<typename Visit>
void for_each_row(const scalide_array &from, const scalide_array &to, Visit visit) {
    const int32_t outer = from.rank > 0 ? from.rank - 1 : 0;
    const auto step = [](const scalide_array &array, int32_t axis) {
        return array.stride[axis] * static_cast<int64_t>(scalide_dtype_size(array.dtype));
    };
    const int64_t count = from.rank > 0 ? from.extent[outer] : 1, from_step = from.rank > 0 ? step(from, outer) : 0,
                  to_step = from.rank > 0 ? step(to, outer) : 0;
    for (int32_t axis = 0; axis < from.rank; ++axis)
        if (from.extent[axis] == 0) return;
    int64_t at[SCALIDE_MAX_RANK] = {}, from_at = 0, to_at = 0;
    while (true) {
        visit(static_cast<const char *>(from.data) + from_at, from_step, static_cast<char *>(to.data) + to_at, to_step, count);
        int32_t axis = outer - 1;
        for (; axis >= 0; --axis) {
            from_at += step(from, axis);
            to_at += step(to, axis);
            if (++at[axis] < from.extent[axis]) break;
            from_at -= at[axis] * step(from, axis);
            to_at -= at[axis] * step(to, axis);
            at[axis] = 0;
        }
        if (axis < 0) return;
    }
}

constexpr int64_t block = 256; // elements whose f64 values are on the stack

/// Calls visit(values, count, target, target step) for the values data * scale, in blocks.
template<typename Visit>
void for_each_block(const scalide_array &from, const scalide_array &to, Visit visit) {
    const Elements elements = facts_of(from.dtype).elements;
    const double scale = from.scale ? *from.scale : 1;
    for_each_row(from, to, [&](const char *source, int64_t source_step, char *target, int64_t target_step, int64_t count) {
        double values[block];
        for (int64_t begin = 0; begin < count; begin += block) {
            const int64_t length = count - begin < block ? count - begin : block;
            elements.load(source + begin * source_step, source_step, length, values);
            for (int64_t i = 0; from.scale && i < length; ++i) values[i] *= scale;
            visit(values, length, target + begin * target_step, target_step);
        }
    });
}

/// Converts integers and bools to integers and bools, or returns false for other arrays.
bool convert_integers(const scalide_array &from, const scalide_array &to) {
    const Elements source = facts_of(from.dtype).elements, target = facts_of(to.dtype).elements;
    if (!source.integer || !target.store_integer) return false;
    for_each_row(from, to, [&](const char *at, int64_t step, char *to_at, int64_t to_step, int64_t count) {
        for (int64_t i = 0; i < count; ++i) target.store_integer(to_at + i * to_step, source.integer(at + i * step));
    });
    return true;
}

/// Returns the power of two that brings the largest magnitude to [target, 2 * target). It is 1 if that magnitude is 0, infinite or NaN.
float choose_scale(const scalide_array &from, const scalide_array &to) {
    double largest = 0;
    for_each_block(from, to, [&](const double *values, int64_t count, char *, int64_t) {
        for (int64_t i = 0; i < count; ++i) {
            const double magnitude = values[i] < 0 ? -values[i] : values[i];
            if (!(magnitude <= largest)) largest = largest != largest ? largest : magnitude; // NaN stays
        }
    });
    if (!(largest > 0 && largest <= std::numeric_limits<double>::max())) return 1;
    const double floor = reinterpret<double>(reinterpret<uint64_t>(largest / facts_of(to.dtype).target) & f64_infinity);
    return static_cast<float>(floor < power(-126) ? power(-126) : floor > power(127) ? power(127) : floor);
}

bool check_one(const char *name, const scalide_array &array, Text &failure) {
    if (scalide_dtype_size(array.dtype) == 0) {
        failure << name << ": unknown dtype " << array.dtype << ". Use a scalide_dtype.";
    } else if (array.rank < 0 || array.rank > SCALIDE_MAX_RANK) {
        failure << name << ": rank must be in [0, " << SCALIDE_MAX_RANK << "], got " << array.rank << '.';
    } else if (array.scale && !facts_of(array.dtype).is_float) {
        failure << name << ": a scaled array must have a float dtype, got " << scalide_dtype_name(array.dtype) << ". Pass scale = NULL.";
    } else {
        return true;
    }
    return false;
}

bool check_both(const scalide_array &from, const scalide_array &to, Text &failure) {
    if (!check_one("from", from, failure) || !check_one("to", to, failure)) return false;
    if (from.rank != to.rank) {
        failure << "from and to must have the same shape, got the ranks " << from.rank << " and " << to.rank << '.';
        return false;
    }
    bool is_empty = false;
    for (int32_t axis = 0; axis < from.rank; ++axis) {
        if (from.extent[axis] != to.extent[axis] || from.extent[axis] < 0) {
            failure << "from and to must have the same shape, got " << from.extent[axis] << " and " << to.extent[axis] << " as extent "
                    << axis << '.';
            return false;
        }
        is_empty |= from.extent[axis] == 0;
    }
    if (!has_allowed_size(from)) {
        failure << "an array must have at most " << SCALIDE_MAX_ELEMENTS << " elements. Split the array.";
        return false;
    }
    if (is_empty || (from.data && to.data)) return true;
    failure << (from.data ? "to" : "from") << ": data must point to the elements, got NULL.";
    return false;
}

} // namespace

scalide_status scalide_convert(scalide_context *context, const scalide_array *from, scalide_array *to) {
    const FloatEnvironment environment;
    char words[256];
    Text failure(words, sizeof(words));
    if (!from || !to || !check_both(*from, *to, failure)) {
        const Entry entry(context, "scalide_convert", {{"from", from}, {"to", to}}); // a conversion needs only the message of the context
        if (context && entry.status() == SCALIDE_OK) start_message(context) << "scalide_convert: " << words;
        return SCALIDE_INVALID_ARGUMENT;
    }
    if (from->dtype == to->dtype && !from->scale && !to->scale) { // the same bits, NaN too
        const size_t size = scalide_dtype_size(from->dtype);
        for_each_row(*from, *to, [&](const char *source, int64_t source_step, char *target, int64_t target_step, int64_t count) {
            const auto element = static_cast<int64_t>(size);
            if (source_step == element && target_step == element) {
                std::memcpy(target, source, static_cast<size_t>(count) * size);
                return;
            }
            for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * target_step, source + i * source_step, size);
        });
        return SCALIDE_OK;
    }
    if (to->scale) *to->scale = choose_scale(*from, *to);
    const double factor = to->scale ? 1 / static_cast<double>(*to->scale) : 1;
    const Elements elements = facts_of(to->dtype).elements;
    if (convert_integers(*from, *to)) return SCALIDE_OK;
    for_each_block(*from, *to, [&](double *values, int64_t count, char *target, int64_t step) {
        for (int64_t i = 0; to->scale && i < count; ++i) values[i] *= factor;
        elements.store(target, step, count, values);
    });
    return SCALIDE_OK;
}

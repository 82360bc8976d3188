// What each instruction does, by the PTX ISA manual. A mnemonic is opcode.modifiers.type. Compiled without contraction of products and
// sums.
#include "ir/dtype.h"
#include "support/ptx/reading.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace scalide::ptx {

namespace {

/// The NaN that arithmetic gives.
template<typename T>
T canonical(T value) {
    if constexpr (std::is_same_v<T, float>) return std::isnan(value) ? std::bit_cast<float>(0x7fffffffu) : value;
    if constexpr (std::is_same_v<T, double>) return std::isnan(value) ? std::bit_cast<double>(0x7fffffffffffffffu) : value;
    return value;
}

/// Arithmetic of integers wraps around.
template<typename T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::make_unsigned<T>, std::type_identity<T>>::type;

template<typename Function>
Action binary(const Text &text, Function function) {
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [d = text.target(), a = text[1], b = text[2], function](Thread &thread) {
            thread.set(d, canonical(static_cast<T>(function(a.get<T>(thread), b.get<T>(thread)))));
        };
    });
}

template<typename Function>
Action unary(const Text &text, Function function) {
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [d = text.target(), a = text[1], function](Thread &thread) { thread.set(d, static_cast<T>(function(a.get<T>(thread)))); };
    });
}

template<typename T>
T wrap(auto value) {
    return static_cast<T>(value);
}

/// A sum or product of floats says that it is rounded: ptxas may contract others.
const Text &rounded(const Text &text) {
    if (text.type()[0] == 'f' && !text.has("rn")) refuse("sum or product that may be contracted");
    return text;
}

Action add(const Text &text) {
    return binary(rounded(text), []<typename T>(T a, T b) { return wrap<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b)); });
}
Action subtract(const Text &text) {
    return binary(rounded(text), []<typename T>(T a, T b) { return wrap<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b)); });
}

template<typename Wide, typename T>
Action multiply_wide(const Text &text) {
    return [d = text.target(), a = text[1], b = text[2]](Thread &thread) {
        thread.set(d, static_cast<Wide>(static_cast<Wide>(a.get<T>(thread)) * static_cast<Wide>(b.get<T>(thread))));
    };
}

Action multiply(const Text &text) {
    if (text.has("wide")) {
        const std::string &type = text.type();
        if (type == "u32") return multiply_wide<uint64_t, uint32_t>(text);
        if (type == "s32") return multiply_wide<int64_t, int32_t>(text);
        if (type == "u16") return multiply_wide<uint32_t, uint16_t>(text);
        if (type == "s16") return multiply_wide<int32_t, int16_t>(text);
        refuse("wide product");
    }
    if (text.has("hi")) {
        return with_type(text.type(), [&](auto zero) -> Action {
            using T = decltype(zero);
            if constexpr (std::is_integral_v<T> && sizeof(T) >= 2) {
                using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
                return [d = text.target(), a = text[1], b = text[2]](Thread &thread) {
                    thread.set(
                        d, static_cast<T>(static_cast<Wide>(a.get<T>(thread)) * static_cast<Wide>(b.get<T>(thread)) >> (8 * sizeof(T))));
                };
            }
            refuse("high product");
        });
    }
    return binary(rounded(text), []<typename T>(T a, T b) {
        if constexpr (std::is_integral_v<T>) return wrap<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        return static_cast<T>(a * b);
    });
}

/// Limits to [0, 1], as `.sat` does; NaN becomes 0.
template<typename T>
T limited(T value) {
    return std::isnan(value) ? T(0) : std::clamp(value, T(0), T(1));
}

Action multiply_add(const Text &text) {
    if (text.has("wide") && text.type() == "u32")
        return [d = text.target(), a = text[1], b = text[2], c = text[3]](Thread &thread) {
            thread.set(d, uint64_t{a.get<uint32_t>(thread)} * b.get<uint32_t>(thread) + c.get<uint64_t>(thread));
        };
    if (text.has("wide") || text.has("hi")) refuse("wide mad");
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [d = text.target(), a = text[1], b = text[2], c = text[3], limits = text.has("sat")](Thread &thread) {
            const T x = a.get<T>(thread), y = b.get<T>(thread), z = c.get<T>(thread);
            if constexpr (std::is_floating_point_v<T>)
                thread.set(d, limits ? limited(std::fma(x, y, z)) : canonical(std::fma(x, y, z)));
            else
                thread.set(d, wrap<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) + static_cast<uint64_t>(z)));
        };
    });
}

Action divide(const Text &text) {
    return binary(text, []<typename T>(T a, T b) {
        if constexpr (std::is_floating_point_v<T>) return static_cast<T>(a / b);
        if (b == 0) throw std::runtime_error("ptx: an integer is divided by 0");
        if (static_cast<T>(b + T(1)) == 0) return wrap<T>(T(0) - static_cast<Wrapping<T>>(a));
        return wrap<T>(a / b);
    });
}
Action remainder(const Text &text) {
    return binary(text, []<typename T>(T a, T b) {
        if constexpr (std::is_integral_v<T>) {
            if (b == 0) throw std::runtime_error("ptx: an integer is divided by 0");
            return static_cast<T>(b + T(1)) == 0 && std::is_signed_v<T> ? T(0) : static_cast<T>(a % b);
        } else {
            return std::numeric_limits<T>::quiet_NaN();
        }
    });
}

/// The one that is a number; -0 is below +0.
template<bool largest>
Action extreme(const Text &text) {
    const bool passes_nan = text.has("NaN");
    return binary(text, [passes_nan]<typename T>(T a, T b) {
        if constexpr (std::is_floating_point_v<T>) {
            if (std::isnan(a) || std::isnan(b)) return passes_nan ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
            if (a == b) return std::signbit(a) == largest ? b : a;
        }
        return (a < b) == largest ? b : a;
    });
}

template<typename Function>
Action bitwise(const Text &text, Function function) {
    return binary(text, [function]<typename T>(T a, T b) {
        if constexpr (std::is_integral_v<T>) return static_cast<T>(function(a, b));
        return a;
    });
}

Action shift(const Text &text, bool left) {
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            return [d = text.target(), a = text[1], b = text[2], left](Thread &thread) {
                constexpr uint32_t width = 8 * sizeof(T);
                const T x = a.get<T>(thread);
                const uint32_t count = b.get<uint32_t>(thread);
                const T beyond = !left && x < T(0) ? static_cast<T>(-1) : T(0);
                thread.set(d, count >= width ? beyond
                              : left         ? static_cast<T>(static_cast<Wrapping<T>>(x) << count)
                                             : static_cast<T>(x >> count));
            };
        }
        refuse("shift");
    });
}

Action select(const Text &text) {
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [d = text.target(), a = text[1], b = text[2], p = text[3]](Thread &thread) {
            thread.set(d, p.get<bool>(thread) ? a.get<T>(thread) : b.get<T>(thread));
        };
    });
}

template<typename T>
using Relation = bool (*)(T, T);

template<typename T>
bool is_unordered(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(a) || std::isnan(b);
    return false;
}

/// Of floats `ne` is ordered; `ltu` and the like hold for NaN, too.
template<typename T>
Relation<T> relation_of(const std::string &name) {
    static const std::map<std::string, Relation<T>> all = {
        {"eq", [](T a, T b) { return a == b; }},
        {"ne", [](T a, T b) { return !is_unordered(a, b) && a != b; }},
        {"lt", [](T a, T b) { return a < b; }},
        {"le", [](T a, T b) { return a <= b; }},
        {"gt", [](T a, T b) { return a > b; }},
        {"ge", [](T a, T b) { return a >= b; }},
        {"lo", [](T a, T b) { return a < b; }},
        {"ls", [](T a, T b) { return a <= b; }},
        {"hi", [](T a, T b) { return a > b; }},
        {"hs", [](T a, T b) { return a >= b; }},
        {"equ", [](T a, T b) { return is_unordered(a, b) || a == b; }},
        {"neu", [](T a, T b) { return is_unordered(a, b) || a != b; }},
        {"ltu", [](T a, T b) { return is_unordered(a, b) || a < b; }},
        {"leu", [](T a, T b) { return is_unordered(a, b) || a <= b; }},
        {"gtu", [](T a, T b) { return is_unordered(a, b) || a > b; }},
        {"geu", [](T a, T b) { return is_unordered(a, b) || a >= b; }},
        {"num", [](T a, T b) { return !is_unordered(a, b); }},
        {"nan", [](T a, T b) { return is_unordered(a, b); }},
    };
    const auto found = all.find(name);
    if (found == all.end()) refuse("comparison " + name);
    return found->second;
}

Action compare(const Text &text) {
    if (text.words.size() != 3) refuse("comparison with more modifiers");
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [d = text.target(), a = text[1], b = text[2], holds = relation_of<T>(text.words[1])](Thread &thread) {
            thread.set(d, holds(a.get<T>(thread), b.get<T>(thread)));
        };
    });
}

Action move(const Text &text) {
    const std::string &to = text.operands.at(0), &from = text.operands.at(1);
    if (to[0] == '{') {
        std::vector<int> targets;
        for (const std::string &part : parts_of(to)) targets.push_back(text.naming.number(part));
        const int width = bits_of(text.type()) / static_cast<int>(targets.size());
        return [targets, width, a = text[1]](Thread &thread) {
            const uint64_t value = a.raw(thread), mask = (uint64_t{1} << width) - 1;
            for (size_t i = 0; i < targets.size(); i++) thread.set(targets[i], value >> (static_cast<int>(i) * width) & mask);
        };
    }
    if (from[0] == '{') {
        std::vector<Operand> parts;
        for (const std::string &part : parts_of(from)) parts.push_back(Text::operand_of(part, text.naming));
        const int width = bits_of(text.type()) / static_cast<int>(parts.size());
        return [d = text.target(), parts, width](Thread &thread) {
            uint64_t value = 0;
            for (size_t i = 0; i < parts.size(); i++)
                value |= (parts[i].raw(thread) & ((uint64_t{1} << width) - 1)) << (static_cast<int>(i) * width);
            thread.set(d, value);
        };
    }
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [d = text.target(), a = text[1]](Thread &thread) { thread.set(d, a.get<T>(thread)); };
    });
}

using Round = double (*)(double);

Round rounding_of(const Text &text) {
    if (text.has("rzi")) return [](double value) { return std::trunc(value); };
    if (text.has("rmi")) return [](double value) { return std::floor(value); };
    if (text.has("rpi")) return [](double value) { return std::ceil(value); };
    if (text.has("rni")) return [](double value) { return std::nearbyint(value); };
    return [](double value) { return value; };
}

template<typename To>
To whole(double value) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
}

uint32_t narrow(Dtype dtype, float value, Overflow overflow) { return encode(format_of(dtype), value, overflow); }

/// A code of 16 bits, whose NaN has all bits but the sign.
uint32_t half_of(Dtype dtype, double value) { return std::isnan(value) ? 0x7fff : encode(format_of(dtype), value, Overflow::format); }

/// Conversions of two low-precision numbers in one register, and of f16.
std::optional<Action> convert_narrow(const Text &text) {
    const std::string &from = text.type(), &to = text.words.at(text.words.size() - 2);
    const int d = text.target();
    const Operand a = text[1];
    const std::map<std::string, Dtype> pairs = {{"e4m3x2", Dtype::f8_e4m3fn}, {"e5m2x2", Dtype::f8_e5m2}};
    if (pairs.contains(to) && from == "f32") {
        if (!text.has("satfinite")) refuse("conversion to f8 without satfinite");
        return [d, a, b = text[2], dtype = pairs.at(to)](Thread &thread) {
            // The NaN of both formats is 0x7f.
            const auto code = [&](float x) { return std::isnan(x) ? 0x7fu : narrow(dtype, x, Overflow::clip); };
            thread.set(d, static_cast<uint16_t>(code(a.get<float>(thread)) << 8 | code(b.get<float>(thread))));
        };
    }
    if (to == "f16x2" && pairs.contains(from)) {
        return [d, a, dtype = pairs.at(from)](Thread &thread) {
            const auto code = a.get<uint16_t>(thread);
            const auto half = [&](uint32_t byte) {
                return narrow(Dtype::f16, static_cast<float>(value_of(dtype, byte)), Overflow::format);
            };
            thread.set(d, half(code & 0xff) | half(code >> 8) << 16);
        };
    }
    if ((to == "f16x2" || to == "bf16x2") && from == "f32") {
        return [d, a, b = text[2], dtype = to == "f16x2" ? Dtype::f16 : Dtype::bf16](Thread &thread) {
            thread.set(d, half_of(dtype, b.get<float>(thread)) | half_of(dtype, a.get<float>(thread)) << 16);
        };
    }
    if (to == "bf16" && from == "f32")
        return [d, a](Thread &thread) { thread.set(d, static_cast<uint16_t>(half_of(Dtype::bf16, a.get<float>(thread)))); };
    if (to == "f16" && (from == "f32" || from == "f64")) {
        return [d, a, is_wide = from == "f64"](Thread &thread) {
            const double value = is_wide ? a.get<double>(thread) : a.get<float>(thread);
            thread.set(d, static_cast<uint16_t>(half_of(Dtype::f16, value)));
        };
    }
    if (from == "f16" && to == "f32")
        return [d, a](Thread &thread) { thread.set(d, static_cast<float>(value_of(Dtype::f16, a.get<uint16_t>(thread)))); };
    return std::nullopt;
}

Action convert(const Text &text) {
    if (auto narrow = convert_narrow(text)) return *narrow;
    const std::string &to = text.words.at(text.words.size() - 2);
    const bool saturates = text.has("sat");
    return with_type(text.type(), [&](auto from) {
        return with_type(to, [&](auto target) -> Action {
            using From = decltype(from);
            using To = decltype(target);
            return [d = text.target(), a = text[1], round = rounding_of(text), saturates](Thread &thread) {
                const From value = a.get<From>(thread);
                if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
                    thread.set(d, whole<To>(round(static_cast<double>(value))));
                } else if constexpr (std::is_floating_point_v<From>) {
                    const double exact = round(static_cast<double>(value));
                    thread.set(d, canonical(static_cast<To>(saturates ? limited(exact) : exact)));
                } else {
                    thread.set(d, static_cast<To>(value));
                }
            };
        });
    });
}

/// The count is a 32-bit number.
template<typename Function>
Action count_bits(const Text &text, Function function) {
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 4)
            return [d = text.target(), a = text[1], function](Thread &thread) {
                thread.set(d, static_cast<uint32_t>(function(a.get<T>(thread))));
            };
        refuse("count of bits");
    });
}

/// See set_share_of_errors().
double &share_of_errors() {
    static double share = 0;
    return share;
}

/// sqrt.rn and the like.
template<typename Function>
Action exact(const Text &text, Function function) {
    if (!text.has("rn")) refuse("approximation");
    return unary(text, [function]<typename T>(T a) {
        if constexpr (std::is_floating_point_v<T>) return canonical(function(a));
        return a;
    });
}

/// Approximate f32 functions. `error` is the largest relative error that the manual allows; share_of_errors() says how much of it a test
/// wants.
template<typename Function>
Action approximate(const Text &text, double error, Function function) {
    if (!text.has("approx") || text.type() != "f32") refuse("exact or wide one");
    const auto flush = [is_flushed = text.has("ftz")](float x) {
        return is_flushed && std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
    };
    return [d = text.target(), a = text[1], error, function, flush](Thread &thread) {
        thread.set(d, flush(canonical(static_cast<float>(function(static_cast<double>(flush(a.get<float>(thread)))) *
                                                         (1 + share_of_errors() * error)))));
    };
}

Action reciprocal(const Text &text) {
    if (text.has("approx")) return approximate(text, 0x1p-23, [](double a) { return 1 / a; });
    return exact(text, [](auto a) { return 1 / a; });
}

Action square_root(const Text &text) {
    if (text.has("approx")) return approximate(text, 0x1p-23, [](double a) { return std::sqrt(a); });
    return exact(text, [](auto a) { return std::sqrt(a); });
}

Action reverse_bits(const Text &text) {
    return unary(text, []<typename T>(T a) {
        if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>) return a;
        uint64_t value = 0;
        for (size_t i = 0; i < 8 * sizeof(T); i++) value = value << 1 | (static_cast<uint64_t>(a) >> i & 1);
        return wrap<T>(value);
    });
}

using Maker = Action (*)(const Text &);

const std::map<std::string, Maker> &makers() {
    static const std::map<std::string, Maker> all = {
        {"add", add},
        {"sub", subtract},
        {"mul", multiply},
        {"mad", multiply_add},
        {"fma", multiply_add},
        {"div", divide},
        {"rem", remainder},
        {"min", extreme<false>},
        {"max", extreme<true>},
        {"and", [](const Text &text) { return bitwise(text, [](auto a, auto b) { return a & b; }); }},
        {"or", [](const Text &text) { return bitwise(text, [](auto a, auto b) { return a | b; }); }},
        {"xor", [](const Text &text) { return bitwise(text, [](auto a, auto b) { return a ^ b; }); }},
        {"not",
         [](const Text &text) {
             return unary(text, []<typename T>(T a) {
                 if constexpr (std::is_same_v<T, bool>)
                     return !a;
                 else if constexpr (std::is_integral_v<T>)
                     return static_cast<T>(~static_cast<uint64_t>(a));
                 else
                     return a;
             });
         }},
        {"shl", [](const Text &text) { return shift(text, true); }},
        {"shr", [](const Text &text) { return shift(text, false); }},
        {"abs",
         [](const Text &text) {
             return unary(text, []<typename T>(T a) {
                 if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
                 return a < T(0) ? wrap<T>(0 - static_cast<uint64_t>(a)) : a;
             });
         }},
        {"neg",
         [](const Text &text) {
             return unary(text, []<typename T>(T a) {
                 if constexpr (std::is_floating_point_v<T>) return -a;
                 return wrap<T>(0 - static_cast<uint64_t>(a));
             });
         }},
        {"copysign", // the sign of the first
         [](const Text &text) {
             return binary(text, []<typename T>(T a, T b) {
                 if constexpr (std::is_floating_point_v<T>) return std::copysign(b, a);
                 return a;
             });
         }},
        {"sqrt", square_root},
        {"rsqrt", [](const Text &text) { return approximate(text, 0x1.13p-23, [](double a) { return 1 / std::sqrt(a); }); }}, // 2^-22.9
        {"rcp", reciprocal},
        {"ex2", [](const Text &text) { return approximate(text, 0x1.6bp-23, [](double a) { return std::exp2(a); }); }}, // 2^-22.5
        {"tanh", [](const Text &text) { return approximate(text, 0x1p-11, [](double a) { return std::tanh(a); }); }},
        {"setp", compare},
        {"selp", select},
        {"mov", move},
        {"cvt", convert},
        {"cvta", move},
        {"ld", load},
        {"st", store},
        {"red", reduce_in_memory},
        {"bra", branch},
        {"bar", wait},
        {"barrier", wait},
        {"ret", leave},
        {"exit", leave},
        {"shfl", shuffle},
        {"prmt", permute},
        {"shf", shift_pair},
        {"bfe", extract_bits},
        {"bfi", insert_bits},
        {"popc", [](const Text &text) { return count_bits(text, [](auto a) { return std::popcount(a); }); }},
        {"clz", [](const Text &text) { return count_bits(text, [](auto a) { return std::countl_zero(a); }); }},
        {"brev", reverse_bits},
    };
    return all;
}

} // namespace

void set_share_of_errors(double share) { share_of_errors() = share; }

Action action_of(const Words &words, const Words &operands, const Naming &naming) {
    const auto found = makers().find(words.at(0));
    if (found == makers().end()) refuse("instruction " + words[0]);
    const auto has = [&](const char *word) { return std::ranges::find(words, word) != words.end(); };
    if (has("ftz") && !has("approx")) refuse("flush to zero");
    return found->second({words, operands, naming});
}

} // namespace scalide::ptx

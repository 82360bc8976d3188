#include "base/scalar.h"
#include "scalide/scalide.h"
#include <cstring>

namespace scalide {

namespace {

template<typename T>
void store(int64_t value, void *memory) {
    const auto number = static_cast<T>(value);
    std::memcpy(memory, &number, sizeof(number));
}

template<typename T>
double load(const void *memory) {
    T number;
    std::memcpy(&number, memory, sizeof(number));
    return static_cast<double>(number);
}

struct Access {
    void (*store)(int64_t value, void *memory);
    double (*load)(const void *memory);
};

enum class Kind { SCALIDE_DTYPE_KINDS };

template<typename T>
constexpr Access access = {store<T>, load<T>};

/// Only for the types that C has. Scalars never have a smaller float type.
template<Kind kind, int bits>
constexpr Access access_of() {
    if constexpr (kind == Kind::floating) return bits == 32 ? access<float> : bits == 64 ? access<double> : Access{nullptr, nullptr};
    if constexpr (kind == Kind::signed_integer)
        return bits == 8 ? access<int8_t> : bits == 16 ? access<int16_t> : bits == 32 ? access<int32_t> : access<int64_t>;
    return bits == 8 ? access<uint8_t> : bits == 16 ? access<uint16_t> : access<uint32_t>;
}

#define SCALIDE_ACCESS(id, name, text, number, kind, bits, ...) access_of<Kind::kind, bits>(),
constexpr Access accesses[] = {SCALIDE_DTYPES(SCALIDE_ACCESS)};
#undef SCALIDE_ACCESS

} // namespace

bool is_scalar_dtype(int32_t dtype) { return scalide_dtype_size(dtype) > 0 && accesses[dtype].load; }

void store_scalar(int32_t dtype, int64_t value, void *memory) { accesses[dtype].store(value, memory); }

double load_scalar(int32_t dtype, const void *memory) { return accesses[dtype].load(memory); }

} // namespace scalide

#include "scalar.h"
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

template<typename T>
constexpr Access access = {store<T>, load<T>};
constexpr Access none = {nullptr, nullptr};

// In the order of scalide_dtype.
constexpr Access accesses[SCALIDE_DTYPE_COUNT] = {
    access<float>,
    none,
    none,
    none,
    none,
    none,
    none,
    none,
    access<int32_t>,
    access<uint8_t>,
    access<double>,
    access<int8_t>,
    access<uint8_t>,
    access<int16_t>,
    access<uint16_t>,
    access<uint32_t>,
};

} // namespace

bool is_scalar_dtype(int32_t dtype) { return scalide_dtype_size(dtype) > 0 && accesses[dtype].load; }

void store_scalar(int32_t dtype, int64_t value, void *memory) { accesses[dtype].store(value, memory); }

double load_scalar(int32_t dtype, const void *memory) { return accesses[dtype].load(memory); }

} // namespace scalide

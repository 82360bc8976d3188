#include "scalide/scalide.h"

namespace {

constexpr const char *status_texts[] = {
    "ok",
    "an argument does not fit the program",
    "the program does not fit this runtime",
    "the CPU lacks instructions that the program uses",
    "out of memory",
    "a worker thread could not be started",
    "a kernel failed",
    "a file could not be read or written",
    "the device or its driver is missing",
    "the program is built for another device",
    "the device failed",
    "the device does not support this",
    "another thread uses the context",
    "the run was interrupted",
    "a loop reached its largest number of steps",
    "the ranks of a group could not exchange arrays",
};
static_assert(sizeof(status_texts) / sizeof(status_texts[0]) == SCALIDE_STATUS_COUNT, "one text per status");

constexpr const char *device_names[] = {"cpu", "cuda", "opencl"};
static_assert(sizeof(device_names) / sizeof(device_names[0]) == SCALIDE_DEVICE_COUNT, "one name per device");

struct DtypeRow {
    int32_t number;
    const char *name;
    size_t size;
};
#define SCALIDE_ROW(id, name, text, number, kind, bits, ...) {number, text, bits / 8},
constexpr DtypeRow dtypes[] = {SCALIDE_DTYPES(SCALIDE_ROW)};
#undef SCALIDE_ROW
static_assert(sizeof(dtypes) / sizeof(dtypes[0]) == SCALIDE_DTYPE_COUNT, "one row per dtype");

/// Tables are indexed by dtype, so their entries must be in the order of the dtypes.
constexpr bool are_in_order() {
    for (int32_t i = 0; i < SCALIDE_DTYPE_COUNT; ++i)
        if (dtypes[i].number != i) return false;
    return true;
}
static_assert(are_in_order(), "rows stand in the order of their numbers");

bool is_dtype(int32_t dtype) { return dtype >= 0 && dtype < SCALIDE_DTYPE_COUNT; }

} // namespace

int32_t scalide_interface_version() { return SCALIDE_INTERFACE_VERSION; }

const char *scalide_status_string(scalide_status status) {
    return status >= 0 && status < SCALIDE_STATUS_COUNT ? status_texts[status] : "unknown status";
}

const char *scalide_device_name(int32_t device) { return device >= 0 && device < SCALIDE_DEVICE_COUNT ? device_names[device] : "?"; }

const char *scalide_dtype_name(int32_t dtype) { return is_dtype(dtype) ? dtypes[dtype].name : "?"; }

size_t scalide_dtype_size(int32_t dtype) { return is_dtype(dtype) ? dtypes[dtype].size : 0; }

scalide_array scalide_dense_array(void *data, float *scale, int32_t dtype, int32_t rank, const int64_t *extent) {
    scalide_array array = {};
    array.data = data;
    array.scale = scale;
    array.dtype = dtype;
    array.rank = rank;
    if (rank < 0 || rank > SCALIDE_MAX_RANK || !extent) return array;
    uint64_t stride = 1; // may wrap around for extents that bind refuses
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
        array.extent[axis] = extent[axis];
        array.stride[axis] = static_cast<int64_t>(stride);
        stride *= static_cast<uint64_t>(extent[axis]);
    }
    return array;
}

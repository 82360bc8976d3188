// libcublasLt.so without a GPU: records, and fails when it is told to. With SCALIDE_STANDIN_COMPUTES in the environment it also multiplies.
#include "cublaslt/cublaslt_abi.h"
#include "standin.h"
#include "standin_product.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#define STANDIN extern "C" __attribute__((visibility("default")))

namespace {

using namespace scalide::cublaslt;

using Object = scalide::test::StandinObject;

std::string log_text;
int live = 0, calls = 0, searches = 0, failing = -1, candidates = 2, broken = 0;

constexpr Status internal_error = 14, execution_failed = 13, not_supported = 15;

bool fails() { return calls++ == failing; }

std::string hex(const std::string &bytes) {
    std::string text;
    for (size_t i = bytes.size(); i-- > 0;) {
        constexpr char digits[] = "0123456789abcdef";
        text += {digits[static_cast<unsigned char>(bytes[i]) >> 4], digits[bytes[i] & 15]};
    }
    const size_t first = text.find_first_not_of('0');
    return first == std::string::npos ? "0" : text.substr(first);
}

std::string words(const void *object) {
    const auto &known = *static_cast<const Object *>(object);
    std::string text = known.head;
    for (const auto &[number, value] : known.attributes) text += " " + std::to_string(number) + "=" + hex(value);
    return text;
}

Status create(void **made, Object object) {
    if (fails()) return internal_error;
    *made = new Object(std::move(object));
    live++;
    return 0;
}
Status destroy(void *object) {
    delete static_cast<Object *>(object);
    live--;
    return 0;
}
Status set(void *object, int number, const void *value, size_t bytes) {
    if (fails()) return internal_error;
    static_cast<Object *>(object)->attributes[number] = std::string(static_cast<const char *>(value), bytes);
    return 0;
}
/// A function of the emulated CUDA driver, if it is loaded.
template<typename Function>
Function of_driver(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver) return nullptr;
    void *found = dlsym(driver, name);
    dlclose(driver);
    return reinterpret_cast<Function>(found);
}
/// What runs stands in one order there.
void note(const char *call) {
    if (auto *write = of_driver<void (*)(const char *)>("standin_note")) write(call);
}
/// cuBLASLt takes f8 operands only if all matrices and scales are at multiples of 16 bytes. The search for algorithms does not see it.
bool is_misaligned_f8(const void *operation, std::initializer_list<const void *> matrices, const void *layout) {
    const int32_t type = static_cast<const Object *>(layout)->type;
    if (type != r_8f_e4m3 && type != r_8f_e5m2) return false;
    std::vector<const void *> pointers = matrices;
    for (const int32_t attribute : {a_scale_pointer, b_scale_pointer, d_scale_pointer})
        pointers.push_back(static_cast<const Object *>(operation)->get<const void *>(attribute, nullptr));
    return std::ranges::any_of(pointers, [](const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 != 0; });
}
std::string address(const void *pointer) { return hex(std::string(reinterpret_cast<const char *>(&pointer), sizeof(pointer))); }

} // namespace

STANDIN StandinState standin_read() { return {log_text.c_str(), live, calls, searches}; }
STANDIN void standin_reset(int fail, int found, int not_running) {
    log_text.clear();
    calls = searches = 0;
    failing = fail, candidates = found, broken = not_running;
}

STANDIN size_t cublasLtGetVersion() { return 130100; }
STANDIN const char *cublasLtGetStatusName(Status status) {
    switch (status) {
    case internal_error: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case not_supported: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_EXECUTION_FAILED";
    }
}
STANDIN Status cublasLtCreate(Handle *handle) { return create(reinterpret_cast<void **>(handle), {"handle"}); }
STANDIN Status cublasLtDestroy(Handle handle) { return destroy(handle); }
STANDIN Status cublasLtMatmulDescCreate(Operation *operation, int32_t compute, int32_t scale_type) {
    return create(reinterpret_cast<void **>(operation),
                  {"operation compute=" + std::to_string(compute) + " scale=" + std::to_string(scale_type)});
}
STANDIN Status cublasLtMatmulDescDestroy(Operation operation) { return destroy(operation); }
STANDIN Status cublasLtMatmulDescSetAttribute(Operation operation, int32_t number, const void *value, size_t bytes) {
    return set(operation, number, value, bytes);
}
STANDIN Status cublasLtMatrixLayoutCreate(Layout *layout, int32_t type, uint64_t rows, uint64_t columns, int64_t leading) {
    const std::string head = "layout type=" + std::to_string(type) + " " + std::to_string(rows) + "x" + std::to_string(columns) +
                             " ld=" + std::to_string(leading);
    return create(reinterpret_cast<void **>(layout), {head, type, rows, columns, leading});
}
STANDIN Status cublasLtMatrixLayoutDestroy(Layout layout) { return destroy(layout); }
STANDIN Status cublasLtMatrixLayoutSetAttribute(Layout layout, int32_t number, const void *value, size_t bytes) {
    return set(layout, number, value, bytes);
}
STANDIN Status cublasLtMatmulPreferenceCreate(Preference *preference) {
    return create(reinterpret_cast<void **>(preference), {"preference"});
}
STANDIN Status cublasLtMatmulPreferenceDestroy(Preference preference) { return destroy(preference); }
STANDIN Status cublasLtMatmulPreferenceSetAttribute(Preference preference, int32_t number, const void *value, size_t bytes) {
    return set(preference, number, value, bytes);
}

STANDIN Status cublasLtMatmulAlgoGetHeuristic(Handle, Operation, Layout, Layout, Layout, Layout, Preference preference, int wanted,
                                              HeuristicResult *results, int *found) {
    if (fails()) return internal_error;
    searches++;
    log_text += "search " + words(preference) + "\n";
    *found = candidates < wanted ? candidates : wanted;
    for (int i = 0; i < *found; ++i) {
        results[i] = {};
        results[i].algorithm.data[0] = static_cast<uint64_t>(i + 1);
        results[i].state = 0;
    }
    return 0;
}

STANDIN Status cublasLtMatmul(Handle, Operation operation, const void *alpha, const void *a, Layout a_layout, const void *b,
                              Layout b_layout, const void *beta, const void *c, Layout c_layout, void *d, Layout d_layout,
                              const Algorithm *algorithm, void *workspace, size_t bytes, void *stream) {
    if (fails()) return execution_failed;
    note("cublasLtMatmul");
    log_text += "matmul " + words(operation) + "\n";
    log_text += "    a " + words(a_layout) + " at " + address(a) + "\n    b " + words(b_layout) + " at " + address(b) + "\n    c " +
                words(c_layout) + " at " + address(c) + "\n    d " + words(d_layout) + " at " + address(d) + "\n";
    log_text += "    alpha " + std::to_string(*static_cast<const float *>(alpha)) + " beta " +
                std::to_string(*static_cast<const float *>(beta)) + " algorithm " + std::to_string(algorithm->data[0]) + " workspace " +
                address(workspace) + " of " + std::to_string(bytes) + " stream " + address(stream) + "\n";
    if (static_cast<int>(algorithm->data[0]) <= broken) return execution_failed;
    if (is_misaligned_f8(operation, {a, b, c, d}, a_layout)) return not_supported;
    if (!std::getenv("SCALIDE_STANDIN_COMPUTES")) return 0;
    const auto object = [](auto *opaque) { return *reinterpret_cast<const Object *>(opaque); };
    // A graph outlives what describes its calls; numbers in device memory are read when it is launched.
    const std::function<void()> multiply = [=, operation = object(operation),
                                            layouts = std::array{object(a_layout), object(b_layout), object(c_layout), object(d_layout)},
                                            by_value = std::array{*static_cast<const float *>(alpha), *static_cast<const float *>(beta)}] {
        const bool is_on_device = operation.template get<int32_t>(pointer_mode, 0) == pointer_mode_device;
        const auto number = [&](const void *pointer, size_t index) {
            return is_on_device ? *static_cast<const float *>(pointer) : by_value[index];
        };
        const auto matrix = [&](const void *memory, size_t index) {
            return scalide::test::StandinMatrix{layouts[index], const_cast<void *>(memory)};
        };
        const bool known =
            multiply_as_cublaslt(operation, number(alpha, 0), matrix(a, 0), matrix(b, 1), number(beta, 1), matrix(c, 2), matrix(d, 3));
        if (!known) std::abort();
    };
    if (auto *compute = of_driver<void (*)(const std::function<void()> *)>("standin_compute"))
        compute(&multiply);
    else
        multiply();
    return 0;
}

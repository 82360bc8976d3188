#include "cublaslt.h"
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

namespace scalide {

namespace {

void *open_library(Text &why) {
    const char *chosen = std::getenv("SCALIDE_CUBLASLT");
    const char *names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    if (chosen) {
        if (void *library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL)) return library;
    } else {
        for (const char *name : names)
            if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    }
    why << "cannot load cuBLASLt (" << (chosen ? chosen : names[0]) << "): " << dlerror()
        << ". Install cuBLAS, or set SCALIDE_CUBLASLT to its file.";
    return nullptr;
}

template<typename Function>
bool find(void *library, const char *symbol, Function *function, Text &why) {
    *function = reinterpret_cast<Function>(dlsym(library, symbol));
    if (!*function) why << "cuBLASLt has no function " << symbol << ". Install cuBLAS 12 or later.";
    return *function != nullptr;
}

using namespace cublaslt; // the macro names types of this namespace

// Stays loaded until the process ends, because algorithms and handles point into it.
struct Loaded {
    CublasLt calls;
    bool ok;
    char why[256];
};
Loaded loaded = {};
pthread_once_t once = PTHREAD_ONCE_INIT; // a static variable of a function would need the C++ library, which C applications do not link

void load() {
    Text text(loaded.why, sizeof(loaded.why));
    void *library = open_library(text);
    loaded.ok = library != nullptr;
#define SCALIDE_FIND(member, symbol, result, parameters) loaded.ok = loaded.ok && find(library, #symbol, &loaded.calls.member, text);
    SCALIDE_CUBLASLT_CALLS(SCALIDE_FIND)
#undef SCALIDE_FIND
}

} // namespace

const CublasLt *load_cublaslt(Text &why) {
    pthread_once(&once, load);
    if (!loaded.ok) why << loaded.why;
    return loaded.ok ? &loaded.calls : nullptr;
}

} // namespace scalide

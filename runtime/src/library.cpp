// Programs out of shared libraries.
#include "context.h"
#include "files/elf_file.h"
#include "run/memory.h"
#include "threads/float_environment.h"
#include <dlfcn.h>

using namespace scalide;

struct scalide_library {
    void *handle;
};

scalide_status scalide_load(scalide_context *context, const char *path, scalide_library **result) {
    if (!context || !path || !result) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    *result = nullptr;
    if (!*path) { // which the loader takes for this process
        start_message(context) << "the path of a library must not be empty, got ''. Pass the path that scalide build printed.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    auto *library = static_cast<scalide_library *>(allocate(sizeof(scalide_library)));
    if (!library) {
        start_message(context) << path << ": loading must get memory, got none. Free some memory.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    char reason[128];
    Text why(reason, sizeof(reason));
    if (!is_loadable(path, why)) {
        start_message(context) << path << ": must be a shared library for this machine, got " << reason << ". Build it with scalide build.";
        release(library);
        return SCALIDE_FILE_ERROR;
    }
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        start_message(context) << path << ": must be a shared library of programs, got the loader's error '" << dlerror()
                               << "'. Build it with scalide build.";
        release(library);
        return SCALIDE_FILE_ERROR;
    }
    *result = library;
    return SCALIDE_OK;
}

const scalide_program *scalide_library_program(scalide_context *context, const scalide_library *library, const char *name) {
    if (!context || !library || !name) return nullptr;
    char symbol[256];
    Text text(symbol, sizeof(symbol));
    text << name << "_program";
    void *address = text.size() < sizeof(symbol) ? dlsym(library->handle, symbol) : nullptr;
    if (address) return reinterpret_cast<const scalide_program *(*)()>(address)();
    start_message(context) << name << ": must be a program of the library, got no function " << symbol << ". Check the name.";
    return nullptr;
}

void scalide_library_close(scalide_library *library) {
    if (!library) return;
    dlclose(library->handle);
    release(library);
}

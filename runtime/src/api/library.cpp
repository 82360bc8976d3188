// Loads programs from shared libraries.
#include "base/float_environment.h"
#include "base/memory.h"
#include "context/context.h"
#include "context/entry.h"
#include "files/shared_library.h"
#include <cstring>
#include <dlfcn.h>
#include <new>

using namespace scalide;

struct scalide_library : SharedLibrary {};

static scalide_status open_library(scalide_context *context, const char *path, scalide_library **result) {
    if (!*path) { // the loader takes an empty path for this process
        start_message(context) << "the path of a library must not be empty. Pass the path that 'scalide build' printed.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    const size_t path_bytes = std::strlen(path) + 1;
    void *memory = allocate(sizeof(scalide_library) + path_bytes);
    if (!memory) {
        start_message(context) << path << ": out of memory: cannot allocate the library handle.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    char *own_path = static_cast<char *>(memory) + sizeof(scalide_library);
    std::memcpy(own_path, path, path_bytes);
    auto *library = new (memory) scalide_library{{own_path}};
    char words[1024];
    Text why(words, sizeof(words));
    if (!load(*library, why)) {
        start_message(context) << path << ": " << words;
        library->~scalide_library();
        release(memory);
        return SCALIDE_FILE_ERROR;
    }
    *result = library;
    return SCALIDE_OK;
}

scalide_status scalide_load(scalide_context *context, const char *path, scalide_library **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_load", {{"path", path}, {"library", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    return report(context, open_library(context, path, result));
}

const scalide_program *scalide_library_program(scalide_context *context, const scalide_library *library, const char *name) {
    const Entry entry(context, "scalide_library_program", {{"library", library}, {"name", name}});
    if (entry.status() != SCALIDE_OK) return nullptr;
    char symbol[256];
    Text text(symbol, sizeof(symbol));
    text << name << "_program";
    void *address = text.size() < sizeof(symbol) ? dlsym(library->handle, symbol) : nullptr;
    if (address) return reinterpret_cast<const scalide_program *(*)()>(address)();
    start_message(context) << "the library has no program '" << name << "' (function " << symbol << "). Check the name.";
    return nullptr;
}

void scalide_library_close(scalide_library *library) {
    if (!library) return;
    unload(*library);
    library->~scalide_library();
    release(library);
}

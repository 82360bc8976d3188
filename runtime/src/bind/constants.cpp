#include "bind/constants.h"
#include <atomic>
#include <cstddef>
#include <cstdint>
#if defined(__linux__)
#include <link.h>
#include <unistd.h>
#endif

namespace scalide {

#if defined(__linux__)
namespace {

bool holds(const dl_phdr_info &module, uintptr_t address) {
    for (int i = 0; i < module.dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = module.dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && address - (module.dlpi_addr + segment.p_vaddr) < segment.p_memsz) return true;
    }
    return false;
}

// AddressSanitizer would report the padding that it inserts between globals.
__attribute__((no_sanitize("address"))) void read_pages(uintptr_t begin, size_t size) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    for (uintptr_t at = begin; at < begin + size; at += page) static_cast<void>(*reinterpret_cast<const volatile char *>(at));
}

int map_if_holds(dl_phdr_info *module, size_t, void *address) {
    static std::atomic<uintptr_t> last{0};
    if (!holds(*module, reinterpret_cast<uintptr_t>(address))) return 0;
    const uintptr_t loaded = module->dlpi_addr + module->dlpi_adds; // another library may be loaded at the address of a closed one
    if (last.exchange(loaded) == loaded) return 1;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = module->dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && !(segment.p_flags & PF_W)) read_pages(module->dlpi_addr + segment.p_vaddr, segment.p_memsz);
    }
    return 1;
}

} // namespace

void map_constants(const void *address) { dl_iterate_phdr(map_if_holds, const_cast<void *>(address)); }
#else
void map_constants(const void *) {}
#endif

} // namespace scalide

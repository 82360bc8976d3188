#include "base/cpu_features.h"
#include "base/emulated_cpu.h"
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace scalide {

namespace {

enum Source { leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax, xcr0, source_count };

constexpr uint32_t bit(int index) { return uint32_t(1) << index; }

constexpr uint32_t ymm_state = bit(1) | bit(2), zmm_state = ymm_state | bit(5) | bit(6) | bit(7);
constexpr uint32_t skylake = bit(16) | bit(17) | bit(28) | bit(30) | bit(31); // f dq cd bw vl
constexpr uint32_t cannonlake = skylake | bit(21);                            // ifma
constexpr uint32_t vbmi = bit(1), zen4 = vbmi | bit(6) | bit(11) | bit(12);   // vbmi2 vnni bitalg
constexpr uint32_t avx_vnni = bit(4), avx512_bf16 = bit(5), avx512_fp16 = bit(23);
constexpr uint32_t amx = bit(22) | bit(24) | bit(25), tile_state = bit(17) | bit(18); // bf16 tile int8

/// One requirement of a part of a target string. A part may have several requirements, or none (mask 0).
struct Requirement {
    const char *part;
    Source source;
    uint32_t mask;
};

// From Halide 21, src/CodeGen_X86.cpp, mattrs(). The bits come from the CPUID pages of the Intel and AMD manuals.
constexpr Requirement requirements[] = {
#if defined(__x86_64__)
    {"x86", leaf1_ecx, 0},
    {"64", leaf1_ecx, 0},
#elif defined(__aarch64__)
    {"arm", leaf1_ecx, 0},
    {"64", leaf1_ecx, 0},
#endif
    {"linux", leaf1_ecx, 0},
    {"no_runtime", leaf1_ecx, 0},
    {"no_asserts", leaf1_ecx, 0},
    {"no_bounds_query", leaf1_ecx, 0},
    {"user_context", leaf1_ecx, 0},
    {"strict_float", leaf1_ecx, 0},
    // Names of devices require no CPU feature. The context checks the device.
    {"opencl", leaf1_ecx, 0},
    {"cl_doubles", leaf1_ecx, 0},
    {"cuda", leaf1_ecx, 0},
    {"sse41", leaf1_ecx, bit(19)},
    {"avx", leaf1_ecx, bit(28)},
    {"avx", xcr0, ymm_state},
    {"avx2", leaf7_ebx, bit(5)},
    {"fma", leaf1_ecx, bit(12)},
    {"f16c", leaf1_ecx, bit(29)},
    {"avxvnni", leaf7_1_eax, avx_vnni},
    {"avx512", leaf7_ebx, bit(16) | bit(28)},
    {"avx512", xcr0, zmm_state},
    {"avx512_skylake", leaf7_ebx, skylake},
    {"avx512_cannonlake", leaf7_ebx, cannonlake},
    {"avx512_cannonlake", leaf7_ecx, vbmi},
    {"avx512_zen4", leaf7_ebx, cannonlake},
    {"avx512_zen4", leaf7_ecx, zen4},
    {"avx512_zen4", leaf7_1_eax, avx512_bf16},
    {"avx512_zen5", leaf7_ebx, cannonlake},
    {"avx512_zen5", leaf7_ecx, zen4},
    {"avx512_zen5", leaf7_1_eax, avx512_bf16 | avx_vnni},
    {"avx512_sapphirerapids", leaf7_ebx, cannonlake},
    {"avx512_sapphirerapids", leaf7_ecx, zen4},
    {"avx512_sapphirerapids", leaf7_edx, avx512_fp16}, // LLVM compiles for the CPU of this name, not for the features alone
    {"avx512_sapphirerapids", leaf7_1_eax, avx512_bf16 | avx_vnni},
    {"amx", leaf7_edx, amx}, // and permission: refused_tiles
    {"amx", xcr0, tile_state},
};

// These parts require no CPU feature: they select tuning and the lowest compute capability.
constexpr const char *free_prefixes[] = {"tune_", "cuda_capability_"};

void read_cpu(uint32_t (&words)[source_count]) {
#if defined(__x86_64__)
    constexpr uint32_t osxsave = bit(27);
    uint32_t a, b, c, d;
    if (__get_cpuid_count(1, 0, &a, &b, &c, &d)) words[leaf1_ecx] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        words[leaf7_ebx] = b;
        words[leaf7_ecx] = c;
        words[leaf7_edx] = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) words[leaf7_1_eax] = a;
    if (words[leaf1_ecx] & osxsave) {
        uint32_t high;
        __asm__("xgetbv" : "=a"(words[xcr0]), "=d"(high) : "c"(0));
    }
    if (const auto *emulated = static_cast<const EmulatedCpu *>(dlsym(RTLD_DEFAULT, "scalide_emulated_cpu"))) {
        words[leaf7_edx] |= emulated->leaf7_edx;
        words[leaf7_1_eax] |= emulated->leaf7_1_eax;
        words[xcr0] |= emulated->xcr0;
    }
#else
    (void)words;
#endif
}

bool has_part(const uint32_t (&words)[source_count], const char *part, size_t length) {
    bool known = false;
    for (const char *prefix : free_prefixes) known = known || std::strncmp(part, prefix, std::strlen(prefix)) == 0;
    for (const Requirement &row : requirements) {
        if (std::strlen(row.part) != length || std::memcmp(row.part, part, length) != 0) continue;
        known = true;
        if ((words[row.source] & row.mask) != row.mask) return false;
    }
    return known;
}

bool is_amx(const char *part, size_t length) { return length == 3 && std::memcmp(part, "amx", 3) == 0; }

/// Asks the kernel of the system. Returns an errno.
int ask_for_tiles() {
#if defined(__x86_64__)
    constexpr long request = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM of Linux 5.16
    const int before = errno;
    const int refusal = syscall(SYS_arch_prctl, request, tile_data) == 0 ? 0 : errno;
    errno = before;
    return refusal;
#else
    return ENOSYS;
#endif
}

} // namespace

bool is_refused(const char *feature, size_t length) {
    uint32_t words[source_count] = {};
    read_cpu(words);
    return is_amx(feature, length) && has_part(words, feature, length);
}

int refused_tiles() {
    constexpr int not_asked = -1;
    static std::atomic<int> answer{not_asked};
    // Two threads may both ask: the system gives both the same answer, and keeps it for all threads.
    int known = answer.load(std::memory_order_acquire);
    if (known == not_asked) {
        const int asked = ask_for_tiles();
        if (answer.compare_exchange_strong(known, asked, std::memory_order_acq_rel)) known = asked;
    }
    return known;
}

const char *missing_cpu_feature(const char *target, size_t *length) {
    uint32_t words[source_count] = {};
    read_cpu(words);
    const char *tiles = nullptr; // asked for last: a program that this CPU cannot run needs no permission
    for (const char *part = target; *part;) {
        *length = std::strcspn(part, "-");
        if (!has_part(words, part, *length)) return part;
        if (is_amx(part, *length)) tiles = part;
        part += *length + (part[*length] == '-');
    }
    if (!tiles || refused_tiles() == 0) return nullptr;
    *length = 3;
    return tiles;
}

} // namespace scalide

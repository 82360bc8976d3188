#include "half_conversions.h"
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

namespace tiles {

namespace {

// Intel SDM, volume 2, 2.7: the EVEX prefix is 62, P0 (R X B R' 0 map, the first four inverted), P1 (W vvvv 1 pp), P2.
constexpr uint8_t evex = 0x62, map_bits = 0x07, map_0f38 = 2, map_0f3a = 3, map_5 = 5, map_6 = 6;
constexpr uint8_t p1_of_conversions = 0x7d; // W 0, no second source, 66
constexpr uint8_t broadcast = 0x10;         // in P2: a broadcast element, or rounding of its own
constexpr uint8_t is_register = 0xc0;       // in ModRM

bool is_conversion(const uint8_t *code, uint8_t map, uint8_t opcode) {
    return code[0] == evex && (code[1] & (map_bits | 8)) == map && code[2] == p1_of_conversions && code[4] == opcode &&
           !(code[3] & broadcast);
}

bool make_writable(uint8_t *code) {
    constexpr uintptr_t page = 4096;
    auto *first = reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(code) & ~(page - 1));
    return mprotect(first, size_t(code + 6 - first), PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

/// Memory of this thread for one instruction and a jump.
uint8_t *thread_code() {
    static __attribute__((tls_model("initial-exec"))) thread_local uint8_t *code;
    if (code) return code;
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return code = page == MAP_FAILED ? nullptr : static_cast<uint8_t *>(page);
}

uint8_t bit(uint8_t byte, int from, int to) { return uint8_t((byte >> from & 1) << to); }

/// Writes vcvtps2ph for vcvtps2phx of registers. Its first register is the source, and its second one the result.
void write_to_half(const uint8_t *code, uint8_t *at) {
    const uint8_t p0 = code[1], registers = code[5];
    const uint8_t swapped = uint8_t(bit(p0, 5, 7) | bit(p0, 4, 6) | bit(p0, 7, 5) | bit(p0, 6, 4));
    constexpr uint8_t current_rounding = 4;
    const uint8_t instruction[] = {evex,
                                   uint8_t(swapped | map_0f3a),
                                   code[2],
                                   code[3],
                                   code[4],
                                   uint8_t(is_register | (registers & 7) << 3 | (registers >> 3 & 7)),
                                   current_rounding};
    constexpr uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; // to the address that follows
    const uint8_t *next = code + 6;
    std::memcpy(at, instruction, sizeof instruction);
    std::memcpy(at + sizeof instruction, jump, sizeof jump);
    std::memcpy(at + sizeof instruction + sizeof jump, &next, sizeof next);
}

} // namespace

bool replace_half_conversion(ucontext_t &context) {
    greg_t &place = context.uc_mcontext.gregs[REG_RIP];
    auto *code = reinterpret_cast<uint8_t *>(place);
    if (is_conversion(code, map_0f38, 0x13)) return true; // another thread changed it meanwhile
    if (is_conversion(code, map_6, 0x13)) {
        if (!make_writable(code)) return false;
        code[1] = uint8_t((code[1] & ~map_bits) | map_0f38);
        return true;
    }
    if (!is_conversion(code, map_5, 0x1d) || (code[5] & is_register) != is_register) return false;
    uint8_t *copy = thread_code();
    if (!copy) return false;
    write_to_half(code, copy);
    place = reinterpret_cast<greg_t>(copy);
    return true;
}

} // namespace tiles

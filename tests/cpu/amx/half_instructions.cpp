#include "half_instructions.h"
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

namespace tiles {

namespace {

// Intel SDM, volume 2, 2.7: the EVEX prefix is 62, P0 (R X B R' 0 map, the first four inverted), P1 (W vvvv 1 pp, vvvv inverted), P2 (z L'L
// b V' aaa, V' inverted).
constexpr uint8_t evex = 0x62, map_bits = 0x07, map_0f = 1, map_0f38 = 2, map_0f3a = 3, map_5 = 5, map_6 = 6;
constexpr uint8_t no_second_source = 0x7d; // P1: W 0, vvvv 1111, 66
constexpr uint8_t broadcast = 0x10;        // P2: a broadcast element, or rounding of its own
constexpr uint8_t is_register = 0xc0;      // ModRM

/// The instruction at `code`: 62, P0, P1, P2, opcode, ModRM and more.
struct Evex {
    const uint8_t *code;

    bool is(uint8_t map, uint8_t opcode) const {
        return code[0] == evex && (code[1] & (map_bits | 8)) == map && code[2] == no_second_source && code[4] == opcode &&
               !(code[3] & broadcast);
    }
    bool has_registers() const { return (code[5] & is_register) == is_register; }
    bool is_relative() const { return (code[5] & 0xc7) == 5; }
    /// Bytes of ModRM, SIB and displacement.
    size_t operand_bytes() const {
        const int mode = code[5] >> 6, base = code[5] & 7;
        if (mode == 3) return 1;
        const bool has_sib = base == 4, has_displacement = mode == 2 || (mode == 0 && (has_sib ? code[6] & 7 : base) == 5);
        return 1 + has_sib + (mode == 1 ? 1 : has_displacement ? 4 : 0);
    }
    const uint8_t *next() const { return code + 5 + operand_bytes(); }
};

bool make_writable(uint8_t *code) {
    constexpr uintptr_t page = 4096;
    auto *first = reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(code) & ~(page - 1));
    return mprotect(first, size_t(code + 6 - first), PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

uint8_t bit(uint8_t byte, int from, int to) { return uint8_t((byte >> from & 1) << to); }

/// Instructions in memory of this thread, which run instead of one of the program.
class Replacement {
public:
    Replacement() {
        static __attribute__((tls_model("initial-exec"))) thread_local uint8_t *memory;
        constexpr int all = PROT_READ | PROT_WRITE | PROT_EXEC;
        if (!memory) memory = static_cast<uint8_t *>(mmap(nullptr, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        first_ = at_ = memory;
    }
    template<typename... Bytes>
    void add(Bytes... bytes) {
        ((*at_++ = uint8_t(bytes)), ...);
    }
    void copy(const uint8_t *from, size_t count) {
        std::memcpy(at_, from, count);
        at_ += count;
    }
    uint8_t *end_with_jump(const uint8_t *to) {
        add(0xff, 0x25, 0, 0, 0, 0); // to the address that follows
        std::memcpy(at_, &to, sizeof to);
        return first_;
    }

private:
    uint8_t *first_, *at_;
};

/// vcvtps2ph for vcvtps2phx of registers. Its first register is the source, and its second one the result.
void write_to_half(const Evex &from, Replacement &to) {
    const uint8_t p0 = from.code[1], registers = from.code[5];
    const int swapped = bit(p0, 5, 7) | bit(p0, 4, 6) | bit(p0, 7, 5) | bit(p0, 6, 4);
    constexpr int current_rounding = 4;
    to.add(evex, swapped | map_0f3a, from.code[2], from.code[3], from.code[4], is_register | (registers & 7) << 3 | (registers >> 3 & 7),
           current_rounding);
}

/// vpxord of the result with itself, then vpinsrw into it.
void write_load_of_word(const Evex &from, Replacement &to) {
    const uint8_t p0 = from.code[1], number = from.code[5] >> 3 & 7;
    const int same = bit(p0, 7, 7) | bit(p0, 4, 6) | bit(p0, 7, 5) | bit(p0, 4, 4);
    const int source = bit(p0, 7, 6) | (~number & 7) << 3 | 5, high = bit(p0, 4, 3);
    to.add(evex, same | map_0f, source, high, 0xef, is_register | number << 3 | number);
    to.add(evex, (p0 & 0xf0) | map_0f, source, high, 0xc4);
    to.copy(from.code + 5, from.operand_bytes());
    to.add(0);
}

void write_store_of_word(const Evex &from, Replacement &to) {
    to.add(evex, (from.code[1] & 0xf0) | map_0f3a, from.code[2], from.code[3], 0x15);
    to.copy(from.code + 5, from.operand_bytes());
    to.add(0);
}

} // namespace

bool replace_half_instruction(ucontext_t &context) {
    greg_t &place = context.uc_mcontext.gregs[REG_RIP];
    auto *code = reinterpret_cast<uint8_t *>(place);
    const Evex from{code};
    if (from.is(map_0f38, 0x13)) return true; // another thread changed it meanwhile
    if (from.is(map_6, 0x13)) {
        if (!make_writable(code)) return false;
        code[1] = uint8_t((code[1] & ~map_bits) | map_0f38);
        return true;
    }
    Replacement to;
    if (from.is(map_5, 0x1d) && from.has_registers()) {
        write_to_half(from, to);
    } else if (from.is(map_5, 0x6e) && !from.is_relative()) {
        write_load_of_word(from, to);
    } else if (from.is(map_5, 0x7e) && !from.is_relative()) {
        write_store_of_word(from, to);
    } else {
        return false;
    }
    place = reinterpret_cast<greg_t>(to.end_with_jump(from.next()));
    return true;
}

} // namespace tiles

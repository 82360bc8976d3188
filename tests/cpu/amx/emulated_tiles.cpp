// A tile unit for CPUs without AMX. Load it with LD_PRELOAD: its handler of SIGILL executes the instructions of AMX, and its syscall()
// answers the requests of arch_prctl for tiles. Everything else goes to the system.
//   EMULATED_TILES_COUNTS=1     print at exit how often each instruction ran, if one did
//   EMULATED_TILES_REFUSED=28   refuse permission for tiles with this errno
// On a CPU with AMX no instruction reaches the handler; requests are still refused if the variable is set.
#include "base/emulated_cpu.h"
#include "half_instructions.h"
#include "tile_unit.h"
#include <asm/prctl.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace tiles {

namespace {

// ---------------------------------------------------------------- decoding

enum Prefix { no_prefix, prefix_66, prefix_f3, prefix_f2 };
enum class Shape { memory, registers, rows, none }; // rows: memory with a base and a stride; none: the byte c0 alone

using Execute = const char *(*)(TileUnit &, const struct Instruction &);

/// One instruction of the map 0f38, with W 0 and vectors of 128 bits.
struct Row {
    const char *name;
    Prefix prefix;
    uint8_t opcode;
    Shape shape;
    Execute execute;
    bool uses_tiles; ///< needs permission
};

struct Instruction {
    const Row *row;
    int length;
    int reg, rm, third; // the operands: bits 3 to 5 of ModRM, bits 0 to 2, the field vvvv of VEX
    char *address;
    int64_t stride;
};

template<bool bf16, bool left_signed, bool right_signed>
const char *multiply(TileUnit &unit, const Instruction &i) {
    return unit.multiply(i.reg, i.rm, i.third, {bf16, left_signed, right_signed});
}

const char *load(TileUnit &unit, const Instruction &i) { return unit.load(i.reg, i.address, i.stride); }

const Row rows[] = {
    {"ldtilecfg", no_prefix, 0x49, Shape::memory,
     [](TileUnit &unit, const Instruction &i) {
         Configuration wanted;
         std::memcpy(&wanted, i.address, sizeof wanted);
         return unit.configure(wanted);
     },
     false},
    {"sttilecfg", prefix_66, 0x49, Shape::memory,
     [](TileUnit &unit, const Instruction &i) -> const char * {
         const Configuration shapes = unit.configuration();
         std::memcpy(i.address, &shapes, sizeof shapes);
         return nullptr;
     },
     false},
    {"tilerelease", no_prefix, 0x49, Shape::none,
     [](TileUnit &unit, const Instruction &) -> const char * {
         unit.release();
         return nullptr;
     },
     false},
    {"tilezero", prefix_f2, 0x49, Shape::registers, [](TileUnit &unit, const Instruction &i) { return unit.zero(i.reg); }, true},
    {"tileloadd", prefix_f2, 0x4b, Shape::rows, load, true},
    {"tileloaddt1", prefix_66, 0x4b, Shape::rows, load, true},
    {"tilestored", prefix_f3, 0x4b, Shape::rows,
     [](TileUnit &unit, const Instruction &i) { return unit.store(i.reg, i.address, i.stride); }, true},
    {"tdpbf16ps", prefix_f3, 0x5c, Shape::registers, multiply<true, true, true>, true},
    {"tdpbssd", prefix_f2, 0x5e, Shape::registers, multiply<false, true, true>, true},
    {"tdpbsud", prefix_f3, 0x5e, Shape::registers, multiply<false, true, false>, true},
    {"tdpbusd", prefix_66, 0x5e, Shape::registers, multiply<false, false, true>, true},
    {"tdpbuud", no_prefix, 0x5e, Shape::registers, multiply<false, false, false>, true},
};
constexpr int row_count = sizeof rows / sizeof rows[0];

const Row *find_row(int prefix, uint8_t opcode, uint8_t modrm) {
    for (const Row &row : rows) {
        if (row.prefix != prefix || row.opcode != opcode) continue;
        const bool has_registers = modrm >= 0xc0, has_sib = (modrm & 7) == 4;
        if (row.shape == Shape::none ? modrm == 0xc0 : row.shape == Shape::registers ? has_registers : !has_registers)
            return row.shape == Shape::rows && !has_sib ? nullptr : &row;
    }
    return nullptr;
}

// The registers of a signal frame, by their number in instructions.
constexpr int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

int64_t displacement(const uint8_t *code, int bytes) {
    int8_t small;
    int32_t large;
    std::memcpy(&small, code, sizeof small);
    if (bytes == 1) return small;
    std::memcpy(&large, code, sizeof large);
    return bytes == 4 ? large : 0;
}

/// Reads the memory operand after ModRM at code[4]. `high` has the bits of VEX that extend the index (2) and the base (1).
void decode_memory(Instruction &i, const uint8_t *code, unsigned high, const greg_t *values) {
    const unsigned mod = code[4] >> 6, rm = code[4] & 7;
    int64_t base = 0, index = 0;
    int length = 5, bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    unsigned base_register = rm;
    if (rm == 4) {
        const unsigned sib = code[length++], index_register = (sib >> 3 & 7) | (high & 2) << 2;
        if (index_register != 4) index = values[registers[index_register]] * (int64_t(1) << (sib >> 6));
        base_register = sib & 7;
    }
    const bool has_base = mod != 0 || base_register != 5;
    if (has_base)
        base = values[registers[base_register | (high & 1) << 3]];
    else
        bytes = 4;
    base += displacement(code + length, bytes);
    i.length = length + bytes;
    if (!has_base && rm != 4) base += values[REG_RIP] + i.length;
    i.stride = index;
    i.address = reinterpret_cast<char *>(i.row->shape == Shape::rows ? base : base + index);
}

/// Decodes the instruction at rip. Returns false if it is none of AMX.
bool decode(Instruction &i, const greg_t *values) {
    const auto *code = reinterpret_cast<const uint8_t *>(values[REG_RIP]);
    // VEX of three bytes: c4, bits R X B (inverted) and the map 2 (0f38), then W 0, vvvv (inverted), L 0 and the prefix.
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false;
    i.row = find_row(code[2] & 3, code[3], code[4]);
    if (!i.row) return false;
    const unsigned high = ~code[1] >> 5 & 7;
    i.third = ~(code[2] >> 3) & 15;
    i.reg = (code[4] >> 3 & 7) | (high & 4) << 1;
    i.rm = (code[4] & 7) | (high & 1) << 3;
    i.length = 5;
    if (i.row->shape == Shape::memory || i.row->shape == Shape::rows) decode_memory(i, code, high, values);
    const bool is_product = i.row->opcode == 0x5c || i.row->opcode == 0x5e;
    return is_product || i.third == 0;
}

// --------------------------------------------------------------- executing

__attribute__((tls_model("initial-exec"))) thread_local TileUnit unit;
std::atomic<long> counts[row_count];
std::atomic<bool> is_permitted;
struct sigaction previous;
int refusal; // the errno of a refused request, or 0
bool has_tiles;

[[noreturn]] void stop(const char *reason, const Instruction &i) {
    char text[256];
    const int length = std::snprintf(text, sizeof text, "emulated tiles: %s refused: %s\n", i.row->name, reason);
    if (write(2, text, length) < 0) _exit(70);
    signal(SIGABRT, SIG_DFL);
    std::abort();
}

void pass_on(int number, siginfo_t *information, void *context) {
    if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, information, context);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
    const auto *code = reinterpret_cast<const uint8_t *>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
    char text[128];
    int length = std::snprintf(text, sizeof text, "emulated tiles: an instruction that is not of AMX:");
    for (int i = 0; i < 8; i++) length += std::snprintf(text + length, sizeof text - length, " %02x", code[i]);
    text[length++] = '\n';
    if (write(2, text, length) < 0) _exit(70);
    signal(number, SIG_DFL); // the instruction runs again, and the process ends
}

void on_illegal_instruction(int number, siginfo_t *information, void *context) {
    const int error = errno;
    greg_t *values = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    Instruction i{};
    if (!decode(i, values)) {
        if (!replace_half_instruction(*static_cast<ucontext_t *>(context))) pass_on(number, information, context);
        return;
    }
    if (i.row->uses_tiles && !is_permitted) stop("a tile is used without permission (ARCH_REQ_XCOMP_PERM)", i);
    if (const char *reason = i.row->execute(unit, i)) stop(reason, i);
    counts[i.row - rows].fetch_add(1, std::memory_order_relaxed);
    values[REG_RIP] += i.length;
    errno = error;
}

// ---------------------------------------------------------------- requests

// From Linux 5.16, asm/prctl.h.
constexpr long get_supported = 0x1021, get_permitted = 0x1022, request = 0x1023, tile_data = 18;
constexpr uint64_t tile_states = uint64_t(3) << 17;

long plain_syscall(long number, const long (&a)[6]) {
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/// Answers a request for tiles as a system with tiles does. Returns a negative errno for a refusal.
long answer(long code, long argument) {
    if (code == request) {
        if (refusal) return -refusal;
        is_permitted = true;
        return 0;
    }
    *reinterpret_cast<uint64_t *>(argument) |= code == get_supported || is_permitted ? tile_states : 0;
    return 0;
}

__attribute__((constructor)) void start() {
    if (const char *text = std::getenv("EMULATED_TILES_REFUSED")) refusal = std::atoi(text);
    uint64_t supported = 0;
    has_tiles =
        plain_syscall(SYS_arch_prctl, {get_supported, long(&supported), 0, 0, 0, 0}) == 0 && (supported & tile_states) == tile_states;
    if (has_tiles) return;
    struct sigaction action {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGILL, &action, &previous);
}

__attribute__((destructor)) void finish() {
    if (!std::getenv("EMULATED_TILES_COUNTS")) return;
    char text[1024] = "emulated tiles:";
    bool any = false;
    for (int i = 0; i < row_count; i++) {
        if (counts[i] == 0) continue;
        const size_t length = std::strlen(text);
        std::snprintf(text + length, sizeof text - length, " %ld %s", counts[i].load(), rows[i].name);
        any = true;
    }
    if (any) std::fprintf(stderr, "%s\n", text);
}

} // namespace

} // namespace tiles

const scalide::EmulatedCpu scalide::scalide_emulated_cpu = {
    1u << 22 | 1u << 23 | 1u << 24 | 1u << 25, // AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8
    1u << 4,                                   // AVX-VNNI
    3u << 17,
};

extern "C" {

__attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (long &argument : arguments) argument = va_arg(list, long);
    va_end(list);
    const long code = arguments[0];
    const bool is_for_tiles = number == SYS_arch_prctl && (code == tiles::get_supported || code == tiles::get_permitted ||
                                                           (code == tiles::request && arguments[1] == tiles::tile_data));
    const bool is_answered = is_for_tiles && (!tiles::has_tiles || (code == tiles::request && tiles::refusal));
    if (is_answered && code != tiles::request) *reinterpret_cast<uint64_t *>(arguments[1]) = 0;
    if (is_answered && code != tiles::request) tiles::plain_syscall(number, arguments);
    const long result = is_answered ? tiles::answer(code, arguments[1]) : tiles::plain_syscall(number, arguments);
    if (result >= 0 || result < -4095) return result;
    errno = static_cast<int>(-result);
    return -1;
}
}

// Each instruction of AMX compared with a reference in scalar code. The test runs on the CPU's own tiles, or with emulated_tiles in
// LD_PRELOAD.
#include <asm/prctl.h>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <random>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

struct Shapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

int failures = 0;

void expect(bool holds, const std::string &what) {
    if (holds) return;
    std::printf("wrong: %s\n", what.c_str());
    failures++;
}

int ask(long tile_state = 18) { return syscall(SYS_arch_prctl, 0x1023, tile_state) == 0 ? 0 : errno; }

void configure(const Shapes &shapes) { __asm__ volatile("ldtilecfg %0" : : "m"(shapes)); }
void release() { __asm__ volatile("tilerelease" : : :); }

#define TILE_LOAD(tile, base, stride) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(base), "r"(int64_t(stride)) : "memory")
#define TILE_STORE(tile, base, stride)                                                                                                     \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(base), "r"(int64_t(stride)) : "memory")

// ---------------------------------------------------------------- products

constexpr int width = 64; // the bytes of a row

struct Case {
    int rows, columns, groups;
};
using Bytes = std::vector<uint8_t>;
using Sums = std::vector<uint32_t>;

Shapes shapes_of(Case sizes) {
    Shapes shapes;
    shapes.rows[0] = shapes.rows[1] = uint8_t(sizes.rows);
    shapes.rows[2] = uint8_t(sizes.groups);
    shapes.row_bytes[0] = shapes.row_bytes[2] = uint16_t(sizes.columns * 4);
    shapes.row_bytes[1] = uint16_t(sizes.groups * 4);
    return shapes;
}

#define RUN_PRODUCT(name)                                                                                                                  \
    [](const Shapes &shapes, uint32_t *sums, const uint8_t *left, const uint8_t *right) {                                                  \
        configure(shapes);                                                                                                                 \
        TILE_LOAD(0, sums, width);                                                                                                         \
        TILE_LOAD(1, left, width);                                                                                                         \
        TILE_LOAD(2, right, width);                                                                                                        \
        __asm__ volatile(name " %%tmm2, %%tmm1, %%tmm0" : : :);                                                                            \
        TILE_STORE(0, sums, width);                                                                                                        \
        release();                                                                                                                         \
    }
using Run = void (*)(const Shapes &, uint32_t *, const uint8_t *, const uint8_t *);

int signed_byte(uint8_t bits) { return bits >= 128 ? bits - 256 : bits; }

template<bool left_signed, bool right_signed>
uint32_t add_bytes(uint32_t sum, const uint8_t *left, const uint8_t *right, int groups) {
    int64_t exact = 0;
    for (int k = 0; k < groups; k++)
        for (int i = 0; i < 4; i++) {
            const uint8_t a = left[k * 4 + i], b = right[k * width + i];
            exact += int64_t(left_signed ? signed_byte(a) : a) * (right_signed ? signed_byte(b) : b);
        }
    return sum + uint32_t(exact);
}

float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.f, value) : value; }

float bf16_at(const uint8_t *bytes) {
    const uint32_t bits = uint32_t(bytes[0]) << 16 | uint32_t(bytes[1]) << 24;
    float value;
    std::memcpy(&value, &bits, 4);
    return flushed(value);
}

uint32_t add_pairs(uint32_t sum, const uint8_t *left, const uint8_t *right, int groups) {
    float partial[2] = {}, start, total;
    for (int k = 0; k < groups; k++)
        for (int i = 0; i < 2; i++) // the product of two bf16 is exact in f64, and so is this sum before it is rounded, in the tested range
            partial[i] = flushed(float(double(partial[i]) + double(bf16_at(left + k * 4 + i * 2)) * bf16_at(right + k * width + i * 2)));
    std::memcpy(&start, &sum, 4);
    total = flushed(flushed(start) + flushed(partial[0] + partial[1]));
    std::memcpy(&sum, &total, 4);
    return sum;
}

struct Product {
    const char *name;
    Run run;
    uint32_t (*add)(uint32_t, const uint8_t *, const uint8_t *, int);
};
const Product products[] = {
    {"tdpbf16ps", RUN_PRODUCT("tdpbf16ps"), add_pairs},           {"tdpbssd", RUN_PRODUCT("tdpbssd"), add_bytes<true, true>},
    {"tdpbsud", RUN_PRODUCT("tdpbsud"), add_bytes<true, false>},  {"tdpbusd", RUN_PRODUCT("tdpbusd"), add_bytes<false, true>},
    {"tdpbuud", RUN_PRODUCT("tdpbuud"), add_bytes<false, false>},
};

/// Draws bytes. Those of bf16 and f32 have exponents around 1, and some are zero or subnormal.
Bytes draw(std::mt19937 &random, bool bf16, int element) {
    Bytes bytes(16 * width);
    for (uint8_t &byte : bytes) byte = uint8_t(random());
    for (size_t i = element; bf16 && i <= bytes.size(); i += element) {
        const uint16_t exponent = random() % 16 ? 120 + random() % 16 : 0;
        bytes[i - 1] = uint8_t((bytes[i - 1] & 0x80) | exponent >> 1);
        bytes[i - 2] = uint8_t((bytes[i - 2] & 0x7f) | (exponent & 1) << 7);
    }
    return bytes;
}

void test_product(const Product &product, Case sizes, std::mt19937 &random) {
    const bool bf16 = product.add == add_pairs;
    const Bytes left = draw(random, bf16, 2), right = draw(random, bf16, 2), first = draw(random, bf16, 4);
    Sums sums(16 * 16), wanted(16 * 16);
    std::memcpy(sums.data(), first.data(), first.size());
    wanted = sums;
    for (int m = 0; m < sizes.rows; m++)
        for (int n = 0; n < sizes.columns; n++)
            wanted[m * 16 + n] = product.add(wanted[m * 16 + n], &left[m * width], &right[n * 4], sizes.groups);
    product.run(shapes_of(sizes), sums.data(), left.data(), right.data());
    for (size_t i = 0; i < sums.size(); i++) {
        if (sums[i] == wanted[i]) continue;
        std::printf("%s %d x %d x %d: element %zu is %08x, not %08x\n", product.name, sizes.rows, sizes.columns, sizes.groups, i, sums[i],
                    wanted[i]);
        failures++;
        return;
    }
}

void test_products() {
    std::mt19937 random(1);
    for (const Product &product : products)
        for (const Case sizes : {Case{16, 16, 16}, {1, 1, 1}, {3, 5, 7}, {16, 1, 16}, {1, 16, 2}, {15, 16, 9}})
            test_product(product, sizes, random);
}

/// Infinity times zero, infinities of both signs, overflow and a product below the smallest normal number.
void test_special_values() {
    struct Special {
        uint16_t left[2], right[2];
        uint32_t sum, wanted;
    };
    constexpr uint32_t any_nan = 0x7fffffff;
    for (const Special &row : {Special{{0x7f80, 0}, {0, 0}, 0, any_nan},                      // inf * 0
                               Special{{0x7f80, 0x7f80}, {0x3f80, 0xbf80}, 0, any_nan},       // inf - inf
                               Special{{0x7f7f, 0}, {0x7f7f, 0}, 0, 0x7f800000},              // overflow
                               Special{{0x1000, 0}, {0x1000, 0}, 0x3f800000, 0x3f800000},     // a product that underflows
                               Special{{0x0080, 0}, {0x3f00, 0}, 0, 0},                       // a subnormal product
                               Special{{0, 0}, {0, 0}, 0x00000001, 0},                        // a subnormal sum
                               Special{{0x3f80, 0x3f80}, {0x3f80, 0x3f80}, 0, 0x40000000}}) { // 1 + 1
        uint32_t sums[16] = {row.sum};
        uint8_t left[width] = {}, right[width] = {};
        std::memcpy(left, row.left, 4);
        std::memcpy(right, row.right, 4);
        products[0].run(shapes_of({1, 1, 1}), sums, left, right);
        const bool is_nan = (sums[0] & 0x7f800000) == 0x7f800000 && (sums[0] & 0x7fffff);
        expect(row.wanted == any_nan ? is_nan : sums[0] == row.wanted, "a special value of tdpbf16ps gives " + std::to_string(sums[0]));
    }
}

// ------------------------------------------------------- moves of tiles

/// Runs a load in one addressing form and compares the tile with the rows at `first`, `stride` bytes apart.
#define EXPECT_LOADED(text, first, stride, ...)                                                                                            \
    do {                                                                                                                                   \
        std::memset(out, 0xee, sizeof out);                                                                                                \
        __asm__ volatile("tilezero %%tmm3\n" text : : __VA_ARGS__ : "memory", "r8", "r13", "r12");                                         \
        TILE_STORE(3, out, width);                                                                                                         \
        for (int row = 0; row < 5; row++) {                                                                                                \
            expect(std::memcmp(out + row * width, (first) + row * (stride), 28) == 0, std::string("rows of ") + (text));                   \
            expect(uint8_t(out[row * width + 28]) == 0xee, std::string("bytes after rows of ") + (text));                                  \
        }                                                                                                                                  \
    } while (false)

void test_addresses() {
    static char in[8192], out[16 * width];
    std::mt19937 random(2);
    for (char &byte : in) byte = char(random());
    Shapes shapes;
    shapes.rows[3] = 5;
    shapes.row_bytes[3] = 28;
    configure(shapes);
    char *base = in + 4096;
    const int64_t stride = 40, back = -72;
    EXPECT_LOADED("tileloadd (%0,%1,1), %%tmm3", base, 40, "r"(base), "r"(stride));
    EXPECT_LOADED("tileloaddt1 (%0,%1,1), %%tmm3", base, 40, "r"(base), "r"(stride));
    EXPECT_LOADED("tileloadd (%0,%1,4), %%tmm3", base, 160, "r"(base), "r"(stride));
    EXPECT_LOADED("tileloadd 64(%0,%1,2), %%tmm3", base + 64, 80, "r"(base), "r"(stride));
    EXPECT_LOADED("tileloadd -64(%0,%1,8), %%tmm3", base - 64, 320, "r"(base), "r"(stride));
    EXPECT_LOADED("tileloadd 1000(%0,%1,1), %%tmm3", base + 1000, -72, "r"(base), "r"(back));
    EXPECT_LOADED("mov %0, %%r8; mov %1, %%r13; tileloadd (%%r8,%%r13,1), %%tmm3", base, 40, "r"(base), "r"(stride));
    EXPECT_LOADED("mov %0, %%r13; mov %1, %%r12; tileloadd -8(%%r13,%%r12,2), %%tmm3", base - 8, 80, "r"(base), "r"(stride));
    EXPECT_LOADED("tileloadd (%0), %%tmm3", base, 0, "r"(base));
    release();
}

/// LDTILECFG and STTILECFG in each addressing form, and the tile's rows after another load.
void test_configurations() {
    static Shapes shapes[4], stored;
    for (int i = 0; i < 4; i++) {
        shapes[i].rows[i] = uint8_t(3 + i);
        shapes[i].row_bytes[i] = uint16_t(8 + i);
    }
    const auto expect_stored = [](const Shapes &wanted, const char *what) {
        stored.palette = stored.start_row = 0xee;
        __asm__ volatile("sttilecfg %0" : "=m"(stored));
        expect(std::memcmp(&stored, &wanted, sizeof stored) == 0, what);
    };
    __asm__ volatile("ldtilecfg (%0)" : : "r"(&shapes[0]) : "memory");
    expect_stored(shapes[0], "ldtilecfg (base)");
    __asm__ volatile("ldtilecfg 64(%0)" : : "r"(&shapes[0]) : "memory");
    expect_stored(shapes[1], "ldtilecfg with 8 bits of displacement");
    __asm__ volatile("ldtilecfg -128(%0,%1,8)" : : "r"(&shapes[2]), "r"(int64_t(24)) : "memory");
    expect_stored(shapes[3], "ldtilecfg with an index");
    __asm__ volatile("mov %0, %%r9; ldtilecfg (%%r9)" : : "r"(&shapes[2]) : "memory", "r9");
    expect_stored(shapes[2], "ldtilecfg (r9)");
    __asm__ volatile("ldtilecfg 0x1000(%0)" : : "r"(reinterpret_cast<char *>(&shapes[1]) - 0x1000) : "memory");
    expect_stored(shapes[1], "ldtilecfg with 32 bits of displacement");
    __asm__ volatile("ldtilecfg %0" : : "m"(shapes[0]));
    expect_stored(shapes[0], "ldtilecfg of a variable");
    release();
    Shapes none;
    none.palette = 0;
    expect_stored(none, "tilerelease");
}

void test_threads() {
    const auto multiply = [] {
        std::mt19937 random(3);
        for (int i = 0; i < 50; i++) test_product(products[i % 5], {1 + i % 16, 1 + i % 7, 1 + i % 11}, random);
    };
    std::thread first(multiply), second(multiply);
    first.join();
    second.join();
}

// -------------------------------------------------------------------- faults

/// Runs a function in a child that must end by a signal: of the CPU, or SIGABRT of the emulator after one line.
void expect_refused(const char *what, const std::function<void()> &run) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (!std::getenv("EMULATED_TILES_SHOW")) dup2(open("/dev/null", 1), 2);
        run();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFSIGNALED(status), std::string("not refused: ") + what);
}

void expect_shapes_refused(const char *what, const std::function<void(Shapes &)> &change) {
    expect_refused(what, [&] {
        Shapes shapes = shapes_of({4, 4, 4});
        change(shapes);
        static uint32_t memory[16 * 16];
        const auto *operand = reinterpret_cast<const uint8_t *>(memory);
        products[0].run(shapes, memory, operand, operand);
    });
}

void test_faults() {
    expect_shapes_refused("palette 2", [](Shapes &shapes) { shapes.palette = 2; });
    expect_shapes_refused("17 rows", [](Shapes &shapes) { shapes.rows[0] = 17; });
    expect_shapes_refused("68 bytes", [](Shapes &shapes) { shapes.row_bytes[0] = 68; });
    expect_shapes_refused("rows without bytes", [](Shapes &shapes) { shapes.rows[7] = 1; });
    expect_shapes_refused("a reserved byte", [](Shapes &shapes) { shapes.reserved[3] = 1; });
    expect_shapes_refused("no tiles", [](Shapes &shapes) { shapes.palette = 0; });
    expect_shapes_refused("a tile without rows", [](Shapes &shapes) { shapes.rows[2] = 0, shapes.row_bytes[2] = 0; });
    expect_shapes_refused("rows of the left operand", [](Shapes &shapes) { shapes.rows[1] = 5; });
    expect_shapes_refused("columns of the right operand", [](Shapes &shapes) { shapes.row_bytes[2] = 20; });
    expect_shapes_refused("groups of the right operand", [](Shapes &shapes) { shapes.rows[2] = 3; });
    expect_shapes_refused("rows of 18 bytes", [](Shapes &shapes) { shapes.row_bytes[0] = shapes.row_bytes[2] = 18; });
    expect_refused("one tile twice", [] {
        configure(shapes_of({4, 4, 4}));
        __asm__ volatile(".byte 0xc4, 0xe2, 0x73, 0x5e, 0xc1"); // tdpbssd tmm0, tmm1, tmm1, which assemblers refuse
    });
    expect_refused("memory that is not mapped", [] {
        configure(shapes_of({4, 4, 4}));
        TILE_LOAD(0, static_cast<const char *>(nullptr), 64);
    });
    expect_refused("another illegal instruction", [] { __asm__ volatile("ud2"); });
}

void illegal_instruction_seen(int) { _exit(17); }

/// A handler that a program installs before or after gets the illegal instructions that are not of AMX.
void test_other_handlers() {
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGILL, illegal_instruction_seen);
        __asm__ volatile("ud2");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 17, "the handler of the program did not run");
}

/// A child that did not ask may not use tiles. The permission of a process cannot be returned, so this runs first.
void test_permission() {
    expect_refused("no permission", [] {
        configure(shapes_of({4, 4, 4}));
        __asm__ volatile("tilezero %%tmm0" : : :);
    });
    uint64_t supported = 0, permitted = 0;
    expect(syscall(SYS_arch_prctl, 0x1021, &supported) == 0 && (supported >> 17 & 3) == 3, "ARCH_GET_XCOMP_SUPP");
    const int refusal = ask();
    if (const char *wanted = std::getenv("EMULATED_TILES_REFUSED")) {
        expect(refusal == std::atoi(wanted), "the errno of a refusal");
        std::exit(failures != 0);
    }
    expect(refusal == 0, "ARCH_REQ_XCOMP_PERM");
    expect(syscall(SYS_arch_prctl, 0x1022, &permitted) == 0 && (permitted >> 17 & 3) == 3, "ARCH_GET_XCOMP_PERM");
    expect(syscall(SYS_getpid) == getpid(), "another system call");
    expect(syscall(SYS_close, -1) == -1 && errno == EBADF, "a system call that fails");
}

bool has_tiles() {
    uint64_t supported = 0;
    return syscall(SYS_arch_prctl, 0x1021, &supported) == 0 && (supported >> 17 & 3) == 3;
}

} // namespace

int main() {
    if (!has_tiles()) {
        std::printf("this CPU has no tiles, and LD_PRELOAD names no emulator\n");
        return 77;
    }
    test_permission();
    test_products();
    test_special_values();
    test_addresses();
    test_configurations();
    test_threads();
    test_faults();
    test_other_handlers();
    std::printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}

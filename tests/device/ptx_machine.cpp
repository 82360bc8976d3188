#include "support/ptx/machine.h"
#include <gtest/gtest.h>
#include <stdexcept>

// device.ptx_machine.*: programs that the PTX emulator must reject, although its order of threads would give a result.
namespace scalide::ptx {
namespace {

/// Runs `body` on 2 blocks of 64 threads with 256 bytes each of shared memory, whose place for this thread is %rs, and its neighbour's %rn;
/// those of the array, which has words for one block, are %as and %an. What is wrong, or "".
std::string run(const std::string &body, uint32_t blocks = 1) {
    const std::string text = ".version 8.1\n.target sm_89\n.address_size 64\n.extern .shared .align 16 .b8 block_memory[];\n"
                             ".visible .entry k(.param .u64 array)\n{\n"
                             "mov.u32 %r0, %tid.x; xor.b32 %r1, %r0, 33; ld.param.u64 %a, [array];\n"
                             "mad.wide.u32 %as, %r0, 4, %a; mad.wide.u32 %an, %r1, 4, %a;\n"
                             "mad.wide.u32 %rs, %r0, 4, block_memory; mad.wide.u32 %rn, %r1, 4, block_memory;\n" +
                             body + "\nret;\n}\n";
    std::vector<uint32_t> array(64, 7);
    void *address = array.data();
    void *arguments[] = {&address};
    const Module module(text);
    try {
        Module::run(*module.find("k"), {{blocks, 1, 1}, {64, 1, 1}, 256}, arguments, [](uint64_t, size_t) {});
    } catch (const std::runtime_error &error) {
        return error.what();
    }
    return "";
}

bool is_race(const std::string &words) { return words.starts_with("ptx: a race: "); }

TEST(ptx_machine, a_barrier_is_between_a_write_and_anothers_read) {
    EXPECT_EQ(run("st.shared.u32 [%rs], %r0; bar.sync 0; ld.shared.u32 %r2, [%rn];"), "");
    EXPECT_EQ(run("st.global.u32 [%as], %r0; bar.sync 0; ld.global.u32 %r2, [%an];"), "");
    EXPECT_TRUE(is_race(run("st.shared.u32 [%rs], %r0; ld.shared.u32 %r2, [%rn];")));
    EXPECT_TRUE(is_race(run("st.global.u32 [%as], %r0; ld.global.u32 %r2, [%an];")));
    EXPECT_EQ(run("st.shared.u32 [%rs], %r0; ld.shared.u32 %r2, [%rs];"), "");
}

TEST(ptx_machine, a_barrier_is_between_a_read_and_anothers_write) {
    EXPECT_EQ(run("ld.shared.u32 %r2, [%rn]; bar.sync 0; st.shared.u32 [%rs], %r0;"), "");
    EXPECT_TRUE(is_race(run("ld.shared.u32 %r2, [%rn]; st.shared.u32 [%rs], %r0;")));
    EXPECT_TRUE(is_race(run("ld.shared.u32 %r2, [block_memory]; st.shared.u32 [%rs], %r0;")));
}

TEST(ptx_machine, no_barrier_is_between_blocks) {
    EXPECT_EQ(run("ld.global.u32 %r2, [%as]; bar.sync 0; st.global.u32 [%as], %r0;"), "");
    EXPECT_TRUE(is_race(run("add.u32 %r2, %r0, %ctaid.x; st.global.u32 [%as], %r2;", 2)));
    EXPECT_TRUE(is_race(run("ld.global.u32 %r2, [%as]; bar.sync 0; st.global.u32 [%as], %r0;", 2)));
}

TEST(ptx_machine, constants_stay) {
    EXPECT_EQ(run("ld.global.nc.u32 %r2, [%an];"), "");
    EXPECT_TRUE(is_race(run("ld.global.nc.u32 %r2, [%as]; bar.sync 0; st.global.u32 [%as], %r0;")));
    EXPECT_TRUE(is_race(run("st.global.u32 [%as], %r0; ld.global.nc.u32 %r2, [%as];")));
}

TEST(ptx_machine, a_warp_meets_at_one_instruction) {
    const std::string odd = "and.b32 %r3, %r0, 1; setp.eq.s32 %p, %r3, 1; ", upper = "setp.ge.s32 %p, %r0, 32; ";
    EXPECT_EQ(run(odd + "@%p ret; bar.sync 0;"), "");
    EXPECT_EQ(run(upper + "@%p bra $a; bar.sync 0; bra $b; $a: bar.sync 0; $b: ret;"), "");
    EXPECT_EQ(run(odd + "@%p bra $a; bar.sync 0; bra $b; $a: bar.sync 0; $b: ret;"), "ptx: not all lanes of a warp reach the same barrier");
    EXPECT_EQ(run("shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;"), "");
    EXPECT_EQ(run(odd + "@%p bra $a; shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; $a: ret;"), "");
    EXPECT_EQ(run(odd + "@%p bra $a; shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; $a: bar.sync 0;"),
              "ptx: not all lanes of a warp reach the same shuffle");
}

TEST(ptx_machine, the_systems_memory_is_nobodys) {
    EXPECT_EQ(run("mov.u64 %b, 0; st.shared.u32 [%b], %r0;"), "ptx: shared memory at 0 is the system's");
}

} // namespace
} // namespace scalide::ptx

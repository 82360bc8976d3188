#pragma once
#include "support/ptx/races.h"
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

// Executes PTX on the CPU, for tests without a GPU. Blocks run one after the other. The threads of a block take turns; each runs up to its
// next barrier or shuffle. Source: NVIDIA's PTX ISA manual, 8.1.
namespace scalide::ptx {

/// Whether a thread runs, waits for other threads of its block, or has ended.
enum class State : uint8_t { runs, at_barrier, at_shuffle, ended };

struct Block;

/// A thread of a block. Registers hold bits, zero-extended; predicates 0 or 1.
struct Thread {
    std::vector<uint64_t> registers;
    std::vector<unsigned char> local; ///< memory of its own
    size_t next = 0;                  ///< instruction
    State state = State::runs;
    uint32_t place[3] = {}, lane = 0;
    Block *block = nullptr;
    uint64_t given = 0; ///< operand of a shuffle
    int taker = -1;     ///< the register that receives the shuffled value
    uint32_t source = 0;

    template<typename T>
    void set(int number, T value) {
        uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        registers[static_cast<size_t>(number)] = bits;
    }
};

/// An operand of an instruction: a register, or an immediate value as bits.
struct Operand {
    int number = -1;
    uint64_t bits = 0;
    int special = -1; ///< a register that each thread has, such as %tid.x

    uint64_t raw(const Thread &thread) const;
    template<typename T>
    T get(const Thread &thread) const {
        const uint64_t value = raw(thread);
        T result;
        std::memcpy(&result, &value, sizeof result);
        return result;
    }
};

using Action = std::function<void(Thread &)>;

struct Instruction {
    Action action;
    int predicate = -1; ///< register; -1: always
    bool if_false = false;
};

/// A kernel: its parameters and its code.
struct Entry {
    std::map<std::string, size_t> offsets; ///< of parameters, by name
    std::vector<size_t> offset_of, bytes_of;
    std::vector<Instruction> code;
    size_t registers = 0, local_bytes = 0, most_threads = 0; ///< most_threads 0: no limit is given
};

struct Launch {
    uint32_t blocks[3], threads[3], shared_bytes;
};

/// Called for each access to global memory. Throws if the program may not access the address.
using CheckAccess = std::function<void(uint64_t address, size_t bytes)>;

/// Address at which a block's shared memory begins. The system reserves the bytes below it, as on GPUs of compute capability 9.0 and later.
constexpr uint64_t shared_base = 1024;

/// State that the threads of a block share.
struct Block {
    const Launch &launch;
    uint32_t place[3];
    std::vector<unsigned char> parameters, shared;
    const CheckAccess &check;
    Races &races;            ///< in global memory, of all blocks
    Races shared_races = {}; ///< in this block's shared memory
    uint32_t meetings = 0;   ///< barriers so far
};

/// The kernels of a PTX text.
class Module {
public:
    /// Throws std::runtime_error with the line if the text contains an unknown instruction.
    explicit Module(const std::string &text);

    /// Returns nullptr if there is no kernel with this name.
    const Entry *find(const std::string &name) const;
    /// Runs a kernel to its end. Throws std::runtime_error where a GPU would fault: for more threads than .maxntid, and for addresses that
    /// are misaligned or not allowed. Also throws at a race, and at a shuffle or barrier that not all lanes of a warp reach.
    static void run(const Entry &entry, const Launch &launch, void *const *arguments, const CheckAccess &check);

private:
    std::map<std::string, Entry> entries_;
};

/// Approximate instructions (ex2.approx ...) have this share of the largest relative error that NVIDIA's manual allows: -1 to 1. 0 at
/// first: their results are the exact ones, rounded. GPUs differ, and no code may rely on exact results.
void set_share_of_errors(double share);

/// Returns the PTX text in a fat binary (of CUDA 13: compressed by zstd). Throws std::runtime_error if there is none.
std::string text_of_fat_binary(const void *image);

/// The action of an instruction: `words` are its mnemonic's parts, `operands` as they are written. Used by Module.
struct Naming {
    std::function<int(const std::string &)> number;                                   ///< of a register
    std::function<size_t(const std::string &)> parameter;                             ///< its offset
    std::function<std::shared_ptr<const size_t>(const std::string &)> place_of_label; ///< known when the text is read
    std::string shared;                                                               ///< the variable at shared_base
};
Action action_of(const std::vector<std::string> &words, const std::vector<std::string> &operands, const Naming &naming);

} // namespace scalide::ptx

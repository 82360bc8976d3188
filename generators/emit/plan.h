#pragma once
#include "ir/library_product.h"
#include "lower/lower.h"
#include "scalide/plan.h"
#include "transforms/analysis/origins.h"
#include "transforms/expand/least_extents.h"
#include "transforms/library/matmul_call.h"
#include "transforms/numerics/collect_statistics.h"

namespace scalide {

/// The storage of a buffer, with the numbers of the runtime.
enum class Storage {
    data = SCALIDE_STORAGE_DATA,
    scale = SCALIDE_STORAGE_SCALE,
    arena = SCALIDE_STORAGE_ARENA,
    scalar = SCALIDE_STORAGE_SCALAR,
    prepared = SCALIDE_STORAGE_PREPARED,
};
/// The role of an argument for the caller, with the numbers of the runtime.
enum class ArgumentRole {
    input = SCALIDE_INPUT,
    output = SCALIDE_OUTPUT,
    inout = SCALIDE_INOUT,
    state = SCALIDE_STATE,
    constant = SCALIDE_CONSTANT,
};

/// The device of a program, with the numbers of the runtime.
enum class Device { cpu = SCALIDE_CPU, cuda = SCALIDE_CUDA, opencl = SCALIDE_OPENCL };
std::string device_name(Device device);

struct PlanBuffer {
    std::string name;
    Type type;
    Storage storage = Storage::arena;
    int index = -1;                      ///< argument (data, scale), slot (scalar) or result of the prepare program (prepared)
    int first_step = -1, last_step = -1; ///< the first step that writes it, and the last step that uses it
    ArrayPart part = {};                 ///< the part of a tensor that it holds; may be empty for a whole tensor
    Origin origin = {};                  ///< for diagnostics: the user's tensor and its line
};

struct PlanArgument {
    std::string name;
    ArgumentRole role = ArgumentRole::input;
    int data_buffer = -1, scale_buffer = -1; ///< scale_buffer -1: plain
    int64_t initial = 0;                     ///< for state: the value of each element before the first run
};

/// One argument of a step, in call order: a buffer, seen with `type`, or the value of a symbol.
struct PlanOperand {
    bool is_symbol = false;
    int index = -1;
    Type type;
    bool strided = false; ///< the kernel reads the strides of the buffer
};

/// A matmul that a library may compute instead of the step's kernel (scalide_matmul in runtime/include/scalide/plan.h).
struct PlanMatmul {
    MatmulForm form;
    int lhs = -1, rhs = -1, result = -1;  ///< buffers
    int lhs_scales = -1, rhs_scales = -1; ///< buffers; -1: none
    ScaleLayouts scales = {};
    int factor = -1, bias = -1, addend = -1, addend_factor = -1, result_factor = -1, amax = -1; ///< buffers; -1: none
    bool fast_accumulation = false, tf32 = false;
};

enum class CollectiveKind { exchange = SCALIDE_EXCHANGE, collect = SCALIDE_COLLECT };

/// An exchange between ranks (scalide_collective in runtime/include/scalide/plan.h).
struct PlanCollective {
    CollectiveKind kind = CollectiveKind::exchange;
    int group = -1;                          ///< symbol
    std::vector<std::pair<int, int>> arrays; ///< buffers: from, to
    Location location = {};
};

struct PlanStep {
    std::string kernel; ///< name of the sub-program of the fused program; of a collective: its operator and its first result
    std::vector<PlanOperand> operands;
    std::optional<PlanMatmul> matmul = {};
    std::optional<PlanCollective> collective = {}; ///< instead of a kernel
    std::vector<Origin> writes = {};               ///< for diagnostics: what it computes; `tensor` is the name of the value at first
};

enum class BlockKind { loop = SCALIDE_BLOCK_LOOP, while_loop = SCALIDE_BLOCK_WHILE, switch_branch = SCALIDE_BLOCK_SWITCH };

/// An element of the first axis of buffer `of`, which each step of a loop reads or writes as `buffer`.
struct PlanRow {
    int buffer = -1, of = -1;
    bool is_written = false;
};

/// An array that a loop carries. A step reads buffer `before` and writes buffer `after`; if they are equal, it updates the buffer in place.
struct PlanCarry {
    int init = -1, before = -1, after = -1;
};

/// Steps that run several times, or of which only some run (scalide_block in runtime/include/scalide/plan.h, with the same members).
struct PlanBlock {
    std::string name; ///< operator and first result: "scan h"
    Location location = {};
    BlockKind kind = BlockKind::loop;
    int parent = -1; ///< block
    int first_step = 0, end_step = 0;
    std::optional<Extent> length = {};
    int condition = -1, step = -1; ///< buffers; -1: none
    bool reverse = false;
    int64_t most_steps = 0;
    int test_end = 0;
    std::vector<int> branch_ends = {};
    std::vector<PlanRow> rows = {};
    std::vector<PlanCarry> carries = {};
    std::vector<int> results = {}; ///< buffers
};

/// A tensor of which a statistics program collects numbers (scalide_collected in runtime/include/scalide/plan.h).
struct PlanStatistic {
    CollectedStatistic collected;
    std::array<int, statistic_parts> arguments; ///< by part; -1: not collected
};

/// A fused program as data: steps over buffers. The generated C source contains nothing else.
struct Plan {
    std::string name, doc, target, numerics, hash;
    Device device = Device::cpu;
    std::vector<Symbol> symbols;
    std::vector<Requirement> requirements; ///< checked by bind
    std::vector<PlanArgument> arguments;   ///< inputs and inouts in the program's order, then outputs, then what the policy adds
    std::vector<PlanBuffer> buffers;
    std::vector<PlanStep> steps;
    std::vector<PlanBlock> blocks;         ///< in the order of first_step; a block stands before the blocks in it
    std::vector<PlanStatistic> statistics; ///< not empty: the plan of a statistics program
    int scalar_count = 0;
    bool require_libraries = false; ///< bind fails if a library refuses a matmul
};

/// The call order of each kernel, by name of its sub-program.
using CallOrders = std::map<std::string, std::vector<KernelOperand>>;

/// Plans a fused program. Values become buffers. An in-place result and the final value of an inout argument share the argument's buffer.
/// Throws InternalError if the program breaks an invariant of `fuse`.
Plan make_plan(const Program &fused, const CallOrders &call_orders);

} // namespace scalide

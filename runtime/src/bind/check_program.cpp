#include "base/cpu_features.h"
#include "base/scalar.h"
#include "bind/check.h"
#include "bind/check_blocks.h"
#include "bind/check_collectives.h"
#include "bind/check_statistics.h"
#include "bind/extent.h"
#include "context/entry.h"
#include "files/safetensors_format.h"
#include <cerrno>

namespace scalide {

bool good_extent(const scalide_program &program, const scalide_extent &extent) {
    for (int32_t i = 0; i < extent.count; ++i) {
        for (int32_t symbol : extent.terms[i].symbol) {
            if (symbol >= program.symbol_count) return false;
        }
    }
    return true;
}

bool is_used_by_steps(const scalide_program &program, int32_t index) {
    if (index < 0 || index >= program.buffer_count) return false;
    const scalide_buffer &buffer = program.buffers[index];
    const bool is_argument = buffer.storage == SCALIDE_STORAGE_DATA || buffer.storage == SCALIDE_STORAGE_SCALE;
    return !is_argument || is_used_by_runs(program.arguments[buffer.index].role);
}

namespace {

Text complain(scalide_context *context, const scalide_program &program) { return start_message(context) << program.name << ": "; }

bool in_range(int32_t index, int32_t count) { return index >= 0 && index < count; }

constexpr int32_t most_view_axes = 64; // kernels may see more axes than the callers' arrays have

bool good_shape(const scalide_program &program, int32_t rank, const scalide_extent *shape, int32_t most_axes = SCALIDE_MAX_RANK) {
    if (rank < 0 || rank > most_axes) return false;
    for (int32_t axis = 0; axis < rank; ++axis) {
        if (!good_extent(program, shape[axis])) return false;
    }
    return true;
}

// An argument's memory is checked against the shape of its own buffers, so it must not contain any other buffer. A constant has no memory
// when the program runs, so no step writes it.
bool good_owner(const scalide_program &program, const scalide_buffer &buffer) {
    if (!in_range(buffer.index, program.argument_count)) return false;
    const scalide_argument &owner = program.arguments[buffer.index];
    if (!is_used_by_runs(owner.role) && buffer.first_step >= 0) return false;
    const auto own = static_cast<int32_t>(&buffer - program.buffers);
    return buffer.storage == SCALIDE_STORAGE_DATA ? owner.data_buffer == own
                                                  : owner.scale_buffer == own && buffer.dtype == SCALIDE_F32 && buffer.rank == 0;
}

bool good_lifetime(const scalide_program &program, const scalide_buffer &buffer) {
    return in_range(buffer.first_step, program.step_count) && in_range(buffer.last_step, program.step_count) &&
           buffer.first_step <= buffer.last_step;
}

// scalide_bind compares the extents, which may have symbols.
bool good_prepared(const scalide_program &program, const scalide_buffer &buffer) {
    const scalide_program *prepare = program.prepare;
    if (!prepare) return false;
    int64_t constants = 0;
    for (int32_t i = 0; i < program.argument_count; ++i) constants += program.arguments[i].role == SCALIDE_CONSTANT;
    return buffer.index >= 0 && buffer.index + constants < prepare->argument_count;
}

/// The prepare program has the constants of the program as inputs, and then only outputs.
bool good_prepare(const scalide_program &program, const scalide_program &prepare) {
    int32_t input = 0;
    for (int32_t i = 0; i < program.argument_count; ++i) {
        if (program.arguments[i].role != SCALIDE_CONSTANT) continue;
        if (input >= prepare.argument_count || prepare.arguments[input].role != SCALIDE_INPUT) return false;
        const bool is_scaled = program.arguments[i].scale_buffer >= 0;
        if (is_scaled != (prepare.arguments[input++].scale_buffer >= 0)) return false;
    }
    for (int32_t i = input; i < prepare.argument_count; ++i) {
        if (prepare.arguments[i].role != SCALIDE_OUTPUT || prepare.arguments[i].scale_buffer >= 0) return false;
    }
    return prepare.prepare == nullptr && prepare.variant_count == 0;
}

bool good_storage(const scalide_program &program, const scalide_buffer &buffer) {
    switch (buffer.storage) {
    case SCALIDE_STORAGE_DATA:
    case SCALIDE_STORAGE_SCALE: return good_owner(program, buffer);
    case SCALIDE_STORAGE_ARENA: return good_lifetime(program, buffer);
    case SCALIDE_STORAGE_SCALAR: return buffer.rank == 0 && in_range(buffer.index, program.scalar_count);
    case SCALIDE_STORAGE_PREPARED: return good_prepared(program, buffer) && buffer.first_step < 0;
    default: return false;
    }
}

bool good_buffer(const scalide_program &program, const scalide_buffer &buffer) {
    const bool has_part = in_range(buffer.part, SCALIDE_SCALE + 1);
    return has_part && scalide_dtype_size(buffer.dtype) > 0 && good_shape(program, buffer.rank, buffer.shape) &&
           good_storage(program, buffer);
}

bool good_requirement(const scalide_program &program, const scalide_requirement &requirement) {
    return requirement.rule && requirement.surplus && good_extent(program, *requirement.surplus);
}

bool is_buffer_of(const scalide_program &program, int32_t buffer, int32_t storage, int32_t argument) {
    return in_range(buffer, program.buffer_count) && program.buffers[buffer].storage == storage &&
           program.buffers[buffer].index == argument;
}

bool good_argument(const scalide_program &program, const scalide_argument &argument) {
    const auto own = static_cast<int32_t>(&argument - program.arguments);
    return in_range(argument.role, SCALIDE_CONSTANT + 1) && is_buffer_of(program, argument.data_buffer, SCALIDE_STORAGE_DATA, own) &&
           (argument.scale_buffer < 0 || is_buffer_of(program, argument.scale_buffer, SCALIDE_STORAGE_SCALE, own));
}

bool good_operand(const scalide_program &program, const scalide_operand &operand) {
    if (operand.kind != SCALIDE_OPERAND_BUFFER && operand.rank != 0) return false;
    switch (operand.kind) {
    case SCALIDE_OPERAND_SYMBOL: return in_range(operand.index, program.symbol_count);
    case SCALIDE_OPERAND_BUFFER:
        return is_used_by_steps(program, operand.index) && good_shape(program, operand.rank, operand.shape, most_view_axes);
    default: return false;
    }
}

bool good_matmul(const scalide_program &program, const scalide_matmul &matmul) {
    bool good = matmul.extents != nullptr;
    const int32_t buffers[] = {matmul.lhs, matmul.rhs, matmul.result};
    const int32_t optional[] = {matmul.factor,        matmul.bias, matmul.addend,     matmul.addend_factor,
                                matmul.result_factor, matmul.amax, matmul.lhs_scales, matmul.rhs_scales};
    const struct {
        int32_t buffer, layout;
    } scales[] = {{matmul.lhs_scales, matmul.lhs_scale_layout}, {matmul.rhs_scales, matmul.rhs_scale_layout}};
    for (int32_t buffer : buffers) good = good && is_used_by_steps(program, buffer);
    for (int32_t buffer : optional) good = good && (buffer < 0 || is_used_by_steps(program, buffer));
    for (const auto &[buffer, layout] : scales)
        good = good && in_range(layout, SCALIDE_SCALES_VEC32_UE8M0 + 1) && (buffer < 0) == (layout == SCALIDE_SCALES_NONE);
    for (int32_t i = 0; good && i < SCALIDE_MATMUL_EXTENTS; ++i) good = good_extent(program, matmul.extents[i]);
    return good;
}

// The main program checks its arguments before it takes a variant, so the variants must have the same number of arguments and symbols.
bool good_variant(const scalide_program &program, const scalide_variant &variant) {
    bool good = in_range(variant.symbol_count, SCALIDE_TERM_SYMBOLS + 1);
    for (int32_t k = 0; good && k < variant.symbol_count; ++k) good = in_range(variant.symbol[k], program.symbol_count);
    return good && (!variant.program || (variant.program->symbol_count == program.symbol_count &&
                                         variant.program->argument_count == program.argument_count && variant.program != &program));
}

bool good_step(const scalide_program &program, const scalide_step &step) {
    if (step.collective) return !step.kernel && !step.matmul && step.operand_count == 0 && good_collective(program, *step.collective);
    bool good = step.kernel && step.operand_count >= 0 && (!step.matmul || good_matmul(program, *step.matmul));
    for (int32_t i = 0; good && i < step.operand_count; ++i) good = good_operand(program, step.operands[i]);
    return good;
}

/// Returns the name of the first invalid element of a table, or nullptr if all are valid.
template<typename T>
const char *find_bad(const scalide_program &program, const T *table, int32_t count, bool (*good)(const scalide_program &, const T &)) {
    for (int32_t i = 0; i < count; ++i) {
        if (!good(program, table[i])) return table[i].name;
    }
    return nullptr;
}

const char *find_bad_table(const scalide_program &program) {
    const int32_t counts[] = {program.symbol_count, program.argument_count,    program.buffer_count,  program.step_count,
                              program.scalar_count, program.requirement_count, program.variant_count, program.block_count};
    for (int32_t count : counts) {
        if (count < 0) return "a number of entries is negative";
    }
    for (int32_t i = 0; i < program.variant_count; ++i)
        if (!good_variant(program, program.variants[i])) return "a variant";
    if (const char *name = find_bad(program, program.symbols, program.symbol_count, good_symbol)) return name;
    if (const char *name = find_bad(program, program.buffers, program.buffer_count, good_buffer)) return name;
    if (const char *name = find_bad(program, program.arguments, program.argument_count, good_argument)) return name;
    if (const char *name = find_bad(program, program.requirements, program.requirement_count, good_requirement)) return name;
    if (const char *name = find_bad(program, program.steps, program.step_count, good_step)) return name;
    return find_bad(program, program.blocks, program.block_count, good_block);
}

} // namespace

bool check_version(scalide_context *context, const scalide_program &program) {
    if (program.plan_version == SCALIDE_PLAN_VERSION) return true;
    complain(context, program) << "plan version must be " << uint64_t(SCALIDE_PLAN_VERSION) << ", got " << uint64_t(program.plan_version)
                               << ". Generate the library again with the tool of this runtime.";
    return false;
}

scalide_status check_device(scalide_context *context, const scalide_program &program) {
    const int32_t device = scalide_context_device(context);
    if (program.device == device) return SCALIDE_OK;
    complain(context, program) << "the context must be for " << scalide_device_name(program.device) << " (the program's target), got "
                               << scalide_device_name(device) << ". Create it with this device, or build the program for "
                               << scalide_device_name(device) << '.';
    return SCALIDE_WRONG_DEVICE;
}

scalide_status check_program(scalide_context *context, const scalide_program &program) {
    if (!check_version(context, program)) return SCALIDE_INVALID_PROGRAM;
    const scalide_status status = check_device(context, program);
    if (status != SCALIDE_OK) return status;
    if (const char *name = find_bad_table(program)) {
        complain(context, program) << "the plan has a wrong entry: " << name << ". Generate the library again.";
        return SCALIDE_INVALID_PROGRAM;
    }
    if (program.prepare && !good_prepare(program, *program.prepare)) {
        complain(context, program) << "the plan has a wrong prepare program. Generate the library again.";
        return SCALIDE_INVALID_PROGRAM;
    }
    const scalide_status prepare = program.prepare ? check_program(context, *program.prepare) : SCALIDE_OK;
    return prepare == SCALIDE_OK ? check_statistics(context, program) : prepare;
}

/// What to do if the system refuses tiles, by errno.
struct TileAdvice {
    int error;
    const char *words;
};
constexpr TileAdvice tile_advice[] = {
    {ENOSPC, "Give each alternative signal stack (sigaltstack) of the process at least 16384 bytes before it binds the program"},
    {EPERM, "Permit arch_prctl in the filter for system calls (seccomp)"},
    {EACCES, "Permit arch_prctl in the filter for system calls (seccomp)"},
    {EINVAL, "Use Linux 5.16 or later, on which tiles are enabled"},
    {ENOSYS, "Use Linux 5.16 or later, on which tiles are enabled"},
    {EOPNOTSUPP, "Use Linux 5.16 or later, on which tiles are enabled"},
};

void complain_about_tiles(scalide_context *context, const scalide_program &program) {
    const int error = refused_tiles();
    Text text = complain(context, program) << "the CPU has the AMX tiles of the target " << program.target
                                           << ", but the system does not permit them: ";
    print_system_error(text, error);
    for (const TileAdvice &row : tile_advice)
        if (row.error == error) text << row.words << ". ";
    text << "To run without tiles, build one library for several CPUs: scalide build --target x86-64-v4,x86-64-v4+amx (CMake: TARGETS).";
}

scalide_status check_cpu(scalide_context *context, const scalide_program &program) {
    size_t length;
    const char *feature = missing_cpu_feature(program.target, &length);
    if (feature && is_refused(feature, length)) {
        complain_about_tiles(context, program);
        return SCALIDE_UNSUPPORTED_CPU;
    }
    if (feature) {
        Text text = complain(context, program) << "the CPU must have all features of the target " << program.target << ", but it has no ";
        for (size_t i = 0; i < length; ++i) text << feature[i];
        text << ". Build the program for this CPU, or one library for several CPUs: scalide build --target x86-64-v2,x86-64-v3 (CMake: "
                "TARGETS).";
        return SCALIDE_UNSUPPORTED_CPU;
    }
    return SCALIDE_OK;
}

} // namespace scalide

scalide_status scalide_check_signature(scalide_context *context, const scalide_program *program, uint64_t signature) {
    using namespace scalide;
    const Entry entry(context, "scalide_check_signature", {{"program", program}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    if (!check_version(context, *program)) return report(context, SCALIDE_INVALID_PROGRAM);
    if (program->signature == signature) return SCALIDE_OK;
    Text text = complain(context, *program)
                << "the application was compiled with a header that has other arguments than the library. Compile it again with the header "
                   "of this library, and check that no other library has a program of this name. The library has";
    for (int32_t i = 0; i < program->argument_count; ++i) {
        const scalide_argument &argument = program->arguments[i];
        const scalide_buffer &buffer = program->buffers[argument.data_buffer];
        text << (i == 0 ? " " : ", ") << argument.name << ": " << scalide_dtype_name(buffer.dtype);
        print_shape(text, *program, buffer);
    }
    text << '.';
    return report(context, SCALIDE_INVALID_PROGRAM);
}

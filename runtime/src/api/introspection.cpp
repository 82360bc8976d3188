// Functions that describe programs and bindings.
#include "base/float_environment.h"
#include "base/scalar.h"
#include "bind/binding.h"
#include "bind/bound_matmul.h"
#include "bind/check.h"
#include "bind/extent.h"
#include "bind/symbol_table.h"
#include "bind/views.h"
#include "context/entry.h"
#include <algorithm>
#include <cstring>

using namespace scalide;

namespace {

/// Returns the index of the table entry with this name, or -1.
template<typename Row>
int32_t find(const Row *table, int32_t count, const char *name) {
    for (int32_t i = 0; i < count; ++i) {
        if (std::strcmp(table[i].name, name) == 0) return i;
    }
    return -1;
}

/// Evaluates an extent without symbols. Returns false if it has any.
bool evaluate_fixed(const scalide_extent &extent, int64_t *value) {
    for (int32_t i = 0; i < extent.count; ++i) {
        for (int32_t symbol : extent.terms[i].symbol)
            if (symbol >= 0) return false;
    }
    return evaluate(extent, nullptr, value);
}

/// Writes the values of the caller to the symbols that are from arguments, and computes the others.
scalide_status take_values(scalide_context *context, const scalide_program &program, const int64_t *values, size_t count,
                           int32_t *symbols) {
    if (count != scalide_symbol_count(&program)) {
        start_message(context) << program.name << ": the number of values must be the number of symbols, "
                               << uint64_t(scalide_symbol_count(&program)) << ", got " << uint64_t(count)
                               << ". scalide_describe_symbol lists the symbols.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    for (int32_t i = 0; i < program.symbol_count; ++i) {
        const scalide_symbol &symbol = program.symbols[i];
        if (!is_from_arguments(symbol)) continue;
        const int64_t value = *values++;
        symbols[i] = static_cast<int32_t>(value);
        if (allows(symbol, value)) continue;
        Text text = start_message(context) << program.name << ": ";
        print_allowed(text, symbol) << ", got " << value << '.';
        return SCALIDE_INVALID_ARGUMENT;
    }
    return solve_group_symbols(context, program, symbols);
}

/// Writes a whole number to all elements of an array in the context's memory.
scalide_status fill(scalide_context &context, const scalide_array &array, int64_t number) {
    const size_t size = scalide_dtype_size(array.dtype);
    size_t bytes = size;
    for (int32_t axis = 0; axis < array.rank; ++axis) bytes *= static_cast<size_t>(array.extent[axis]);
    auto *elements = static_cast<char *>(allocate(context.allocator, bytes));
    if (!elements) {
        start_message(&context) << "out of memory: cannot allocate the initial state of the policy.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < bytes; i += size) store_scalar(array.dtype, number, elements + i);
    const scalide_status status = scalide_copy_in(&context, array.data, elements, bytes);
    release(context.allocator, elements);
    return status;
}

} // namespace

const char *scalide_program_name(const scalide_program *program) { return program ? program->name : nullptr; }

const char *scalide_program_target(const scalide_program *program) { return program ? program->target : nullptr; }

int32_t scalide_program_device(const scalide_program *program) { return program ? program->device : -1; }

const char *scalide_program_numerics(const scalide_program *program) { return program ? program->numerics : nullptr; }

const char *scalide_program_hash(const scalide_program *program) { return program ? program->hash : nullptr; }

size_t scalide_argument_count(const scalide_program *program) { return program ? static_cast<size_t>(program->argument_count) : 0; }

scalide_status scalide_describe_argument(const scalide_program *program, size_t index, scalide_argument_info *info) {
    if (!info || index >= scalide_argument_count(program)) return SCALIDE_INVALID_ARGUMENT;
    const scalide_argument &argument = program->arguments[index];
    const scalide_buffer &buffer = program->buffers[argument.data_buffer];
    *info = {argument.name, buffer.dtype, buffer.rank, argument.role, argument.scale_buffer >= 0, argument.initial};
    return SCALIDE_OK;
}

scalide_status scalide_describe_extent(const scalide_program *program, size_t index, int32_t axis, scalide_extent_info *info) {
    if (!info || index >= scalide_argument_count(program)) return SCALIDE_INVALID_ARGUMENT;
    const scalide_buffer &buffer = program->buffers[program->arguments[index].data_buffer];
    if (axis < 0 || axis >= buffer.rank) return SCALIDE_INVALID_ARGUMENT;
    const scalide_extent &extent = buffer.shape[axis];
    if (!evaluate_fixed(extent, &info->value)) info->value = -1;
    Text text(info->text, sizeof(info->text));
    print(text, *program, extent);
    return SCALIDE_OK;
}

size_t scalide_symbol_count(const scalide_program *program) {
    return program ? static_cast<size_t>(std::count_if(program->symbols, program->symbols + program->symbol_count, is_from_arguments)) : 0;
}

scalide_status scalide_describe_symbol(const scalide_program *program, size_t index, scalide_symbol_info *info) {
    if (!info || index >= scalide_symbol_count(program)) return SCALIDE_INVALID_ARGUMENT;
    const scalide_symbol *place = program->symbols;
    for (size_t before = index; before > 0 || !is_from_arguments(*place); ++place) before -= is_from_arguments(*place);
    const scalide_symbol &symbol = *place;
    *info = {symbol.name, symbol.minimum, symbol.maximum, symbol.multiple};
    return SCALIDE_OK;
}

size_t scalide_step_count(const scalide_binding *binding) { return binding ? static_cast<size_t>(binding->program->step_count) : 0; }

scalide_status scalide_describe_step(const scalide_binding *binding, size_t index, scalide_step_info *info) {
    const Entry entry(context_of(binding), "scalide_describe_step", {{"info", info}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    if (index >= scalide_step_count(binding)) {
        start_message(binding->context) << binding->program->name << ": the step index must be less than " << binding->program->step_count
                                        << ", got " << uint64_t(index) << '.';
        return SCALIDE_INVALID_ARGUMENT;
    }
    const auto step = static_cast<int32_t>(index);
    const BoundMatmul *matmul = find_matmul(*binding, step);
    const bool is_call = matmul && matmul->form != MatmulForm::kernel, is_asked = matmul && matmul->form == MatmulForm::asked;
    *info = {binding->program->steps[step].name, is_call ? "cublaslt" : nullptr, matmul && !is_asked ? matmul->reason : nullptr,
             matmul && matmul->notice[0] ? matmul->notice : nullptr};
    return SCALIDE_OK;
}

int32_t scalide_find_argument(const scalide_program *program, const char *name) {
    return program && name ? find(program->arguments, program->argument_count, name) : -1;
}

scalide_status scalide_shape_outputs(scalide_context *context, const scalide_program *program, scalide_array *arrays, size_t count) {
    const Entry entry(context, "scalide_shape_outputs", {{"program", program}, {"arrays", arrays || count == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    scalide_status status = check_program(context, *program);
    if (status != SCALIDE_OK) return status;
    const Call call = {context, *program, arrays};
    if (!check_count(call, count)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; i < program->argument_count; ++i) {
        if (program->arguments[i].role != SCALIDE_OUTPUT && !check_type(call, i)) return SCALIDE_INVALID_ARGUMENT;
    }
    SymbolTable table(context);
    status = table.reserve(*program);
    if (status != SCALIDE_OK) return status;
    int32_t *symbols = table.values();
    status = solve_symbols(call, symbols);
    if (status == SCALIDE_OK && !check_requirements(call, symbols)) status = SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; status == SCALIDE_OK && i < program->argument_count; ++i) {
        if (program->arguments[i].role != SCALIDE_OUTPUT) {
            if (!check_shape(call, i, symbols)) status = SCALIDE_INVALID_ARGUMENT;
            continue;
        }
        const scalide_buffer &buffer = program->buffers[program->arguments[i].data_buffer];
        float *const scale = arrays[i].scale;
        arrays[i] = describe(buffer, symbols, arrays[i].data);
        arrays[i].scale = scale;
    }
    return status;
}

scalide_status scalide_shape_arguments(scalide_context *context, const scalide_program *program, const int64_t *values, size_t value_count,
                                       scalide_array *arrays, size_t count) {
    const Entry entry(context, "scalide_shape_arguments",
                      {{"program", program}, {"values", values || value_count == 0}, {"arrays", arrays || count == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    scalide_status status = check_program(context, *program);
    if (status != SCALIDE_OK) return status;
    if (!check_count({context, *program, arrays}, count)) return SCALIDE_INVALID_ARGUMENT;
    SymbolTable table(context);
    status = table.reserve(*program);
    if (status != SCALIDE_OK) return status;
    int32_t *symbols = table.values();
    status = take_values(context, *program, values, value_count, symbols);
    for (int32_t i = 0; status == SCALIDE_OK && i < program->argument_count; ++i) {
        const scalide_buffer &buffer = program->buffers[program->arguments[i].data_buffer];
        int64_t elements;
        if (count_elements(buffer.shape, buffer.rank, symbols, &elements)) {
            float *const scale = arrays[i].scale;
            arrays[i] = describe(buffer, symbols, arrays[i].data);
            arrays[i].scale = scale;
        } else {
            status = SCALIDE_INVALID_ARGUMENT;
            Text text = start_message(context);
            text << program->name << '.' << program->arguments[i].name << ": this array would have more than " << SCALIDE_MAX_ELEMENTS
                 << " elements with";
            print_values(text, *program, symbols) << ". Choose smaller values.";
        }
    }
    return status;
}

scalide_status scalide_initial_state(scalide_context *context, const scalide_program *program, scalide_array *arrays, size_t count) {
    const Entry entry(context, "scalide_initial_state", {{"program", program}, {"arrays", arrays || count == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    scalide_status status = check_program(context, *program);
    if (status != SCALIDE_OK) return status;
    if (!check_count({context, *program, arrays}, count)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; status == SCALIDE_OK && i < program->argument_count; ++i) {
        const scalide_argument &argument = program->arguments[i];
        if (argument.role != SCALIDE_STATE) continue;
        arrays[i] = describe(program->buffers[argument.data_buffer], nullptr, arrays[i].data);
        if (!has_allowed_size(arrays[i])) {
            complain({context, *program, arrays}, i)
                << "this array would have more than " << SCALIDE_MAX_ELEMENTS << " elements. Generate the library again.";
            return SCALIDE_INVALID_PROGRAM;
        }
        if (arrays[i].data) status = fill(*context, arrays[i], argument.initial);
    }
    return status;
}

const scalide_program *scalide_binding_program(const scalide_binding *binding) { return binding ? binding->program : nullptr; }

size_t scalide_arena_bytes(const scalide_binding *binding) { return binding ? binding->arena_bytes : 0; }

size_t scalide_binding_copied_bytes(const scalide_binding *binding, size_t index) {
    if (!binding || index >= static_cast<size_t>(binding->program->argument_count)) return 0;
    return copied_bytes(*binding, static_cast<int32_t>(index));
}

int64_t scalide_symbol_value(const scalide_binding *binding, const char *name) {
    if (!binding || !name) return -1;
    const int32_t index = find(binding->program->symbols, binding->program->symbol_count, name);
    return index < 0 ? -1 : binding->symbols[index];
}

scalide_status scalide_read_scalar(const scalide_binding *binding, const char *buffer_name, double *value) {
    const Entry entry(context_of(binding), "scalide_read_scalar", {{"buffer_name", buffer_name}, {"value", value}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    const scalide_program &program = *binding->program;
    const int32_t index = find(program.buffers, program.buffer_count, buffer_name);
    const int32_t dtype = index < 0 ? SCALIDE_I64 : program.buffers[index].dtype; // a double does not hold every i64
    if (dtype == SCALIDE_I64 || program.buffers[index].rank != 0 || !is_scalar_dtype(dtype)) {
        start_message(binding->context)
            << "program '" << program.name << "' has no scalar buffer '" << buffer_name
            << "' (f64, f32, bool or an integer of at most 32 bits). The manifest of the build (JSON) lists the buffers.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    uint64_t number = 0;
    const size_t bytes = scalide_dtype_size(program.buffers[index].dtype);
    const scalide_status status = scalide_copy_out(binding->context, &number, binding->memory[index], bytes);
    if (status == SCALIDE_OK) *value = load_scalar(program.buffers[index].dtype, &number);
    return status;
}

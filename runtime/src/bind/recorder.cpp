#include "bind/recorder.h"
#include "bind/views.h"
#include "context/copy.h"
#include "devices/convert_kernels.h"
#include "devices/copy_kernels.h"
#include <algorithm>
#include <cstring>

namespace scalide {

namespace {

// Device memory is read in transactions of up to 128 bytes.
constexpr uint64_t device_alignment = 128;

uint64_t bytes_of(const HalideBuffer &buffer) {
    uint64_t last = 0;
    for (int32_t i = 0; i < buffer.dimensions; ++i) {
        if (buffer.dim[i].extent <= 0) return 0;
        last += static_cast<uint64_t>(buffer.dim[i].extent - 1) * static_cast<uint64_t>(buffer.dim[i].stride);
    }
    return (last + 1) * (buffer.type.bits / 8);
}

int32_t count_arguments(const HalideLaunch &launch) {
    int32_t count = 0;
    while (launch.arguments[count]) ++count;
    return count;
}

bool is_empty(const HalideLaunch &launch) {
    const auto at_most_0 = [](int32_t extent) { return extent <= 0; };
    return std::any_of(launch.blocks, launch.blocks + 3, at_most_0) || std::any_of(launch.threads, launch.threads + 3, at_most_0);
}

LaunchArgument argument_of(const HalideLaunch &launch, int32_t index) {
    if (launch.is_buffer[index]) return {static_cast<const HalideBuffer *>(launch.arguments[index])->device, sizeof(uint64_t), true};
    LaunchArgument argument = {0, static_cast<uint32_t>(std::min(launch.sizes[index], sizeof(uint64_t))), false};
    std::memcpy(&argument.value, launch.arguments[index], argument.bytes);
    return argument;
}

/// Clears the table entries, because other launches replace them or the binding ends.
void forget_rows(scalide_binding &binding) {
    Device &device = *binding.context->device;
    for (int32_t i = 0; i < binding.launches.count; ++i) {
        Launch &row = binding.launches.rows[i];
        if (row.function) device.driver->forget(device, row);
        if (row.module) --row.module->users;
        row = {};
    }
}

void unload_unused(scalide_context &context) {
    for (Module **link = &context.modules; *link;) {
        Module *module = *link;
        if (module->users > 0) {
            link = &module->next;
            continue;
        }
        *link = module->next;
        context.device->driver->unload_module(*context.device, module->handle);
        release(context.allocator, module);
    }
}

LaunchArgument address_argument(const void *memory) { return {reinterpret_cast<uintptr_t>(memory), sizeof(uint64_t), true}; }
LaunchArgument number_argument(uint32_t number) { return {number, sizeof(uint32_t), false}; }
LaunchArgument stride_argument(int64_t stride) { return {static_cast<uint64_t>(stride), sizeof(int64_t), false}; }

/// The most arguments of a kernel of the runtime itself: those of the copy (devices/copy_kernels.h).
constexpr int32_t most_own_arguments = 4 + 3 * SCALIDE_MAX_RANK;

constexpr int failed = -1; // host code without asserts ignores this value; the context keeps the status

} // namespace

bool Recorder::is_within_limits(const HalideLaunch &launch) {
    const DeviceLimits &limits = context_.device->limits;
    const struct {
        const char *what;
        int64_t value, limit;
    } rows[] = {
        {"blocks along x", launch.blocks[0], limits.blocks[0]},
        {"blocks along y", launch.blocks[1], limits.blocks[1]},
        {"blocks along z", launch.blocks[2], limits.blocks[2]},
        {"threads in a block", int64_t(launch.threads[0]) * launch.threads[1] * launch.threads[2], limits.threads},
        {"bytes of shared memory in a block", launch.shared_bytes, limits.shared_bytes},
    };
    for (const auto &row : rows) {
        if (row.value <= row.limit) continue;
        char words[160];
        Text(words, sizeof(words)) << "a launch must have at most " << row.limit << ' ' << row.what << " on this device, got " << row.value
                                   << ". Bind smaller arrays.";
        fail_run(&context_, SCALIDE_DEVICE_FAILED, words);
        return false;
    }
    return true;
}

void Recorder::fail(scalide_status status) {
    char words[sizeof(context_.failure)];
    Text(words, sizeof(words)) << context_.device->failure << ". " << way_out(status);
    fail_run(&context_, status, words);
}

Module *Recorder::find_module(const char *source) {
    for (Module *module = context_.modules; module; module = module->next) {
        if (module->source == source) return module;
    }
    auto *module = static_cast<Module *>(scalide::allocate(context_.allocator, sizeof(Module)));
    void *handle = nullptr;
    const scalide_status status = module ? context_.device->driver->load_module(*context_.device, source, &handle) : SCALIDE_OUT_OF_MEMORY;
    if (status != SCALIDE_OK) {
        module ? fail(status) : fail_run(&context_, status, "out of memory: cannot allocate the module list.");
        release(context_.allocator, module);
        return nullptr;
    }
    *module = {context_.modules, source, handle, 0};
    return context_.modules = module;
}

bool Recorder::write(const HalideLaunch &launch, Module *module, int32_t argument_count) {
    Launches &tables = binding_.launches;
    if (launches_ >= tables.count || arguments_ + argument_count > tables.argument_count) {
        fail_run(&context_, SCALIDE_INVALID_PROGRAM, "the kernel launches more often than in its first run. Generate the library again.");
        return false;
    }
    Launch &row = tables.rows[launches_];
    if (!row.module) ++module->users;
    row.module = module;
    row.name = launch.name;
    for (int i = 0; i < 3; ++i) {
        row.blocks[i] = static_cast<uint32_t>(launch.blocks[i]);
        row.threads[i] = static_cast<uint32_t>(launch.threads[i]);
    }
    row.shared_bytes = static_cast<uint32_t>(launch.shared_bytes);
    row.argument_count = static_cast<uint32_t>(argument_count);
    row.arguments = tables.arguments + arguments_;
    row.values = tables.values + arguments_;
    for (int32_t i = 0; i < argument_count; ++i) {
        row.arguments[i] = argument_of(launch, i);
        row.values[i] = &row.arguments[i].value;
    }
    const scalide_status status = context_.device->driver->prepare(*context_.device, row);
    if (status != SCALIDE_OK) fail(status);
    return status == SCALIDE_OK;
}

int Recorder::launch(const HalideLaunch &launch) {
    if (has_failed()) return failed;
    if (is_empty(launch)) return 0;
    if (!is_within_limits(launch)) return failed;
    Module *module = find_module(static_cast<const char *>(launch.state));
    if (!module) return failed;
    const int32_t argument_count = count_arguments(launch);
    if (!is_measuring_ && !write(launch, module, argument_count)) return failed;
    ++launches_;
    arguments_ += argument_count;
    return 0;
}

int Recorder::allocate(HalideBuffer &buffer) {
    const uint64_t place = round_up(scratch_, device_alignment), bytes = bytes_of(buffer);
    scratch_ = place + bytes;
    most_scratch_ = std::max(most_scratch_, scratch_);
    buffer.device = is_measuring_ ? device_alignment : reinterpret_cast<uintptr_t>(binding_.launches.scratch) + place;
    return 0;
}

void Recorder::launch_own(const char *source, const char *name, uint32_t threads, uint32_t in_block, const LaunchArgument *own,
                          int32_t count) {
    HalideBuffer buffers[most_own_arguments] = {};
    size_t sizes[most_own_arguments + 1] = {};
    void *arguments[most_own_arguments + 1] = {};
    int8_t is_buffer[most_own_arguments + 1] = {};
    uint64_t values[most_own_arguments] = {};
    for (int32_t i = 0; i < count; ++i) {
        buffers[i].device = values[i] = own[i].value;
        sizes[i] = own[i].bytes;
        arguments[i] = own[i].is_address ? static_cast<void *>(&buffers[i]) : &values[i];
        is_buffer[i] = own[i].is_address;
    }
    const auto blocks = static_cast<int32_t>((threads + in_block - 1) / in_block);
    launch({const_cast<char *>(source), name, {blocks, 1, 1}, {static_cast<int32_t>(in_block), 1, 1}, 0, sizes, arguments, is_buffer});
}

/// Launches the kernel that copies an array with strides.
void Recorder::copy(const scalide_array &from, const scalide_array &to) {
    constexpr uint32_t threads = 256;
    const StridedCopy copy(from, to);
    const auto elements = static_cast<uint32_t>(copy.elements());
    LaunchArgument arguments[most_own_arguments] = {address_argument(copy.from), address_argument(copy.to), number_argument(elements),
                                                    number_argument(static_cast<uint32_t>(copy.rank))};
    LaunchArgument *extents = arguments + 4, *from_strides = extents + SCALIDE_MAX_RANK, *to_strides = from_strides + SCALIDE_MAX_RANK;
    for (int32_t axis = 0; axis < SCALIDE_MAX_RANK; ++axis) {
        const bool is_axis = axis < copy.rank;
        extents[axis] = number_argument(is_axis ? static_cast<uint32_t>(copy.extent[axis]) : 1);
        from_strides[axis] = stride_argument(is_axis ? copy.from_stride[axis] : 0);
        to_strides[axis] = stride_argument(is_axis ? copy.to_stride[axis] : 0);
    }
    launch_own(source_of_copy_kernels(context_.device->driver->kind), copy_kernel_for(copy.element_bytes), elements,
               std::min<uint32_t>(threads, context_.device->limits.threads), arguments, most_own_arguments);
}

void Recorder::call(int32_t step, void **arguments) {
    Worker &worker = context_.workers[0];
    jmp_buf here;
    worker.escape = &here;
    scratch_ = 0;
    if (_setjmp(here) == 0) {
        binding_.program->steps[step].kernel(arguments);
    } else {
        worker.scratch.rewind(nullptr);
    }
    worker.escape = nullptr;
}

/// Counts the kernel and the conversions even if cuBLASLt may compute the step as asked, because cuBLASLt may refuse later.
void Recorder::run_step(int32_t step, void **arguments) {
    if (binding_.program->steps[step].collective) return; // it launches nothing
    const BoundMatmul *matmul = find_matmul(binding_, step);
    const bool is_library_asked = matmul && matmul->form != MatmulForm::kernel;
    if (is_library_asked && !is_measuring_) return write_matmul(*matmul);
    if (is_library_asked) {
        launches_ += 1 + most_conversion_launches;
        arguments_ += most_conversion_arguments;
        most_scratch_ = std::max(most_scratch_, context_.device->matmul_workspace);
    }
    call(step, arguments);
}

void Recorder::convert(const MatmulConversion &conversion) {
    constexpr uint32_t most_threads = 1 << 20, in_block = 256;
    const LaunchArgument arguments[] = {address_argument(conversion.from), address_argument(conversion.to),
                                        number_argument(conversion.count), address_argument(conversion.factor),
                                        address_argument(conversion.amax)};
    launch_own(source_of_convert_kernels(), conversion.kernel, std::min(most_threads, conversion.count), in_block, arguments, 5);
}

void Recorder::clear(void *number) {
    const LaunchArgument argument = address_argument(number);
    launch_own(source_of_convert_kernels(), clear_kernel, 1, 1, &argument, 1);
}

void Recorder::write_matmul(const BoundMatmul &matmul) {
    const bool is_widened = matmul.form != MatmulForm::asked;
    const WidenedMatmul &widened = matmul.widened;
    for (int32_t i = 0; is_widened && i < widened.before_count; ++i) convert(widened.before[i]);
    write_call(matmul);
    if (!is_widened || !widened.after.kernel) return;
    if (widened.after.amax) clear(widened.after.amax);
    convert(widened.after);
}

void Recorder::write_call(const BoundMatmul &matmul) {
    if (has_failed()) return;
    Launch &row = binding_.launches.rows[launches_++];
    row.name = binding_.program->steps[matmul.step].name;
    row.matmul = matmul.call;
}

scalide_status Recorder::run_steps() {
    const scalide_program &program = *binding_.program;
    Launches &tables = binding_.launches;
    launches_ = arguments_ = 0;
    int32_t step = 0;
    context_.recorder = this;
    const auto copy_array = [this](const scalide_array &from, const scalide_array &to) { copy(from, to); };
    for_each_copy_in(binding_, copy_array);
    tables.copies_in = launches_;
    tables.copy_arguments = arguments_;
    for (; step < program.step_count && !has_failed(); ++step) {
        run_step(step, binding_.arguments + binding_.layout->steps[step].argument);
        if (is_measuring_) continue;
        tables.ends[step] = launches_;
        tables.argument_ends[step] = arguments_;
    }
    for_each_copy_out(binding_, copy_array);
    context_.recorder = nullptr;
    const auto status = static_cast<scalide_status>(context_.run_status.exchange(SCALIDE_OK));
    if (status != SCALIDE_OK)
        start_message(&context_) << program.name << '.' << (step > 0 ? program.steps[step - 1].name : "copy") << ": " << context_.failure;
    return status;
}

void Recorder::record_again(int32_t step) {
    const Launches &tables = binding_.launches;
    const scalide_status pointed = point_matmul_again(binding_, step);
    if (pointed != SCALIDE_OK) return fail(pointed);
    launches_ = step > 0 ? tables.ends[step - 1] : tables.copies_in;
    arguments_ = step > 0 ? tables.argument_ends[step - 1] : tables.copy_arguments;
    context_.recorder = this;
    run_step(step, binding_.arguments + binding_.layout->steps[step].argument);
    context_.recorder = nullptr;
    if (launches_ == tables.ends[step] && arguments_ == tables.argument_ends[step]) return;
    fail_run(&context_, SCALIDE_INVALID_PROGRAM, "the kernel launches more often than in its first run. Generate the library again.");
}

scalide_status Recorder::measure() {
    is_measuring_ = true;
    const scalide_status chosen = choose_matmuls(binding_);
    if (chosen != SCALIDE_OK) return chosen;
    const scalide_status status = run_steps();
    if (status != SCALIDE_OK) return status;
    Launches &tables = binding_.launches;
    for (int pass = 0; pass < 2; ++pass) {
        Carver carver(tables.tables);
        tables.rows = carver.take<Launch>(static_cast<uint64_t>(launches_));
        tables.ends = carver.take<int32_t>(static_cast<uint64_t>(binding_.program->step_count));
        tables.argument_ends = carver.take<int32_t>(static_cast<uint64_t>(binding_.program->step_count));
        tables.arguments = carver.take<LaunchArgument>(static_cast<uint64_t>(arguments_));
        tables.values = carver.take<void *>(static_cast<uint64_t>(arguments_));
        if (pass == 1) break;
        tables.tables = scalide::allocate(context_.allocator, carver.bytes());
        if (!tables.tables) {
            start_message(&context_) << binding_.program->name << ": out of memory: cannot allocate the table of launches.";
            return SCALIDE_OUT_OF_MEMORY;
        }
        std::memset(tables.tables, 0, carver.bytes());
    }
    tables.count = launches_;
    tables.argument_count = arguments_;
    tables.scratch_bytes = most_scratch_;
    return SCALIDE_OK;
}

scalide_status Recorder::record() {
    is_measuring_ = false;
    bool changed = false;
    const scalide_status pointed = point_matmuls(binding_, &changed);
    if (pointed != SCALIDE_OK) {
        start_message(&context_) << binding_.program->name << ": " << context_.device->failure << ". " << way_out(pointed);
        return pointed;
    }
    if (changed) forget_rows(binding_);
    const scalide_status status = run_steps();
    binding_.launches.used = launches_;
    return status;
}

void release_launches(scalide_binding &binding) {
    scalide_context &context = *binding.context;
    Launches &tables = binding.launches;
    if (tables.graph) context.device->driver->release_graph(*context.device, tables.graph);
    forget_rows(binding);
    release_matmuls(binding);
    unload_unused(context);
    release(context.allocator, tables.tables);
    tables = {};
}

} // namespace scalide

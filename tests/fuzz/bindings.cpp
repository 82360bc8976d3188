// The C API called in any order with any arguments but handles that are none: each call gives a status, and words when it is not
// SCALIDE_OK.
#include "fuzz/choices.h"
#include "fuzz/context.h"
#include "fuzz/target.h"
#include "runtime/sample_program.h"
#include <array>
#include <cstring>

namespace {

using namespace scalide;

constexpr size_t argument_count = 4;
// What a descriptor may point to: more than any array that the sample program takes.
alignas(64) char memory[argument_count + 1][1 << 15];
float scales[2];

void look_at(void *, const scalide_traced *buffer, const scalide_array *array) {
    expect(buffer->name[0] != 0 && buffer->tensor[0] != 0 && array->data, "a traced buffer has a name and memory");
    static_cast<void>(*static_cast<volatile char *>(array->data));
}

/// One sequence of calls on a context and its bindings.
class Session {
public:
    explicit Session(Choices &choices) : choices_(choices) { fit_arrays(); }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    ~Session() {
        for (scalide_binding *binding : bindings_) scalide_binding_destroy(binding);
    }

    void call() { (this->*calls[choices_.below(calls.size())])(); }

private:
    void take(scalide_status status) {
        expect(status >= SCALIDE_OK && status < SCALIDE_STATUS_COUNT, "a status is one of those documented");
        expect(scalide_status_string(status)[0] != 0, "a status has words");
    }
    void take_bound(scalide_status status) {
        take(status);
        expect(status == SCALIDE_OK || scalide_message(context_)[0] != 0, "a refusal has words");
    }
    scalide_binding *&binding() { return bindings_[choices_.below(bindings_.size())]; }
    const scalide_array *arrays() { return choices_.below(16) == 0 ? nullptr : arrays_.data(); }
    size_t count() { return choices_.below(8) == 0 ? size_t(choices_.number()) : arrays_.size(); }
    void *address() {
        if (choices_.below(8) == 0) return nullptr;
        constexpr std::array<size_t, 4> offsets = {0, 64, 4, 1};
        char *pool = memory[choices_.below(std::size(memory))];
        return pool + offsets[choices_.below(offsets.size())];
    }

    void fit_arrays() {
        const int64_t rows = 2 * choices_.below(10), extents[] = {rows, 4};
        arrays_ = {scalide_dense_array(memory[0], nullptr, SCALIDE_F32, 2, extents),
                   scalide_dense_array(memory[1], &scales[0], SCALIDE_F32, 1, &extents[1]),
                   scalide_dense_array(memory[2], nullptr, SCALIDE_F32, 1, extents),
                   scalide_dense_array(memory[3], nullptr, SCALIDE_F32, 0, nullptr)};
    }
    void spoil_array() {
        scalide_array &array = arrays_[choices_.below(arrays_.size())];
        const size_t axis = choices_.below(SCALIDE_MAX_RANK);
        switch (choices_.below(7)) {
        case 0: array.data = address(); break;
        case 1: array.scale = choices_.coin() ? nullptr : &scales[choices_.below(2)]; break;
        case 2: array.dtype = static_cast<int32_t>(choices_.number()); break;
        case 3: array.rank = static_cast<int32_t>(choices_.number()); break;
        case 4: array.extent[axis] = choices_.number(); break;
        case 5: array.stride[axis] = choices_.number(); break;
        default: array.scale = reinterpret_cast<float *>(address());
        }
    }
    void describe_array() {
        const int64_t extents[] = {choices_.number(), choices_.number(), 0, 0, 0, 0, 0, 0};
        arrays_[choices_.below(arrays_.size())] = scalide_dense_array(address(), nullptr, static_cast<int32_t>(choices_.number()),
                                                                      static_cast<int32_t>(choices_.number()), extents);
    }

    void bind() {
        scalide_binding *&place = binding();
        scalide_binding_destroy(place);
        place = nullptr;
        const scalide_array *arrays = this->arrays();
        const size_t count = this->count();
        const scalide_program *program = choices_.below(32) == 0 ? nullptr : sample_program();
        const scalide_status status = scalide_bind(context_, program, arrays, count, choices_.below(32) == 0 ? nullptr : &place);
        if (program && arrays && status != SCALIDE_INVALID_ARGUMENT) take_bound(status);
        expect((status == SCALIDE_OK) == (place != nullptr), "there is a binding when the status is SCALIDE_OK");
        take(scalide_bind(nullptr, program, arrays, count, &place) == SCALIDE_INVALID_ARGUMENT ? SCALIDE_OK : SCALIDE_STATUS_COUNT);
    }
    void bind_like() {
        scalide_binding *like = binding(), *&place = binding();
        if (like == place) return;
        scalide_binding_destroy(place);
        place = nullptr;
        const scalide_array *arrays = this->arrays();
        const scalide_status status = scalide_bind_like(context_, like, arrays, arrays ? count() : 0, &place);
        take_bound(status);
        expect((status == SCALIDE_OK) == (place != nullptr), "there is a further binding when the status is SCALIDE_OK");
    }
    void set_arena() {
        scalide_binding *changed = binding();
        char *pool = memory[choices_.below(std::size(memory))];
        const size_t offset = choices_.below(3) * 32, bytes = choices_.coin() ? size_t(choices_.number()) : sizeof(memory[0]);
        if (bytes > sizeof(memory[0]) - offset) return take(scalide_set_arena(changed, nullptr, bytes));
        const scalide_status status = scalide_set_arena(changed, pool + offset, bytes);
        if (changed) take_bound(status);
    }
    void set_argument() {
        const size_t index = choices_.below(4) == 0 ? size_t(choices_.number()) : choices_.below(argument_count);
        const scalide_array *array = choices_.below(16) == 0 ? nullptr : &arrays_[choices_.below(argument_count)];
        take(scalide_set_argument(binding(), index, array));
    }
    void set_arguments() {
        const scalide_array *arrays = this->arrays();
        take(scalide_set_arguments(binding(), arrays, arrays ? count() : 0));
    }
    void shape_outputs() { take(scalide_shape_outputs(context_, sample_program(), arrays_.data(), count())); }

    void run() { take(scalide_run(binding())); }
    void run_traced() { take(scalide_run_traced(binding(), choices_.coin() ? nullptr : look_at, nullptr)); }
    void run_checked() {
        scalide_non_finite first;
        take(scalide_run_checked(binding(), choices_.below(16) == 0 ? nullptr : &first));
    }
    void capture() { take(scalide_capture(binding())); }
    void destroy() {
        scalide_binding *&place = binding();
        scalide_binding_destroy(place);
        place = nullptr;
        scalide_binding_destroy(nullptr);
    }

    void ask_binding() {
        constexpr std::array<const char *, 6> names = {"mean", "total", "w.scale", "b", "", "\xff none of these"};
        scalide_binding *asked = binding();
        scalide_step_info step;
        const size_t index = size_t(choices_.number());
        take(scalide_describe_step(asked, index, choices_.coin() ? &step : nullptr));
        if (!asked) return;
        const char *name = names[choices_.below(names.size())];
        double value;
        take_bound(scalide_read_scalar(asked, name, &value));
        expect(scalide_symbol_value(asked, name) >= -1, "a symbol has a value, or -1");
        expect(scalide_arena_bytes(asked) < 1 << 20, "the arena of the sample program is small");
    }
    void ask_program() {
        const size_t index = size_t(choices_.number());
        scalide_argument_info info;
        take(scalide_describe_argument(sample_program(), index, &info));
        expect(scalide_find_argument(sample_program(), index % 2 ? "w" : "none") == (index % 2 ? 1 : -1), "arguments have names");
        const auto number = static_cast<int32_t>(index);
        expect(scalide_dtype_name(number)[0] && scalide_device_name(number)[0] && scalide_dtype_size(number) <= 8, "any number has a name");
        expect(scalide_status_string(static_cast<scalide_status>(index % 16))[0], "a status has words");
    }

    void allocate() {
        const auto bytes = static_cast<size_t>(choices_.number());
        void *allocated = nullptr;
        take(scalide_allocate(context_, bytes, &allocated));
        if (allocated) {
            const size_t copied = bytes < sizeof(memory[4]) ? bytes : sizeof(memory[4]);
            take(scalide_copy_in(context_, allocated, memory[4], copied));
            take(scalide_copy_out(context_, memory[4], allocated, copied));
        }
        scalide_release(context_, allocated);
        take(scalide_synchronise(context_));
    }
    void create() {
        char message[64];
        scalide_options options = {};
        options.struct_size = choices_.coin() ? sizeof(options) : offsetof(scalide_options, cache_folder);
        options.threads = static_cast<int32_t>(choices_.number() | (choices_.coin() ? 1 << 10 : 0)) % 2000;
        if (options.threads > 3 && options.threads <= 1024) options.threads = 1; // 1,000 threads a second are no test
        options.scratch_bytes = static_cast<uint64_t>(choices_.number());
        options.device = choices_.coin() ? static_cast<int32_t>(choices_.number()) : SCALIDE_CPU;
        if (options.device == SCALIDE_CUDA || options.device == SCALIDE_OPENCL) options.device = SCALIDE_CPU; // drivers are not ours
        options.message = choices_.coin() ? message : nullptr;
        options.message_size = choices_.below(sizeof(message) + 1);
        scalide_context *context = nullptr;
        take(scalide_context_create(choices_.below(16) == 0 ? nullptr : &options, &context));
        scalide_context_destroy(context);
        take(scalide_context_create(&options, nullptr));
    }
    void load() {
        constexpr std::array<const char *, 5> paths = {"", "/", "/proc/self/exe", "/proc/self/maps", "/none"};
        scalide_library *library = nullptr;
        const scalide_status status = scalide_load(context_, paths[choices_.below(paths.size())], &library);
        take_bound(status);
        expect((status == SCALIDE_OK) == (library != nullptr), "there is a library when the status is SCALIDE_OK");
        if (library) expect(!scalide_library_program(context_, library, "none"), "there is no program `none`");
        scalide_library_close(library);
    }

    static constexpr std::array calls = {
        &Session::fit_arrays,  &Session::spoil_array,  &Session::spoil_array,   &Session::describe_array, &Session::bind,
        &Session::bind,        &Session::set_argument, &Session::set_arguments, &Session::shape_outputs,  &Session::run,
        &Session::run_traced,  &Session::run_checked,  &Session::capture,       &Session::destroy,        &Session::ask_binding,
        &Session::ask_program, &Session::allocate,     &Session::create,        &Session::load,           &Session::bind_like,
        &Session::set_arena,
    };

    static inline scalide_context *const context_ = new_context(2);
    Choices &choices_;
    std::array<scalide_binding *, 3> bindings_ = {};
    std::array<scalide_array, argument_count> arrays_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size < 400 ? size : 400);
    Session session(choices);
    while (!choices.empty()) session.call();
    return 0;
}

// The C++ interface of the runtime: C++17, header only, over scalide.h, safetensors.h and metrics.h. It throws scalide::runtime::Error.
//
//     using namespace scalide::runtime;
//     Context context;                                        // threads
//     State state(context, step_program());                   // the arrays that runs update, and the policy's own state
//     state["w"].set(weights);                                // std::vector<float>; converted to the format of the program
//     Binding step = Binding::allocate(context, step_program(), {{"b", 64}}, state);
//     step["x"].set(batch);
//     step.run();
//     float loss = step["loss"].item<float>();
//     state.save("trained.safetensors");
//
// Context, Program and Array are handles: a copy refers to the same object, which lives as long as one handle. A moved-from or
// default-constructed handle is empty: it can be destroyed and assigned; other uses throw Error. A Binding is move-only and keeps its
// context, its program and its arrays alive. The rules of scalide.h for threads hold here too.
#ifndef SCALIDE_SCALIDE_HPP
#define SCALIDE_SCALIDE_HPP

#include "scalide/metrics.h"
#include "scalide/safetensors.h"
#include "scalide/scalide.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace scalide::runtime {

/// An error of the runtime. what() is its message.
class Error : public std::runtime_error {
public:
    Error(scalide_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    scalide_status status() const { return status_; }

private:
    scalide_status status_;
};

/// Extents, the outermost axis first.
using Shape = std::vector<int64_t>;
/// Values of symbols by name, such as {{"b", 64}}.
using Symbols = std::map<std::string, int64_t>;

namespace detail {

[[noreturn]] inline void refuse(const std::string &message) { throw Error(SCALIDE_INVALID_ARGUMENT, message); }

inline std::string join(const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

/// Returns the number of insertions, deletions and replacements of characters between two names.
inline size_t distance(const std::string &a, const std::string &b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i);
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
        }
    }
    return row[b.size()];
}

/// Throws `unknown NOUN 'name' OWNER. Did you mean 'near'? NOUNs: a, b.`
[[noreturn]] inline void refuse_name(const std::string &noun, const std::string &name, const std::string &owner,
                                     const std::vector<std::string> &known) {
    std::string message = "unknown " + noun + " '" + name + "' of " + owner + ".";
    const auto nearest = std::min_element(
        known.begin(), known.end(), [&](const std::string &a, const std::string &b) { return distance(name, a) < distance(name, b); });
    if (nearest != known.end() && distance(name, *nearest) <= 1 + nearest->size() / 4) message += " Did you mean '" + *nearest + "'?";
    refuse(message + (known.empty() ? " It has none." : " Known: " + join(known) + "."));
}

inline std::string text_of(const Shape &shape) {
    std::vector<std::string> extents;
    for (int64_t extent : shape) extents.push_back(std::to_string(extent));
    return std::string("[") + join(extents) + "]";
}

/// Returns the number of elements. Throws if a program cannot have such an array. So the bytes of an array never overflow.
inline size_t count_of(const Shape &shape) {
    constexpr int64_t most = SCALIDE_MAX_ELEMENTS;
    if (shape.size() > SCALIDE_MAX_RANK || std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 0; }))
        refuse(std::string("a shape must have at most 8 extents, all at least 0, got ") + text_of(shape) + ".");
    if (std::count(shape.begin(), shape.end(), 0) > 0) return 0;
    int64_t count = 1;
    for (int64_t extent : shape) {
        if (extent > most / count)
            refuse(std::string("an array must have at most ") + std::to_string(most) + " elements, got the shape " + text_of(shape) +
                   ". Split the array.");
        count *= extent;
    }
    return static_cast<size_t>(count);
}

inline Shape shape_of(const scalide_array &array) { return Shape(array.extent, array.extent + array.rank); }

inline size_t count_of(const scalide_array &array) { return count_of(shape_of(array)); }

inline size_t bytes_of(const scalide_array &array) { return count_of(array) * scalide_dtype_size(array.dtype); }

inline bool is_dense(const scalide_array &array) {
    int64_t dense = 1;
    for (int32_t axis = array.rank; axis-- > 0; dense *= array.extent[axis])
        if (array.extent[axis] != 1 && array.stride[axis] != dense) return count_of(array) == 0;
    return true;
}

/// Copies elements bit for bit between host arrays of one dtype and shape.
inline void copy_elements(const scalide_array &from, const scalide_array &to, int32_t axis = 0, int64_t from_place = 0,
                          int64_t to_place = 0) {
    const auto width = static_cast<int64_t>(scalide_dtype_size(from.dtype));
    if (axis == from.rank) {
        const char *source = static_cast<const char *>(from.data) + from_place * width;
        std::memcpy(static_cast<char *>(to.data) + to_place * width, source, static_cast<size_t>(width));
        return;
    }
    for (int64_t i = 0; i < from.extent[axis]; ++i)
        copy_elements(from, to, axis + 1, from_place + i * from.stride[axis], to_place + i * to.stride[axis]);
}

/// Returns a type such as "scaled f16[64, 8]".
inline std::string type_of(const scalide_array &array) {
    return std::string(array.scale ? "scaled " : "") + scalide_dtype_name(array.dtype) + text_of(shape_of(array));
}

/// The dtype of a C++ type. There is none for unsigned 64-bit integers.
template<typename T>
constexpr int32_t dtype_of() {
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) <= 4 || (std::is_signed<T>::value && sizeof(T) == 8)),
                  "elements must be float, double, bool, int64_t or integers of at most 32 bits");
    if constexpr (std::is_same<T, bool>::value) return SCALIDE_BOOL;
    if constexpr (std::is_floating_point<T>::value) return sizeof(T) == 4 ? SCALIDE_F32 : SCALIDE_F64;
    if constexpr (std::is_signed<T>::value)
        return sizeof(T) == 1 ? SCALIDE_I8 : sizeof(T) == 2 ? SCALIDE_I16 : sizeof(T) == 4 ? SCALIDE_I32 : SCALIDE_I64;
    return sizeof(T) == 1 ? SCALIDE_U8 : sizeof(T) == 2 ? SCALIDE_U16 : SCALIDE_U32;
}

} // namespace detail

/// The threads and scratch memory that run programs, or a device.
class Context {
public:
    /// Uses this number of threads, including the caller (0: all CPUs of the process), or a device.
    explicit Context(int threads = 0, scalide_device device = SCALIDE_CPU, int device_index = 0)
        : Context(options(threads, device, device_index)) {}
    /// Uses all options of the C interface. `struct_size`, `message` and `message_size` are filled in.
    explicit Context(scalide_options options) {
        char message[1536] = "";
        options.struct_size = sizeof(options);
        options.message = message;
        options.message_size = sizeof(message);
        scalide_context *created = nullptr;
        const scalide_status status = scalide_context_create(&options, &created);
        if (status != SCALIDE_OK) throw Error(status, *message ? message : scalide_status_string(status));
        context_.reset(created, scalide_context_destroy);
    }
    /// An empty handle.
    Context(std::nullptr_t) {}

    scalide_context *handle() const {
        if (!context_) detail::refuse("this Context is empty. Create it before use; do not use it after a move.");
        return context_.get();
    }
    explicit operator bool() const { return context_ != nullptr; }
    int threads() const { return scalide_thread_count(handle()); }
    scalide_device device() const { return static_cast<scalide_device>(scalide_context_device(handle())); }
    std::string device_name() const { return scalide_context_device_name(handle()); }
    /// Waits until all runs and copies are complete.
    void synchronise() const { check(scalide_synchronise(handle())); }
    /// Stops the run in progress, or the next one, before a step of a loop. Any thread and any signal handler may call it.
    void interrupt() const noexcept { scalide_interrupt(context_.get()); }
    /// Throws the message of the last failure unless the status is SCALIDE_OK. After SCALIDE_BUSY, the message belongs to another thread.
    void check(scalide_status status) const {
        if (status == SCALIDE_OK) return;
        const char *message = status == SCALIDE_BUSY ? "" : scalide_message(handle());
        throw Error(status, *message ? message : scalide_status_string(status));
    }

private:
    static scalide_options options(int threads, scalide_device device, int device_index) {
        scalide_options options = {};
        options.threads = threads;
        options.device = device;
        options.device_index = device_index;
        return options;
    }

    std::shared_ptr<scalide_context> context_;
};

/// An array in the memory of a context or of the caller. A copy refers to the same elements.
class Array {
public:
    /// An empty handle.
    Array() = default;
    /// Allocates an array in the memory of the context, aligned to 64 bytes, with all elements 0 and the scale 1.
    Array(const Context &context, int32_t dtype, const Shape &shape, bool scaled = false)
        : context_(context), array_(described(nullptr, nullptr, dtype, shape)) {
        const size_t data_bytes = (detail::bytes_of(array_) + 63) / 64 * 64, bytes = data_bytes + (scaled ? sizeof(float) : 0);
        context.check(scalide_allocate(context.handle(), bytes, &array_.data));
        memory_.reset(array_.data, [context](void *memory) { scalide_release(context.handle(), memory); });
        std::vector<char> initial(bytes);
        const float one = 1;
        if (scaled) {
            std::memcpy(initial.data() + data_bytes, &one, sizeof(one));
            array_.scale = reinterpret_cast<float *>(static_cast<char *>(array_.data) + data_bytes);
        }
        context.check(scalide_copy_in(context.handle(), array_.data, initial.data(), bytes));
    }
    /// A view of host memory of the caller, which must outlive all uses. `scale` is NULL for a plain array.
    Array(void *data, int32_t dtype, const Shape &shape, float *scale = nullptr)
        : memory_(std::shared_ptr<void>(), data ? data : &array_), array_(described(data, scale, dtype, shape)) {}
    /// A view of a vector. Do not resize the vector while the view is in use.
    template<typename T>
    Array(std::vector<T> &elements, const Shape &shape) : Array(elements.data(), detail::dtype_of<T>(), shape) {
        if (detail::count_of(shape) != elements.size())
            detail::refuse(std::string("the vector must have the ") + std::to_string(detail::count_of(shape)) + " elements of the shape " +
                           detail::text_of(shape) + ", got " + std::to_string(elements.size()) + ".");
    }
    template<typename T>
    Array(std::vector<T> &elements) : Array(elements, Shape{static_cast<int64_t>(elements.size())}) {}
    template<typename T>
    Array(std::vector<T> &&, Shape = {}) = delete; // the view would outlive its elements
    /// A view of a number, as an array of rank 0.
    template<typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
    Array(T &number) : Array(&number, detail::dtype_of<T>(), Shape{}) {}

    /// A view of host memory of the caller with strides, which count elements.
    static Array strided(void *data, int32_t dtype, const Shape &shape, const Shape &strides, float *scale = nullptr) {
        if (strides.size() != shape.size())
            detail::refuse(std::string("an array of shape ") + detail::text_of(shape) + " needs a stride for each axis, got " +
                           detail::text_of(strides) + ".");
        Array view(data, dtype, shape, scale);
        std::copy(strides.begin(), strides.end(), view.array_.stride);
        return view;
    }
    /// Returns a view of some of the elements: the first one has the index `begin`, and the next ones on each axis follow in steps of
    /// `step` (1 if it is left out). A view of a scaled array has the scale of the whole array.
    Array crop(const Shape &begin, const Shape &shape, Shape step = {}) const {
        const Shape whole = this->shape();
        if (step.empty()) step.assign(whole.size(), 1);
        bool fits = begin.size() == whole.size() && shape.size() == whole.size() && step.size() == whole.size();
        for (size_t axis = 0; fits && axis < whole.size(); ++axis)
            fits = begin[axis] >= 0 && begin[axis] <= whole[axis] && step[axis] >= 1 &&
                   (shape[axis] == 0 ||
                    (shape[axis] > 0 && begin[axis] < whole[axis] && (whole[axis] - begin[axis] - 1) / step[axis] >= shape[axis] - 1));
        if (!fits)
            detail::refuse(std::string("a crop must be inside of the array ") + detail::text_of(whole) + ", got the shape " +
                           detail::text_of(shape) + " from " + detail::text_of(begin) + " in steps of " + detail::text_of(step) + ".");
        Array view = *this;
        int64_t offset = 0;
        for (int32_t axis = 0; axis < array_.rank; ++axis) {
            const auto i = static_cast<size_t>(axis);
            offset += begin[i] * array_.stride[axis];
            view.array_.extent[axis] = shape[i];
            view.array_.stride[axis] = array_.stride[axis] * step[i];
        }
        if (view.size() > 0) view.array_.data = static_cast<char *>(array_.data) + offset * width();
        return view;
    }

    /// The descriptor for the C interface.
    const scalide_array &descriptor() const {
        if (!*this) detail::refuse("this Array is empty. Allocate it before use; do not use it after a move.");
        return array_;
    }
    explicit operator bool() const { return memory_ != nullptr; }
    int32_t dtype() const { return descriptor().dtype; }
    Shape shape() const { return detail::shape_of(descriptor()); }
    /// In elements.
    Shape strides() const { return Shape(descriptor().stride, array_.stride + array_.rank); }
    /// True if the elements are row-major and without gaps.
    bool is_dense() const { return detail::is_dense(descriptor()); }
    size_t size() const { return detail::count_of(descriptor()); }
    bool is_scaled() const { return descriptor().scale != nullptr; }
    /// The bytes of data and scale.
    size_t bytes() const { return detail::bytes_of(descriptor()) + (is_scaled() ? sizeof(float) : 0); }
    /// The scale of a scaled array, and 1 of a plain array.
    float scale() const {
        float value = 1;
        if (is_scaled()) copy_out(&value, array_.scale, sizeof(value));
        return value;
    }

    /// Writes all elements. They are converted to the dtype of the array by scalide_convert, which also chooses the scale.
    template<typename T>
    void set(const T *elements, size_t count) {
        static_assert(!std::is_same<T, void>::value, "elements have a type");
        if (count != size())
            detail::refuse(std::string("an array of shape ") + detail::text_of(shape()) + " has " + std::to_string(size()) +
                           " elements, got " + std::to_string(count) + ".");
        set(scalide_dense_array(const_cast<T *>(elements), nullptr, detail::dtype_of<T>(), array_.rank, array_.extent));
    }
    template<typename T>
    void set(const std::vector<T> &elements) {
        set(elements.data(), elements.size());
    }
    /// Writes one number to all elements.
    template<typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
    void set(T number) {
        scalide_array from = descriptor();
        from.data = &number;
        from.scale = nullptr;
        from.dtype = detail::dtype_of<T>();
        std::fill(from.stride, from.stride + from.rank, 0);
        set(from);
    }
    /// Writes all elements from an array in host memory with the same shape and any dtype, scale and strides.
    void set(const scalide_array &from) {
        descriptor();
        if (!is_on_device()) return convert(from, array_);
        const Array host = on_host();
        convert(from, host.array_);
        set_bits(host.array_);
    }
    /// Writes data and scale from a dense array in host memory with the same dtype and shape, bit for bit.
    void set_bits(const scalide_array &from) {
        if (detail::type_of(from) != detail::type_of(descriptor()))
            detail::refuse(std::string("the array must be ") + detail::type_of(array_) + ", got " + detail::type_of(from) +
                           ". Use set to convert it.");
        if (is_dense()) {
            copy_in(array_.data, from.data, detail::bytes_of(array_));
        } else if (!is_on_device()) {
            detail::copy_elements(from, array_); // nothing between the elements is written, so threads may fill neighbouring views
        } else {
            const Range range = read_range();
            detail::copy_elements(from, range.view);
            copy_in(range.first, range.bytes.data(), range.bytes.size());
        }
        if (is_scaled()) copy_in(array_.scale, from.scale, sizeof(float));
    }
    /// Returns the values data * scale of all elements, in row-major order, converted to T.
    template<typename T = float>
    std::vector<T> get() const {
        static_assert(!std::is_same<T, bool>::value, "std::vector<bool> has no elements in memory: use get<uint8_t>()");
        std::vector<T> elements(size());
        convert(host().descriptor(), scalide_dense_array(elements.data(), nullptr, detail::dtype_of<T>(), array_.rank, array_.extent));
        return elements;
    }
    /// Returns the value of an array with one element.
    template<typename T = float>
    T item() const {
        if (size() != 1)
            detail::refuse(std::string("item() needs an array with one element, got the shape ") + detail::text_of(shape()) + ".");
        return get<T>()[0];
    }
    /// Returns a dense array in host memory: this array, or a copy.
    Array host() const {
        if (is_dense() && !is_on_device()) return *this;
        Array copy = on_host();
        if (is_dense()) {
            copy_out(copy.array_.data, array_.data, detail::bytes_of(array_));
        } else {
            detail::copy_elements(is_on_device() ? read_range().view : array_, copy.array_);
        }
        if (is_scaled()) copy_out(copy.array_.scale, array_.scale, sizeof(float));
        return copy;
    }

private:
    static scalide_array described(void *data, float *scale, int32_t dtype, const Shape &shape) {
        if (scalide_dtype_size(dtype) == 0)
            detail::refuse(std::string("unknown dtype ") + std::to_string(dtype) + ". Use a scalide_dtype.");
        detail::count_of(shape); // checks it
        return scalide_dense_array(data, scale, dtype, static_cast<int32_t>(shape.size()), shape.data());
    }
    /// Returns a new array of the same type in host memory. The scale comes first.
    Array on_host() const {
        const auto memory = std::make_shared<std::vector<float>>(1 + detail::bytes_of(array_) / sizeof(float) + 1);
        Array copy;
        copy.array_ = described(memory->data() + 1, is_scaled() ? memory->data() : nullptr, array_.dtype, shape());
        copy.memory_ = memory;
        return copy;
    }
    int64_t width() const { return static_cast<int64_t>(scalide_dtype_size(array_.dtype)); }
    /// A copy of all bytes from the lowest element to the highest, in host memory. `view` are the elements of this array in it.
    struct Range {
        std::vector<char> bytes;
        char *first; ///< in the memory of the array
        scalide_array view;
    };
    /// The array has elements.
    Range read_range() const {
        int64_t lowest = 0, highest = 0;
        for (int32_t axis = 0; axis < array_.rank; ++axis) {
            const int64_t last = array_.stride[axis] * (array_.extent[axis] - 1);
            (last < 0 ? lowest : highest) += last;
        }
        Range range = {std::vector<char>(static_cast<size_t>((highest - lowest + 1) * width())),
                       static_cast<char *>(array_.data) + lowest * width(), array_};
        copy_out(range.bytes.data(), range.first, range.bytes.size());
        range.view.data = range.bytes.data() - lowest * width();
        return range;
    }
    bool is_on_device() const { return context_ && context_.device() != SCALIDE_CPU; }
    void copy_in(void *to, const void *from, size_t bytes) const {
        if (is_on_device()) return context_.check(scalide_copy_in(context_.handle(), to, from, bytes));
        if (bytes > 0) std::memcpy(to, from, bytes);
    }
    void copy_out(void *to, const void *from, size_t bytes) const {
        if (is_on_device()) return context_.check(scalide_copy_out(context_.handle(), to, from, bytes));
        if (bytes > 0) std::memcpy(to, from, bytes);
    }
    static void convert(const scalide_array &from, scalide_array to) {
        if (scalide_convert(nullptr, &from, &to) == SCALIDE_OK) return;
        detail::refuse(std::string("cannot convert ") + scalide_dtype_name(from.dtype) + detail::text_of(detail::shape_of(from)) + " to " +
                       scalide_dtype_name(to.dtype) + detail::text_of(detail::shape_of(to)) + ". The shapes must be equal.");
    }

    Context context_ = nullptr;    ///< empty for a view
    std::shared_ptr<void> memory_; ///< NULL if the handle is empty; it owns nothing if the array is a view
    scalide_array array_ = {};
};

/// Arrays by name, such as {{"x", x}, {"loss", loss}}.
using NamedArrays = std::map<std::string, Array>;

/// An argument of a program.
struct Argument {
    std::string name;
    int32_t dtype;
    scalide_role role;
    bool is_scaled;
    int64_t initial;                  ///< SCALIDE_STATE: the value before the first run
    std::vector<std::string> extents; ///< in the symbols of the program: {"b", "64"}
    Shape fixed;                      ///< -1 for an extent that depends on symbols
    bool is_output() const { return role == SCALIDE_OUTPUT; }
    /// True for an array that belongs to a State.
    bool is_kept() const { return role == SCALIDE_INOUT || role == SCALIDE_STATE; }
    /// True for an array that is read once, before the first run.
    bool is_constant() const { return role == SCALIDE_CONSTANT; }
};

/// A program: what a function `<name>_program()` of a generated library returns.
class Program {
public:
    /// An empty handle.
    Program() = default;
    /// `owner` keeps the library of the program open.
    Program(const scalide_program *program, const std::shared_ptr<void> &owner = nullptr) : program_(owner, program) {
        for (size_t i = 0; i < scalide_argument_count(program); ++i) arguments_.push_back(describe(program, i));
    }

    const scalide_program *handle() const {
        if (!program_) detail::refuse("this Program is empty. Pass the result of a function <name>_program().");
        return program_.get();
    }
    std::string name() const { return scalide_program_name(handle()); }
    std::string policy() const { return scalide_program_numerics(handle()); }
    std::string hash() const { return scalide_program_hash(handle()); }
    std::string target() const { return scalide_program_target(handle()); }
    scalide_device device() const { return static_cast<scalide_device>(scalide_program_device(handle())); }
    /// In the order of the C interface.
    const std::vector<Argument> &arguments() const { return arguments_; }
    /// Returns the index of an argument. Throws if there is none of this name.
    size_t find(const std::string &argument) const {
        const int32_t index = scalide_find_argument(handle(), argument.c_str());
        if (index >= 0) return static_cast<size_t>(index);
        std::vector<std::string> names;
        for (const Argument &known : arguments_) names.push_back(known.name);
        detail::refuse_name("argument", argument, name(), names);
    }
    std::vector<std::string> symbols() const {
        std::vector<std::string> names;
        for (size_t i = 0; i < scalide_symbol_count(handle()); ++i) {
            scalide_symbol_info info;
            scalide_describe_symbol(handle(), i, &info);
            names.push_back(info.name);
        }
        return names;
    }
    /// Returns the shape of each argument. Throws if a symbol is unknown, missing or outside of its range.
    std::vector<Shape> shapes(const Context &context, const Symbols &values) const {
        std::vector<int64_t> in_order;
        const std::vector<std::string> names = symbols();
        for (const auto &value : values)
            if (std::find(names.begin(), names.end(), value.first) == names.end())
                detail::refuse_name("symbol", value.first, name(), names);
        for (const std::string &symbol : names) {
            const auto value = values.find(symbol);
            if (value == values.end())
                detail::refuse(name() + ": symbol " + symbol + " has no value. Pass {{\"" + symbol + "\", 64}}, for example.");
            in_order.push_back(value->second);
        }
        std::vector<scalide_array> arrays(arguments_.size());
        context.check(scalide_shape_arguments(context.handle(), handle(), in_order.data(), in_order.size(), arrays.data(), arrays.size()));
        std::vector<Shape> shapes;
        for (const scalide_array &array : arrays) shapes.push_back(detail::shape_of(array));
        return shapes;
    }

private:
    static Argument describe(const scalide_program *program, size_t index) {
        scalide_argument_info info = {};
        scalide_describe_argument(program, index, &info);
        Argument argument{info.name, info.dtype, static_cast<scalide_role>(info.role), info.scaled != 0, info.initial, {}, {}};
        for (int32_t axis = 0; axis < info.rank; ++axis) {
            scalide_extent_info extent = {};
            scalide_describe_extent(program, index, axis, &extent);
            argument.extents.push_back(extent.text);
            argument.fixed.push_back(extent.value);
        }
        return argument;
    }

    std::shared_ptr<const scalide_program> program_;
    std::vector<Argument> arguments_;
};

/// Opens a shared library and returns its program `name`. The library is closed with the last handle and binding of the program.
inline Program load(const Context &context, const std::string &path, const std::string &name) {
    scalide_library *library = nullptr;
    context.check(scalide_load(context.handle(), path.c_str(), &library));
    std::shared_ptr<void> owner(library, [context](void *opened) { scalide_library_close(static_cast<scalide_library *>(opened)); });
    const scalide_program *program = scalide_library_program(context.handle(), library, name.c_str());
    if (!program) context.check(SCALIDE_INVALID_ARGUMENT);
    return {program, owner};
}

/// The arrays that a program reads and updates in place: its inouts, and the state of its policy with its first values.
class State {
public:
    /// Allocates the arrays. Elements are 0. `symbols` needs values only if an extent of the state depends on symbols.
    State(const Context &context, Program program, const Symbols &symbols = {}) : program_(std::move(program)) {
        const std::vector<Argument> &arguments = program_.arguments();
        const bool is_complete = symbols.size() == program_.symbols().size();
        const std::vector<Shape> shapes = is_complete || !symbols.empty() ? program_.shapes(context, symbols) : std::vector<Shape>();
        for (size_t i = 0; i < arguments.size(); ++i) {
            const Argument &argument = arguments[i];
            if (!argument.is_kept()) continue;
            const Shape &shape = shapes.empty() ? argument.fixed : shapes[i];
            if (std::count(shape.begin(), shape.end(), -1) > 0)
                detail::refuse(program_.name() + "." + argument.name + ": the shape [" + detail::join(argument.extents) +
                               "] needs the values of the symbols: " + detail::join(program_.symbols()) + ".");
            Array array(context, argument.dtype, shape, argument.is_scaled);
            if (argument.initial != 0) array.set(static_cast<int32_t>(argument.initial));
            arrays_.emplace(argument.name, std::move(array));
        }
    }

    /// Returns the array of this name.
    Array &operator[](const std::string &name) {
        const auto found = arrays_.find(name);
        if (found == arrays_.end()) detail::refuse_name("state", name, program_.name(), names());
        return found->second;
    }
    const Array &operator[](const std::string &name) const { return const_cast<State &>(*this)[name]; }
    const NamedArrays &arrays() const { return arrays_; }
    /// In the order of the program.
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const Argument &argument : program_.arguments())
            if (argument.is_kept()) names.push_back(argument.name);
        return names;
    }
    const Program &program() const { return program_; }
    size_t bytes() const {
        size_t bytes = 0;
        for (const auto &named : arrays_) bytes += named.second.bytes();
        return bytes;
    }

    /// Writes the arrays as they are stored to a safetensors file, with the policy and the hash of the program.
    void save(const std::string &path) const { save(path, {}); }
    /// Writes more entries of metadata.
    void save(const std::string &path, const std::map<std::string, std::string> &more) const {
        std::map<std::string, std::string> entries = more;
        entries.insert({{"scalide.policy", program_.policy()}, {"scalide.program", program_.hash()}});
        std::vector<scalide_metadata> metadata;
        for (const auto &entry : entries) metadata.push_back({entry.first.c_str(), entry.second.c_str()});
        NamedArrays host;
        std::vector<scalide_tensor> tensors;
        for (const auto &named : arrays_) {
            const auto copied = host.emplace(named.first, named.second.host()).first;
            tensors.push_back({copied->first.c_str(), copied->second.descriptor()});
        }
        char message[1536] = "";
        const scalide_safetensors_content content = {tensors.data(), tensors.size(), metadata.data(), metadata.size()};
        const scalide_status status = scalide_safetensors_write(path.c_str(), &content, message, sizeof(message));
        if (status != SCALIDE_OK) throw Error(status, message);
    }
    /// Reads the arrays bit for bit. Throws if the file is damaged, lacks an array, or was written for another policy.
    void load(const std::string &path) {
        char message[1536] = "";
        scalide_safetensors *opened = nullptr;
        const scalide_status status = scalide_safetensors_read(path.c_str(), &opened, message, sizeof(message));
        if (status != SCALIDE_OK) throw Error(status, message);
        const std::unique_ptr<scalide_safetensors, void (*)(scalide_safetensors *)> file(opened, scalide_safetensors_close);
        const char *policy = scalide_safetensors_metadata(opened, "scalide.policy");
        if (policy && policy != program_.policy())
            detail::refuse(path + ": the file has arrays of policy " + policy + ", but the program has policy " + program_.policy() +
                           convert_it());
        std::vector<scalide_array> found;
        for (const auto &named : arrays_) found.push_back(find(path, opened, named.first, named.second));
        size_t next = 0; // nothing is written before everything is checked
        for (auto &named : arrays_) named.second.set_bits(found[next++]);
    }

private:
    static std::string convert_it() { return ". Convert the file with 'scalide convert'."; }
    scalide_array find(const std::string &path, const scalide_safetensors *file, const std::string &name, const Array &array) const {
        scalide_array found;
        const scalide_status status = scalide_safetensors_find(file, name.c_str(), &found);
        if (status != SCALIDE_OK) {
            char message[1024] = "";
            scalide_safetensors_explain(file, name.c_str(), message, sizeof(message));
            throw Error(status, path + ": " + message);
        }
        const std::string wanted = detail::type_of(array.descriptor()), got = detail::type_of(found);
        if (got != wanted)
            detail::refuse(path + ": " + name + " must be " + wanted + " for policy " + program_.policy() + ", got " + got + convert_it());
        return found;
    }

    Program program_;
    NamedArrays arrays_;
};

namespace detail {

/// Returns the arrays in the order of the arguments. An argument that is not among them has an empty descriptor.
inline std::vector<scalide_array> in_order(const Program &program, const NamedArrays &arrays) {
    std::vector<scalide_array> descriptors;
    for (const Argument &argument : program.arguments()) {
        const auto found = arrays.find(argument.name);
        descriptors.push_back(found == arrays.end() ? scalide_array{} : found->second.descriptor());
    }
    return descriptors;
}

/// Throws if an argument for which `is_needed` is true is not among the arrays.
template<typename Predicate>
void require(const Program &program, const NamedArrays &arrays, Predicate is_needed, const std::string &nouns, const std::string &way_out) {
    std::vector<std::string> missing;
    for (const Argument &argument : program.arguments())
        if (is_needed(argument) && arrays.count(argument.name) == 0) missing.push_back(argument.name);
    if (!missing.empty()) refuse(program.name() + ": these " + nouns + " are missing: " + join(missing) + ". " + way_out);
}

inline bool is_constant(const Argument &argument) { return argument.is_constant(); }

} // namespace detail

/// The constants of a program, such as the weights of inference, converted and scaled once. It is a handle: bindings share the object.
class Constants {
public:
    /// An empty handle.
    Constants() = default;
    /// Prepares the constants from arrays by name, which are not needed afterwards. Throws if one is missing, or a name is no constant.
    Constants(const Context &context, const Program &program, const NamedArrays &values) : context_(context) {
        std::vector<std::string> names;
        for (const Argument &argument : program.arguments())
            if (argument.is_constant()) names.push_back(argument.name);
        for (const auto &value : values)
            if (std::find(names.begin(), names.end(), value.first) == names.end())
                detail::refuse_name("constant", value.first, program.name(), names);
        detail::require(program, values, detail::is_constant, "constants", "Pass them by name.");
        const std::vector<scalide_array> in_order = detail::in_order(program, values);
        scalide_constants *made = nullptr;
        context.check(scalide_prepare(context.handle(), program.handle(), in_order.data(), in_order.size(), &made));
        constants_.reset(made, scalide_constants_destroy);
    }
    scalide_constants *handle() const {
        if (!constants_) detail::refuse("these Constants are empty. Pass a context, a program and arrays to the constructor.");
        return constants_.get();
    }
    bool is_set() const { return constants_ != nullptr; }
    /// Returns the size of the prepared arrays in bytes.
    size_t bytes() const { return scalide_constants_bytes(handle()); }

private:
    Context context_ = nullptr; ///< destroyed last
    std::shared_ptr<scalide_constants> constants_;
};

/// A program with its arrays, ready to run. It is for one set of shapes. Only one thread at a time may use it: see clone.
class Binding {
public:
    /// Binds arrays by name. Outputs that are missing are allocated. Throws if another argument is missing, or a name is unknown.
    Binding(const Context &context, const Program &program, NamedArrays arrays)
        : context_(context), program_(program), arrays_(std::move(arrays)) {
        for (const auto &named : arrays_) program_.find(named.first);
        detail::require(
            program_, arrays_, [](const Argument &argument) { return !argument.is_output(); }, "arrays",
            "Pass them by name, pass a State, or use Binding::allocate.");
        std::vector<scalide_array> shapes = detail::in_order(program_, arrays_);
        context.check(scalide_shape_outputs(context.handle(), program_.handle(), shapes.data(), shapes.size()));
        for (size_t i = 0; i < shapes.size(); ++i) allocate_missing(i, detail::shape_of(shapes[i]));
        bind();
    }
    /// Binds the arrays of a state, and other arrays by name.
    Binding(const Context &context, const Program &program, const State &state, NamedArrays arrays = {})
        : Binding(context, program, joined(program, state, std::move(arrays))) {}
    /// Allocates every array that is not given. Its elements are 0 until you set them: binding["x"].set(values). Binding reads constants,
    /// so they must be given: as Constants, or by name.
    static Binding allocate(const Context &context, const Program &program, const Symbols &symbols, NamedArrays arrays = {}) {
        return allocate(context, program, symbols, Constants(), std::move(arrays));
    }
    static Binding allocate(const Context &context, const Program &program, const Symbols &symbols, const Constants &constants,
                            NamedArrays arrays = {}) {
        Binding binding(context, program);
        binding.constants_ = constants;
        for (const auto &named : arrays) program.find(named.first);
        binding.arrays_ = std::move(arrays);
        const std::vector<Shape> shapes = program.shapes(context, symbols);
        if (!constants.is_set())
            detail::require(program, binding.arrays_, detail::is_constant, "constants",
                            "They must have their values before the program is bound. Pass Constants, or pass them by name.");
        for (size_t i = 0; i < shapes.size(); ++i)
            if (!program.arguments()[i].is_constant()) binding.allocate_missing(i, shapes[i]);
        binding.bind();
        return binding;
    }
    static Binding allocate(const Context &context, const Program &program, const Symbols &symbols, const State &state,
                            NamedArrays arrays = {}) {
        return allocate(context, program, symbols, joined(program, state, std::move(arrays)));
    }
    /// Makes a further binding of the same program and shapes, which may run at the same time: give it the context of another thread. It
    /// shares plan, kernels and constants with this binding, and has its own arrays. Outputs that are missing are allocated. Throws if
    /// another argument is missing, or a name is unknown. Other threads may run this binding during the call.
    Binding clone(const Context &context, NamedArrays arrays) const {
        Binding further(context, program_);
        for (const auto &named : arrays) program_.find(named.first);
        further.constants_ = constants_;
        further.arrays_ = std::move(arrays);
        detail::require(
            program_, further.arrays_, [](const Argument &argument) { return !argument.is_output() && !argument.is_constant(); }, "arrays",
            "Pass them by name.");
        for (size_t i = 0; i < program_.arguments().size(); ++i)
            if (program_.arguments()[i].is_output()) further.allocate_missing(i, arrays_.at(program_.arguments()[i].name).shape());
        const std::vector<scalide_array> in_order = detail::in_order(program_, further.arrays_);
        scalide_binding *created = nullptr;
        context.check(scalide_bind_like(context.handle(), handle(), in_order.data(), in_order.size(), &created));
        further.binding_.reset(created);
        return further;
    }

    scalide_binding *handle() const {
        if (!binding_) detail::refuse("this Binding is empty. Do not use it after a move.");
        return binding_.get();
    }
    /// Runs the program once. On a device, it starts the run; reading an array waits for it.
    void run() { context_.check(scalide_run(handle())); }
    /// Runs once, and calls see(const scalide_traced &, const scalide_array &) for each intermediate array. `see` must not throw.
    template<typename See>
    void run_traced(See &&see) {
        const auto call = [](void *user, const scalide_traced *buffer, const scalide_array *array) {
            (*static_cast<std::remove_reference_t<See> *>(user))(*buffer, *array);
        };
        context_.check(scalide_run_traced(handle(), call, const_cast<void *>(static_cast<const void *>(&see))));
    }
    /// Runs once. Returns the first result that contains an infinity or a NaN; its `buffer` is NULL if all results are finite.
    scalide_non_finite run_checked() {
        scalide_non_finite first = {};
        context_.check(scalide_run_checked(handle(), &first));
        return first;
    }

    /// Fits the scales and amax histories of the policy to the values that the arrays have, for the first run of a training. It runs
    /// several times, and restores all arrays of the program but the outputs. Integer state of the policy keeps its value.
    void fit_scales() {
        constexpr int most_runs = 64;
        constexpr float change = 0.25F; // of a scale, from run to run: a fitting scale may be so far from the next one
        const auto is_scaling = [](const Argument &argument) { return argument.role == SCALIDE_STATE && argument.dtype == SCALIDE_F32; };
        std::vector<Copy> restored;
        for (const Argument &argument : program_.arguments())
            if (argument.is_kept() && !is_scaling(argument)) restored.emplace_back(arrays_.at(argument.name));
        bool fits = false;
        for (int i = 0; i < most_runs && !fits; ++i) {
            std::map<std::string, std::vector<float>> before;
            for (const Argument &argument : program_.arguments()) {
                if (!is_scaling(argument)) continue;
                const Array &array = arrays_.at(argument.name);
                before[argument.name] = array.get();
                // A history starts empty in each run: an amax that another scale changed would stay in it.
                if (!array.shape().empty()) Array(array).set(static_cast<int32_t>(argument.initial));
            }
            run();
            for (const Copy &copy : restored) copy.restore();
            fits = std::all_of(before.begin(), before.end(), [&](const std::pair<const std::string, std::vector<float>> &state) {
                const std::vector<float> after = arrays_.at(state.first).get();
                return std::equal(after.begin(), after.end(), state.second.begin(),
                                  [&](float now, float then) { return now == then || std::abs(now - then) <= change * std::abs(now); });
            });
        }
    }

    /// Runs this number of times and returns the fastest time of each step, and the bytes that it reads or writes.
    std::vector<scalide_step_profile> profile(int runs = 1) {
        std::vector<scalide_step_profile> steps(step_count());
        context_.check(scalide_profile(handle(), runs, steps.data(), steps.size()));
        return steps;
    }

    /// Returns the array of an argument.
    Array operator[](const std::string &argument) const {
        handle();
        const auto found = arrays_.find(program_.arguments()[program_.find(argument)].name);
        if (found == arrays_.end())
            detail::refuse(program_.name() + "." + argument + ": a constant that was prepared has no array. Use replace(Constants).");
        return found->second;
    }
    /// Replaces all constants at once. Any thread may call it: a run that has started uses the old ones to its end.
    void replace(const Constants &constants) {
        if (scalide_set_constants(handle(), constants.handle()) != SCALIDE_OK)
            detail::refuse(program_.name() +
                           ": the constants belong to another program or have other shapes. Prepare them for this program.");
    }
    /// Replaces an array by another one of the same shape.
    void set(const std::string &argument, const Array &array) {
        context_.check(scalide_set_argument(handle(), program_.find(argument), &array.descriptor()));
        arrays_[argument] = array;
    }
    int64_t symbol(const std::string &name) const {
        const int64_t value = scalide_symbol_value(handle(), name.c_str());
        if (value < 0) detail::refuse_name("symbol", name, program_.name(), program_.symbols());
        return value;
    }
    size_t step_count() const { return scalide_step_count(handle()); }
    /// Returns the bytes of the memory for intermediate values.
    size_t arena_bytes() const { return scalide_arena_bytes(handle()); }
    /// Returns the bytes that each run copies for an argument, because its array is a view that a kernel cannot use in place.
    size_t copied_bytes(const std::string &argument) const { return scalide_binding_copied_bytes(handle(), program_.find(argument)); }
    /// Uses memory of the caller for intermediate values: at least arena_bytes(), aligned to 64 bytes, alive as long as it is used. NULL:
    /// the binding allocates its own memory again. Bindings that do not run at the same time may use the same memory.
    void set_arena(void *memory, size_t bytes) { context_.check(scalide_set_arena(handle(), memory, bytes)); }
    const Program &program() const { return program_; }

private:
    friend class Statistics;

    Binding(const Context &context, const Program &program) : context_(context), program_(program) {}

    /// The bits of an array.
    class Copy {
    public:
        explicit Copy(const Array &array) : array_(array), scale_(array.scale()) {
            const Array host = array.host();
            const char *data = static_cast<const char *>(host.descriptor().data);
            data_.assign(data, data + detail::bytes_of(host.descriptor()));
        }
        void restore() const {
            Array array = array_;
            float scale = scale_;
            array.set_bits(scalide_dense_array(const_cast<char *>(data_.data()), array.is_scaled() ? &scale : nullptr, array.dtype(),
                                               static_cast<int32_t>(array.shape().size()), array.shape().data()));
        }

    private:
        Array array_;
        float scale_;
        std::vector<char> data_;
    };

    /// A State may belong to another program with the same arrays, such as the program that evaluates what another one trains.
    static NamedArrays joined(const Program &program, const State &state, NamedArrays arrays) {
        for (const auto &named : state.arrays()) {
            const auto argument = std::find_if(program.arguments().begin(), program.arguments().end(),
                                               [&](const Argument &known) { return known.name == named.first; });
            const bool is_known = argument != program.arguments().end();
            if (is_known && fits(*argument, named.second)) continue;
            detail::refuse("this State is of program " + state.program().name() + ", but the Binding is of program " + program.name() +
                           ", which has no argument " + named.first + " of type " + detail::type_of(named.second.descriptor()) +
                           ". Pass a State of " + program.name() + ".");
        }
        arrays.insert(state.arrays().begin(), state.arrays().end());
        return arrays;
    }
    static bool fits(const Argument &argument, const Array &array) {
        const Shape shape = array.shape();
        return argument.dtype == array.dtype() && argument.is_scaled == array.is_scaled() && argument.fixed.size() == shape.size() &&
               std::equal(shape.begin(), shape.end(), argument.fixed.begin(),
                          [](int64_t extent, int64_t fixed) { return fixed < 0 || extent == fixed; });
    }
    void allocate_missing(size_t index, const Shape &shape) {
        const Argument &argument = program_.arguments()[index];
        if (arrays_.count(argument.name) > 0) return;
        Array array(context_, argument.dtype, shape, argument.is_scaled);
        if (argument.initial != 0) array.set(static_cast<int32_t>(argument.initial));
        arrays_.emplace(argument.name, std::move(array));
    }
    void bind() {
        const std::vector<scalide_array> in_order = detail::in_order(program_, arrays_);
        scalide_binding *created = nullptr;
        context_.check(constants_.is_set()
                           ? scalide_bind_constants(context_.handle(), program_.handle(), in_order.data(), in_order.size(),
                                                    constants_.handle(), &created)
                           : scalide_bind(context_.handle(), program_.handle(), in_order.data(), in_order.size(), &created));
        binding_.reset(created);
    }

    struct Destroy {
        void operator()(scalide_binding *binding) const { scalide_binding_destroy(binding); }
    };

    Context context_;
    Program program_;
    NamedArrays arrays_;
    Constants constants_;
    std::unique_ptr<scalide_binding, Destroy> binding_; ///< destroyed first
};

/// Collects statistics of the tensors of a program that was built with statistics (statistics.h). It is move-only.
///
///     runtime::Statistics statistics(binding);
///     for (int64_t step = 0; step < steps; ++step) statistics.run(step);   // in place of binding.run()
class Statistics {
public:
    /// The binding must live longer than the statistics. If the program has constants, the binding must have them as arrays. Throws if the
    /// program was built without statistics.
    explicit Statistics(Binding &binding) : context_(binding.context_) {
        const std::vector<scalide_array> in_order = detail::in_order(binding.program_, binding.arrays_);
        scalide_statistics *created = nullptr;
        context_.check(scalide_statistics_create(binding.handle(), in_order.data(), in_order.size(), nullptr, &created));
        statistics_.reset(created);
    }

    /// Runs the binding once, and collects the statistics that are due in this step.
    void run(int64_t step) { context_.check(scalide_run_collecting(statistics_.get(), step)); }
    /// Returns descriptions of the tensors.
    std::vector<scalide_statistic_info> tensors() const {
        std::vector<scalide_statistic_info> infos(scalide_statistics_count(program()));
        for (size_t i = 0; i < infos.size(); ++i) scalide_describe_statistic(program(), i, &infos[i]);
        return infos;
    }
    /// Returns the newest numbers of each tensor, in the order of tensors().
    std::vector<scalide_statistic> read() {
        std::vector<scalide_statistic> rows(scalide_statistics_count(program()));
        context_.check(scalide_read_statistics(statistics_.get(), rows.data(), rows.size()));
        return rows;
    }
    /// Returns the newest step that collected, or -1.
    int64_t step() const { return scalide_statistics_step(statistics_.get()); }
    const scalide_program *program() const { return scalide_statistics_program(statistics_.get()); }

private:
    struct Destroy {
        void operator()(scalide_statistics *statistics) const { scalide_statistics_destroy(statistics); }
    };

    Context context_;
    std::unique_ptr<scalide_statistics, Destroy> statistics_;
};

/// Writes the metrics of a training run to a folder: JSON lines, and scalars for TensorBoard. A thread writes the files, so that a step
/// does not wait for the disk. The rules of metrics.h hold. It is move-only.
class Metrics {
public:
    /// Creates the folder if necessary. `tensorboard`: also writes an event file. `queue_bytes`: memory for lines that are not yet in a
    /// file; 0: 1 MiB, and 16 MiB for statistics. `statistics`: also writes statistics.jsonl.
    explicit Metrics(const std::string &folder, bool tensorboard = false, uint64_t queue_bytes = 0, bool statistics = false) {
        const scalide_metrics_options options = {sizeof(options), tensorboard ? 1 : 0, queue_bytes, statistics ? 1 : 0};
        scalide_metrics *opened = nullptr;
        check([&](char *message, size_t size) { return scalide_metrics_open(folder.c_str(), &options, &opened, message, size); });
        metrics_.reset(opened);
    }

    /// Queues one line, such as write(12, {{"loss", 0.5}}). Throws if lines could not be written since the last call that threw; this line
    /// is queued nevertheless. Throws, too, if the queue is full, so that this line is dropped.
    void write(int64_t step, const std::vector<std::pair<std::string, double>> &values) {
        std::vector<scalide_metric> metrics;
        metrics.reserve(values.size());
        for (const auto &value : values) metrics.push_back({value.first.c_str(), value.second});
        check([&](char *message, size_t size) {
            return scalide_metrics_write(metrics_.get(), step, metrics.data(), metrics.size(), message, size);
        });
    }
    /// Waits until all lines are on the disk. Throws if lines could not be written.
    void flush() {
        check([&](char *message, size_t size) { return scalide_metrics_flush(metrics_.get(), message, size); });
    }
    /// Returns the number of lines that were dropped because the queue was full.
    uint64_t dropped() const { return scalide_metrics_dropped(metrics_.get()); }
    /// Writes what is queued and closes the files. Throws if lines were lost. The destructor does the same without an error.
    void close() {
        check([&](char *message, size_t size) { return scalide_metrics_close(metrics_.release(), message, size); });
    }

    /// Queues the newest statistics. The metrics must have been opened with `statistics`.
    void write(int64_t step, Statistics &statistics) {
        const std::vector<scalide_statistic> rows = statistics.read();
        check([&](char *message, size_t size) {
            return scalide_metrics_write_statistics(metrics_.get(), step, statistics.program(), rows.data(), rows.size(), message, size);
        });
    }

private:
    template<typename Call>
    static void check(const Call &call) {
        char message[1024] = "";
        const scalide_status status = call(message, sizeof(message));
        if (status != SCALIDE_OK) throw Error(status, message);
    }

    struct Close {
        void operator()(scalide_metrics *metrics) const { scalide_metrics_close(metrics, nullptr, 0); }
    };

    std::unique_ptr<scalide_metrics, Close> metrics_;
};

} // namespace scalide::runtime
#endif

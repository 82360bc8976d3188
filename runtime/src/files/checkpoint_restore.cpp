// Compares the arrays of a file with the arrays of a program, and copies them.
#include "base/strides.h"
#include "files/safetensors_content.h"
#include "files/safetensors_format.h"
#include "scalide/checkpoints.h"

using namespace scalide;

namespace {

constexpr char policy_key[] = "scalide.policy";

/// A list of names in a message. Long lists are cut.
class Names {
public:
    Names(Text &text, const char *heading) : text_(text), heading_(heading) {}
    Names(const Names &) = delete;
    Names &operator=(const Names &) = delete;
    ~Names() {
        if (count_ > most) text_ << " and " << count_ - most << " more";
    }
    /// Returns true if there is room for one more name, after writing what stands before it.
    bool begin_one() {
        if (++count_ > most) return false;
        text_ << (count_ == 1 ? heading_ : ",") << ' ';
        return true;
    }
    uint64_t count() const { return count_; }

private:
    static constexpr uint64_t most = 8;
    Text &text_;
    const char *heading_;
    uint64_t count_ = 0;
};

/// Compares two arrays as their users see them.
bool is_same_type(const scalide_array &a, const scalide_array &b) {
    return a.dtype == b.dtype && a.rank == b.rank && (a.scale != nullptr) == (b.scale != nullptr) &&
           std::equal(a.extent, a.extent + a.rank, b.extent);
}

void print_type(Text &text, const scalide_array &array) {
    text << (array.scale ? "scaled " : "") << scalide_dtype_name(array.dtype) << '[';
    for (int32_t axis = 0; axis < array.rank; ++axis) text << (axis > 0 ? ", " : "") << array.extent[axis];
    text << ']';
}

uint64_t bytes_of(const scalide_array &array) {
    uint64_t bytes = scalide_dtype_size(array.dtype);
    for (int32_t axis = 0; axis < array.rank; ++axis) bytes *= static_cast<uint64_t>(array.extent[axis]);
    return bytes;
}

struct Comparison {
    const scalide_safetensors &file;
    const scalide_tensor *tensors;
    size_t count;

    bool has(const scalide_tensor &tensor) const {
        scalide_array found;
        return scalide_safetensors_find(&file, tensor.name, &found) == SCALIDE_OK;
    }
    /// True if `name` is one of the tensors, or a part of one that the file has as a scaled array.
    bool is_wanted(const char *name) const {
        for (size_t i = 0; i < count; ++i) {
            const size_t length = std::strlen(tensors[i].name);
            if (std::strncmp(tensors[i].name, name, length) != 0) continue;
            if (name[length] == 0 || is_part(tensors[i].name, name + length)) return true;
        }
        return false;
    }
    bool is_part(const char *tensor, const char *suffix) const {
        bool has_suffix = false;
        for (const auto &suffixes : part_suffixes)
            for (const char *known : suffixes) has_suffix = has_suffix || std::strcmp(suffix, known) == 0;
        scalide_array found;
        return has_suffix && scalide_safetensors_find(&file, tensor, &found) == SCALIDE_OK && found.scale;
    }
};

uint64_t print_missing(Text &text, const Comparison &compared) {
    Names names(text, " Missing in the file:");
    for (size_t i = 0; i < compared.count; ++i)
        if (!compared.has(compared.tensors[i]) && names.begin_one()) text.name(compared.tensors[i].name);
    return names.count();
}

uint64_t print_unknown(Text &text, const Comparison &compared) {
    Names names(text, " Unknown to the program:");
    for (uint64_t i = 0; i < compared.file.tensor_count; ++i) {
        const char *name = compared.file.tensors[i].name;
        if (!compared.is_wanted(name) && names.begin_one()) text.name(name);
    }
    return names.count();
}

uint64_t print_different(Text &text, const Comparison &compared) {
    Names names(text, " Different:");
    for (size_t i = 0; i < compared.count; ++i) {
        const scalide_tensor &tensor = compared.tensors[i];
        scalide_array found;
        if (scalide_safetensors_find(&compared.file, tensor.name, &found) != SCALIDE_OK || is_same_type(found, tensor.array)) continue;
        if (!names.begin_one()) continue;
        print_type(text.name(tensor.name) << " must be ", tensor.array);
        print_type(text << ", got ", found);
    }
    return names.count();
}

/// Writes all differences. Returns false if there are some.
bool compare(Text text, const Comparison &compared, const char *policy, const char *policy_of_file) {
    const bool is_other_policy = policy && policy_of_file && std::strcmp(policy, policy_of_file) != 0;
    text << "the file must have the arrays of the program";
    if (is_other_policy) (text << " for policy ").name(policy) << ", but it is for policy ";
    if (is_other_policy) text.name(policy_of_file);
    text << '.';
    const uint64_t missing = print_missing(text, compared);
    if (missing > 0) text << '.';
    const uint64_t unknown = print_unknown(text, compared);
    if (unknown > 0) text << '.';
    const uint64_t different = print_different(text, compared);
    if (different > 0) text << '.';
    text << " Convert the file with 'scalide convert', or choose the checkpoint of another program.";
    return !is_other_policy && missing + unknown + different == 0;
}

const char *wrong_with(const scalide_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const scalide_array &array = tensors[i].array;
        if (!tensors[i].name) return "the name of a tensor must not be NULL";
        if (scalide_dtype_size(array.dtype) == 0 || array.rank < 0 || array.rank > SCALIDE_MAX_RANK)
            return "a tensor must have a scalide_dtype and a rank in [0, 8]";
        if (bytes_of(array) > 0 && (!array.data || !is_dense(array))) return "a tensor must have memory and be dense";
    }
    return nullptr;
}

} // namespace

scalide_status scalide_checkpoint_restore(const scalide_safetensors *file, const char *policy, const scalide_tensor *tensors, size_t count,
                                          char *message, size_t message_size) {
    if (!file) return refuse_null(message, message_size, "file");
    if (count > 0 && !tensors) return refuse_null(message, message_size, "tensors");
    if (const char *wrong = wrong_with(tensors, count)) {
        Text(message, message_size, Text::Use::message) << wrong << ". Fill in the array with scalide_dense_array.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    const Comparison compared = {*file, tensors, count};
    Text text(message, message_size, Text::Use::message);
    if (!compare(text, compared, policy, scalide_safetensors_metadata(file, policy_key))) return SCALIDE_INVALID_ARGUMENT;
    Text(message, message_size); // nothing is wrong: the message is empty
    for (size_t i = 0; i < count; ++i) {
        const scalide_array &to = tensors[i].array;
        scalide_array from;
        scalide_safetensors_find(file, tensors[i].name, &from);
        if (bytes_of(to) > 0) std::memcpy(to.data, from.data, bytes_of(to));
        if (to.scale) *to.scale = *from.scale;
    }
    return SCALIDE_OK;
}

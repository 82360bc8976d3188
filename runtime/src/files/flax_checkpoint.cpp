#include "files/flax_checkpoint.h"
#include "base/memory.h"
#include "files/safetensors_content.h"

namespace scalide {

namespace {

constexpr char separator = '.';

scalide_status fail_for_memory(const FileMessage &message) {
    message.begin() << "out of memory: cannot allocate the table of tensors.";
    return SCALIDE_OUT_OF_MEMORY;
}

/// Returns the dtype of a leaf as a tensor, or -1 if it is skipped. The value of a bool is the first byte of its integer.
int32_t dtype_of(const scalide_leaf &leaf) {
    switch (leaf.kind) {
    case SCALIDE_LEAF_ARRAY:
    case SCALIDE_LEAF_SCALAR: return leaf.array.dtype;
    case SCALIDE_LEAF_INTEGER: return SCALIDE_I64;
    case SCALIDE_LEAF_FLOAT: return SCALIDE_F64;
    case SCALIDE_LEAF_BOOL: return SCALIDE_BOOL;
    default: return -1;
    }
}

scalide_array array_of(const scalide_leaf &leaf) {
    if (leaf.kind == SCALIDE_LEAF_ARRAY || leaf.kind == SCALIDE_LEAF_SCALAR) return leaf.array;
    const void *value = leaf.kind == SCALIDE_LEAF_FLOAT ? static_cast<const void *>(&leaf.number) : &leaf.integer;
    return scalide_dense_array(const_cast<void *>(value), nullptr, dtype_of(leaf), 0, nullptr);
}

/// Returns a word for a leaf that is skipped, in place of a dtype.
const char *word_of(const scalide_leaf &leaf) {
    switch (leaf.kind) {
    case SCALIDE_LEAF_UNSIGNED: return "uint64";
    case SCALIDE_LEAF_COMPLEX: return "complex";
    case SCALIDE_LEAF_NONE: return "None";
    case SCALIDE_LEAF_TEXT: return "str";
    case SCALIDE_LEAF_BYTES: return "bytes";
    case SCALIDE_LEAF_EMPTY: return "dict";
    default: return leaf.dtype;
    }
}

uint64_t lay_out(scalide_safetensors &result, void *memory) {
    Carver carver(memory);
    take_tables(carver, result, result.skipped_count);
    return carver.bytes();
}

} // namespace

scalide_status write_flax(const FileMessage &message, const char *path, const scalide_safetensors_content &content) {
    auto *leaves = static_cast<scalide_leaf *>(allocate(content.tensor_count * sizeof(scalide_leaf)));
    if (!leaves) return fail_for_memory(message);
    for (size_t i = 0; i < content.tensor_count; ++i) {
        leaves[i] = {};
        leaves[i].name = content.tensors[i].name;
        leaves[i].array = content.tensors[i].array;
        leaves[i].array.dtype = std::max(leaves[i].array.dtype, -1);
    }
    const scalide_status status = scalide_msgpack_write(path, leaves, content.tensor_count, separator, 0, message.memory, message.size);
    release(leaves);
    return status;
}

scalide_status read_flax(const FileMessage &message, scalide_safetensors **file) {
    *file = nullptr;
    scalide_msgpack *flax = nullptr;
    const scalide_status status = scalide_msgpack_read(message.path, separator, &flax, message.memory, message.size);
    if (status != SCALIDE_OK) return status;
    scalide_safetensors result = {};
    result.flax = flax;
    const size_t count = scalide_msgpack_count(flax);
    for (size_t i = 0; i < count; ++i) ++(dtype_of(*scalide_msgpack_leaf(flax, i)) < 0 ? result.skipped_count : result.tensor_count);
    void *memory = allocate(lay_out(result, nullptr));
    if (!memory) {
        scalide_msgpack_close(flax);
        return fail_for_memory(message);
    }
    lay_out(result, memory);
    uint64_t tensor = 0, skipped = 0;
    for (size_t i = 0; i < count; ++i) {
        const scalide_leaf &leaf = *scalide_msgpack_leaf(flax, i);
        if (dtype_of(leaf) < 0) {
            result.skipped[skipped++] = {leaf.name, word_of(leaf), leaf.array.rank};
        } else {
            result.tensors[tensor++] = {leaf.name, array_of(leaf)};
        }
    }
    sort_names(result.by_name, result.tensor_count, [&](uint64_t i) { return result.tensors[i].name; });
    *file = static_cast<scalide_safetensors *>(memory);
    **file = result;
    return SCALIDE_OK;
}

} // namespace scalide

#include "tool/arrays.h"
#include "rulebook/nearest.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace scalide {

namespace {

constexpr size_t message_size = 512;

[[noreturn]] void fail(const char *message) { throw UserError({{}, "", message, "", ""}); }

double load(const HostArray &array, size_t i) {
    if (array.dtype == Dtype::i64) {
        int64_t number = 0;
        std::memcpy(&number, array.data.data() + i * sizeof(number), sizeof(number));
        if (!is_exact_in_f64(number))
            throw UserError({{}, array.name, "the interpreter needs i64 values that f64 represents exactly", std::to_string(number), ""});
        return static_cast<double>(number);
    }
    uint32_t code = 0;
    std::memcpy(&code, array.data.data() + i * size_of(array.dtype), size_of(array.dtype));
    return value_of(array.dtype, code);
}

void store(HostArray &array, size_t i, double value) {
    if (array.dtype == Dtype::i64) {
        const auto number = static_cast<int64_t>(value); // the interpreter has no value outside the range
        std::memcpy(array.data.data() + i * sizeof(number), &number, sizeof(number));
        return;
    }
    const uint32_t code = code_of(array.dtype, value);
    std::memcpy(array.data.data() + i * size_of(array.dtype), &code, size_of(array.dtype));
}

/// A safetensors file begins with the size of its header. A msgpack file begins with the mark of a map, and as a size, its first bytes are
/// more than the file has.
bool is_msgpack(const std::string &path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return false;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const auto bytes = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
    unsigned char start[8] = {};
    file.seekg(0).read(reinterpret_cast<char *>(start), sizeof start);
    uint64_t header = 0;
    for (size_t i = sizeof start; i-- > 0;) header = header << 8 | start[i];
    const bool is_map = (start[0] & 0xf0) == 0x80 || start[0] == 0xde || start[0] == 0xdf;
    return file.gcount() > 0 && is_map && header > bytes;
}

} // namespace

size_t bytes_of(const scalide_array &array) {
    size_t bytes = scalide_dtype_size(array.dtype);
    for (int32_t i = 0; i < array.rank; i++) bytes *= static_cast<size_t>(array.extent[i]);
    return bytes;
}

HostArray copy_of(const std::string &name, const scalide_array &view) {
    HostArray array{name, static_cast<Dtype>(view.dtype), {view.extent, view.extent + view.rank}, {}, view.scale != nullptr, 1};
    const auto *data = static_cast<const unsigned char *>(view.data);
    array.data.assign(data, data + bytes_of(view));
    if (view.scale) std::memcpy(&array.scale, view.scale, sizeof array.scale); // a mapped file may not be aligned
    return array;
}

scalide_array HostArray::view() {
    return scalide_dense_array(data.data(), scaled ? &scale : nullptr, static_cast<int32_t>(dtype), static_cast<int32_t>(shape.size()),
                               shape.data());
}

ArrayFile::ArrayFile(const std::string &file)
    : path_(file), content_(nullptr, scalide_safetensors_close), leaves_(nullptr, scalide_msgpack_close) {
    char message[message_size] = "";
    if (is_msgpack(file)) {
        scalide_msgpack *leaves = nullptr;
        if (scalide_msgpack_read(file.c_str(), '.', &leaves, message, sizeof message) != SCALIDE_OK) fail(message);
        leaves_.reset(leaves);
        for (size_t i = 0; i < scalide_msgpack_count(leaves); i++) {
            const scalide_leaf *leaf = scalide_msgpack_leaf(leaves, i);
            if (leaf->kind == SCALIDE_LEAF_ARRAY || leaf->kind == SCALIDE_LEAF_SCALAR) arrays_[leaf->name] = leaf;
        }
        return;
    }
    scalide_safetensors *content = nullptr;
    if (scalide_safetensors_map(file.c_str(), &content, message, sizeof message) != SCALIDE_OK) fail(message);
    content_.reset(content);
}

HostArray ArrayFile::find(const std::string &name) const {
    if (std::optional<HostArray> found = find_if_there(name)) return std::move(*found);
    const std::string names = joined(tensors());
    throw UserError(statement({path_}, "the file has no array for the argument '" + name + "'",
                              names.empty() ? "It has no arrays" : "It has: " + names));
}

HostArray ArrayFile::find_state(const std::string &name, const Type &type, int64_t initial) const {
    std::optional<HostArray> found = find_if_there(name);
    return found ? std::move(*found) : initial_state(name, type, initial);
}

/// Throws UserError for an array whose dtype a program cannot have.
std::optional<HostArray> ArrayFile::find_if_there(const std::string &name) const {
    if (content_) {
        scalide_array view;
        const scalide_status status = scalide_safetensors_find(content_.get(), name.c_str(), &view);
        if (status == SCALIDE_OK) return copy_of(name, view);
        if (status != SCALIDE_UNSUPPORTED) return {};
        char message[message_size] = "";
        scalide_safetensors_explain(content_.get(), name.c_str(), message, sizeof message);
        throw UserError({{path_}, "", message, "", ""});
    }
    const auto find_leaf = [&](const std::string &leaf_name) {
        const auto found = arrays_.find(leaf_name);
        return found == arrays_.end() ? nullptr : found->second;
    };
    const scalide_leaf *leaf = find_leaf(name), *scale = nullptr;
    for (const auto &[data_suffix, scale_suffix] : part_suffixes) {
        if (leaf) break;
        leaf = find_leaf(name + data_suffix);
        scale = find_leaf(name + scale_suffix);
    }
    if (!leaf) return {};
    if (leaf->array.dtype < 0) throw UserError({{path_}, name, "must have a dtype of programs", leaf->dtype, ""});
    HostArray array = copy_of(name, leaf->array);
    array.scaled = array.scaled || scale != nullptr;
    if (scale) array.scale = static_cast<float>(load(copy_of(name, scale->array), 0));
    return array;
}

std::vector<std::string> ArrayFile::tensors() const {
    std::vector<std::string> names;
    for (const auto &[name, leaf] : arrays_) names.push_back(name);
    if (!content_) return names;
    for (size_t i = 0; i < scalide_safetensors_count(content_.get()); i++)
        names.emplace_back(scalide_safetensors_tensor(content_.get(), i)->name);
    for (size_t i = 0; i < scalide_safetensors_skipped_count(content_.get()); i++)
        names.emplace_back(scalide_safetensors_skipped(content_.get(), i)->name);
    return names;
}

HostArray transposed(const HostArray &array, const std::vector<int64_t> &permutation) {
    const size_t rank = array.shape.size(), size = size_of(array.dtype), count = array.data.size() / size;
    std::vector<int64_t> strides(rank, 1), steps(rank);
    for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * array.shape[axis];
    HostArray result{array.name, array.dtype, std::vector<int64_t>(rank), {}, array.scaled, array.scale};
    for (size_t axis = 0; axis < rank; axis++) {
        result.shape[axis] = array.shape[permutation[axis]];
        steps[axis] = strides[permutation[axis]];
    }
    result.data.resize(array.data.size());
    std::vector<int64_t> index(rank);
    int64_t from = 0;
    for (size_t i = 0; i < count; i++) {
        std::memcpy(result.data.data() + i * size, array.data.data() + from * size, size);
        for (size_t axis = rank; axis-- > 0; index[axis] = 0) {
            from += steps[axis];
            if (++index[axis] < result.shape[axis]) break;
            from -= steps[axis] * result.shape[axis];
        }
    }
    return result;
}

HostArray in_form(HostArray array, Dtype dtype, bool scaled) {
    if (array.dtype == dtype && array.scaled == scaled) return array;
    HostArray result{array.name, dtype, array.shape, {}, scaled};
    result.data.resize(array.data.size() / size_of(array.dtype) * size_of(dtype));
    const scalide_array from = array.view();
    scalide_array to = result.view();
    internal_check(scalide_convert(nullptr, &from, &to) == SCALIDE_OK, "cannot convert " + array.name);
    return result;
}

HostArray initial_state(const std::string &name, const Type &type, int64_t initial) {
    std::vector<int64_t> shape;
    for (const Extent &extent : type.shape) shape.push_back(extent.value());
    return to_array(name, {type.dtype, shape, std::vector<double>(size_t(element_count(type.shape).value()), double(initial))});
}

void write_arrays(const std::string &file, std::vector<HostArray> &arrays) {
    std::vector<scalide_tensor> tensors;
    for (HostArray &array : arrays) tensors.push_back({array.name.c_str(), array.view()});
    char message[message_size] = "";
    const scalide_safetensors_content content{tensors.data(), tensors.size(), nullptr, 0};
    if (scalide_safetensors_write(file.c_str(), &content, message, sizeof message) != SCALIDE_OK) fail(message);
}

Array to_tensor(const HostArray &array) {
    Array tensor{array.dtype, array.shape, std::vector<double>(array.data.size() / size_of(array.dtype))};
    for (size_t i = 0; i < tensor.data.size(); i++) tensor.data[i] = load(array, i);
    return tensor;
}

HostArray to_array(const std::string &name, const Array &tensor) {
    HostArray array{name, tensor.dtype, tensor.shape, decltype(HostArray::data)(tensor.data.size() * size_of(tensor.dtype))};
    for (size_t i = 0; i < tensor.data.size(); i++) store(array, i, tensor.data[i]);
    return array;
}

} // namespace scalide

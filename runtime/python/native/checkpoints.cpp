#include "checkpoints.h"
#include "arrays.h"
#include "scalide/checkpoints.h"
#include "scalide/msgpack.h"
#include <algorithm>
#include <complex>
#include <cstring>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>

namespace scalide::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;
using File = std::unique_ptr<scalide_safetensors, void (*)(scalide_safetensors *)>;

/// Room for the message of a function of the runtime.
struct Message {
    char text[1536] = "";
    void check(scalide_status status) const {
        if (status != SCALIDE_OK) throw Failure(status, text);
    }
};

int32_t dtype_of(const std::string &name) {
    for (int32_t dtype = 0; dtype < SCALIDE_DTYPE_COUNT; ++dtype)
        if (name == scalide_dtype_name(dtype)) return dtype;
    return -1;
}

/// Returns the dtype with a name of NumPy, or -1.
int32_t dtype_of_numpy(const std::string &name) {
    const auto starts = [&](const char *word) { return name.rfind(word, 0) == 0; };
    if (name == "bool") return SCALIDE_BOOL;
    if (starts("bfloat")) return dtype_of("bf" + name.substr(6));
    if (starts("float")) return dtype_of("f" + name.substr(5));
    if (starts("uint")) return dtype_of("u" + name.substr(4));
    return starts("int") ? dtype_of("i" + name.substr(3)) : -1;
}

/// The arrays of a checkpoint. A row is a tuple (name, dtype, shape, bytes). The bytes are a contiguous array of u8.
struct Rows {
    std::vector<std::string> names;
    std::vector<nb::object> keep;
    std::vector<scalide_tensor> tensors;

    explicit Rows(const nb::list &rows) {
        for (const nb::handle row : rows) names.push_back(nb::cast<std::string>(row[0]));
        for (size_t i = 0; i < names.size(); ++i) {
            const nb::handle row = rows[i];
            const auto shape = nb::cast<std::vector<int64_t>>(row[2]);
            if (shape.size() > SCALIDE_MAX_RANK) throw nb::value_error((names[i] + ": rank must be at most 8.").c_str());
            const scalide_array bytes = view_input(row[3], {names[i], SCALIDE_U8}, keep);
            keep.push_back(nb::borrow(row[3]));
            tensors.push_back({names[i].c_str(), scalide_dense_array(bytes.data, nullptr, dtype_of(nb::cast<std::string>(row[1])),
                                                                     static_cast<int32_t>(shape.size()), shape.data())});
        }
    }
};

scalide_checkpoint_options options_of(const std::string &prefix, int64_t keep, int64_t keep_every, bool overwrite, int32_t format,
                                      uint64_t shard_bytes) {
    return {sizeof(scalide_checkpoint_options), prefix.c_str(), keep, keep_every, overwrite ? 1 : 0, format, shard_bytes};
}

void save_checkpoint(const std::string &folder, int64_t step, const nb::list &rows, const nb::dict &metadata, const std::string &prefix,
                     int64_t keep, int64_t keep_every, bool overwrite, int32_t format, uint64_t shard_bytes) {
    const Rows arrays(rows);
    Metadata texts;
    for (const auto &[key, value] : metadata) texts.emplace_back(nb::cast<std::string>(key), nb::cast<std::string>(value));
    std::vector<scalide_metadata> entries;
    for (const auto &[key, value] : texts) entries.push_back({key.c_str(), value.c_str()});
    const scalide_safetensors_content content = {arrays.tensors.data(), arrays.tensors.size(), entries.data(), entries.size()};
    const scalide_checkpoint_options options = options_of(prefix, keep, keep_every, overwrite, format, shard_bytes);
    Message message;
    scalide_status status;
    {
        nb::gil_scoped_release released;
        status = scalide_checkpoint_save(folder.c_str(), step, &content, &options, message.text, sizeof(message.text));
    }
    message.check(status);
}

std::vector<int64_t> checkpoint_steps(const std::string &folder, const std::string &prefix) {
    const scalide_checkpoint_options options = options_of(prefix, 0, 0, false, 0, 0);
    Message message;
    size_t count = 0;
    message.check(scalide_checkpoint_steps(folder.c_str(), &options, nullptr, 0, &count, message.text, sizeof(message.text)));
    std::vector<int64_t> steps(count);
    message.check(scalide_checkpoint_steps(folder.c_str(), &options, steps.data(), count, &count, message.text, sizeof(message.text)));
    steps.resize(std::min(count, steps.size()));
    return steps;
}

nb::tuple shape_of(const scalide_array &array) {
    nb::list shape;
    for (int32_t axis = 0; axis < array.rank; ++axis) shape.append(array.extent[axis]);
    return nb::tuple(shape);
}

/// Returns a copy of the elements as an array of u8.
nb::object bytes_of(const scalide_array &array) {
    const auto count = static_cast<int64_t>(data_bytes(array));
    const scalide_array bytes = scalide_dense_array(nullptr, nullptr, SCALIDE_U8, 1, &count);
    Memory memory = allocate_data(bytes);
    if (count > 0) std::memcpy(memory.get(), array.data, static_cast<size_t>(count));
    return to_numpy(bytes, std::move(memory));
}

/// Returns the step, the rows (name, dtype, shape, bytes), and the metadata.
nb::tuple read_checkpoint(const std::string &folder, std::optional<int64_t> step, const std::string &prefix) {
    const scalide_checkpoint_options options = options_of(prefix, 0, 0, false, 0, 0);
    Message message;
    scalide_safetensors *opened = nullptr;
    int64_t found = 0;
    scalide_status status;
    {
        nb::gil_scoped_release released;
        status = scalide_checkpoint_read(folder.c_str(), step.value_or(SCALIDE_LATEST_STEP), &options, &opened, &found, message.text,
                                         sizeof(message.text));
    }
    message.check(status);
    const File file(opened, scalide_safetensors_close);
    nb::list rows;
    for (size_t i = 0; i < scalide_safetensors_count(file.get()); ++i) {
        const scalide_tensor &tensor = *scalide_safetensors_tensor(file.get(), i);
        rows.append(nb::make_tuple(tensor.name, scalide_dtype_name(tensor.array.dtype), shape_of(tensor.array), bytes_of(tensor.array)));
    }
    nb::dict metadata;
    for (size_t i = 0; i < scalide_safetensors_metadata_count(file.get()); ++i) {
        const scalide_metadata &entry = *scalide_safetensors_metadata_entry(file.get(), i);
        metadata[entry.key] = entry.value;
    }
    return nb::make_tuple(found, rows, metadata);
}

using FlaxFile = std::unique_ptr<scalide_msgpack, void (*)(scalide_msgpack *)>;

nb::bytes bytes_of(const scalide_leaf &leaf) { return nb::bytes(static_cast<const char *>(leaf.data), leaf.bytes); }

/// Returns the value of a leaf. An array is a tuple (dtype of NumPy, shape, bytes, whether it is a scalar).
nb::object value_of(const scalide_leaf &leaf) {
    switch (leaf.kind) {
    case SCALIDE_LEAF_INTEGER: return nb::int_(leaf.integer);
    case SCALIDE_LEAF_UNSIGNED: return nb::int_(static_cast<uint64_t>(leaf.integer));
    case SCALIDE_LEAF_FLOAT: return nb::float_(leaf.number);
    case SCALIDE_LEAF_COMPLEX: return nb::steal(PyComplex_FromDoubles(leaf.number, leaf.imaginary));
    case SCALIDE_LEAF_BOOL: return nb::bool_(leaf.integer != 0);
    case SCALIDE_LEAF_NONE: return nb::none();
    case SCALIDE_LEAF_TEXT: return nb::str(static_cast<const char *>(leaf.data), leaf.bytes);
    case SCALIDE_LEAF_BYTES: return bytes_of(leaf);
    case SCALIDE_LEAF_EMPTY: return nb::dict();
    default: break;
    }
    const auto count = static_cast<int64_t>(leaf.bytes);
    const scalide_array bytes = scalide_dense_array(leaf.array.data, nullptr, SCALIDE_U8, 1, &count);
    return nb::make_tuple(leaf.dtype, shape_of(leaf.array), bytes_of(bytes), leaf.kind == SCALIDE_LEAF_SCALAR);
}

/// Returns pairs (name, value).
nb::list read_msgpack(const std::string &path, char separator) {
    Message message;
    scalide_msgpack *opened = nullptr;
    message.check(scalide_msgpack_read(path.c_str(), separator, &opened, message.text, sizeof(message.text)));
    const FlaxFile file(opened, scalide_msgpack_close);
    nb::list rows;
    for (size_t i = 0; i < scalide_msgpack_count(opened); ++i) {
        const scalide_leaf &leaf = *scalide_msgpack_leaf(opened, i);
        rows.append(nb::make_tuple(leaf.name, value_of(leaf)));
    }
    return rows;
}

/// What a leaf points to.
struct LeafMemory {
    std::string name, text;
    nb::object array;
};

/// Reads a tuple (dtype, shape, bytes, whether it is a scalar) into a leaf.
void take_array(const nb::handle &value, LeafMemory &memory, std::vector<nb::object> &keep, scalide_leaf &leaf) {
    const auto shape = nb::cast<std::vector<int64_t>>(value[1]);
    if (shape.size() > SCALIDE_MAX_RANK) throw nb::value_error((memory.name + ": rank must be at most 8.").c_str());
    memory.text = nb::cast<std::string>(value[0]);
    const scalide_array bytes = view_input(value[2], {memory.name, SCALIDE_U8}, keep);
    memory.array = nb::borrow(value[2]);
    const int32_t dtype = dtype_of_numpy(memory.text);
    leaf.array = scalide_dense_array(bytes.data, nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data());
    leaf.kind = nb::cast<bool>(value[3]) ? SCALIDE_LEAF_SCALAR : SCALIDE_LEAF_ARRAY;
    leaf.dtype = memory.text.c_str();
    leaf.data = bytes.data;
    leaf.bytes = static_cast<size_t>(bytes.extent[0]);
}

/// Reads a Python value into a leaf. See value_of.
scalide_leaf leaf_of(const nb::handle &value, LeafMemory &memory, std::vector<nb::object> &keep) {
    scalide_leaf leaf = {};
    leaf.name = memory.name.c_str();
    if (value.is_none()) {
        leaf.kind = SCALIDE_LEAF_NONE;
    } else if (PyBool_Check(value.ptr())) {
        leaf.kind = SCALIDE_LEAF_BOOL;
        leaf.integer = value.ptr() == Py_True;
    } else if (PyLong_Check(value.ptr())) {
        leaf.kind = SCALIDE_LEAF_INTEGER;
        uint64_t large = 0;
        if (!nb::try_cast(value, leaf.integer)) {
            if (!nb::try_cast(value, large)) throw nb::value_error((memory.name + ": a number must be from -2^63 to 2^64 - 1.").c_str());
            leaf.kind = SCALIDE_LEAF_UNSIGNED;
            leaf.integer = static_cast<int64_t>(large);
        }
    } else if (PyFloat_Check(value.ptr())) {
        leaf.kind = SCALIDE_LEAF_FLOAT;
        leaf.number = nb::cast<double>(value);
    } else if (PyComplex_Check(value.ptr())) {
        leaf.kind = SCALIDE_LEAF_COMPLEX;
        leaf.number = PyComplex_RealAsDouble(value.ptr());
        leaf.imaginary = PyComplex_ImagAsDouble(value.ptr());
    } else if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr())) {
        const bool is_text = PyUnicode_Check(value.ptr());
        leaf.kind = is_text ? SCALIDE_LEAF_TEXT : SCALIDE_LEAF_BYTES;
        const nb::bytes bytes = is_text ? nb::steal<nb::bytes>(PyUnicode_AsUTF8String(value.ptr())) : nb::borrow<nb::bytes>(value);
        if (!bytes.is_valid()) throw nb::python_error();
        memory.text.assign(bytes.c_str(), bytes.size());
        leaf.data = memory.text.data();
        leaf.bytes = memory.text.size();
    } else if (PyDict_Check(value.ptr())) {
        leaf.kind = SCALIDE_LEAF_EMPTY;
    } else {
        take_array(value, memory, keep, leaf);
    }
    return leaf;
}

/// Pairs (name, value) as leaves.
struct Leaves {
    std::vector<LeafMemory> memory;
    std::vector<nb::object> keep;
    std::vector<scalide_leaf> leaves;

    explicit Leaves(const nb::list &rows) : memory(rows.size()) {
        for (size_t i = 0; i < memory.size(); ++i) {
            const nb::handle row = rows[i];
            memory[i].name = nb::cast<std::string>(row[0]);
            leaves.push_back(leaf_of(row[1], memory[i], keep));
        }
    }
};

void write_msgpack(const std::string &path, const nb::list &rows, char separator, uint64_t chunk_bytes) {
    const Leaves content(rows);
    Message message;
    scalide_status status;
    {
        nb::gil_scoped_release released;
        status = scalide_msgpack_write(path.c_str(), content.leaves.data(), content.leaves.size(), separator, chunk_bytes, message.text,
                                       sizeof(message.text));
    }
    message.check(status);
}

void save_flax_checkpoint(const std::string &folder, int64_t step, const nb::list &rows, char separator, const std::string &prefix,
                          int64_t keep, int64_t keep_every, bool overwrite) {
    const Leaves content(rows);
    const scalide_checkpoint_options options = options_of(prefix, keep, keep_every, overwrite, 0, 0);
    Message message;
    scalide_status status;
    {
        nb::gil_scoped_release released;
        status = scalide_checkpoint_save_leaves(folder.c_str(), step, content.leaves.data(), content.leaves.size(), separator, &options,
                                                message.text, sizeof(message.text));
    }
    message.check(status);
}

/// Returns the path of a checkpoint, and its step.
nb::tuple checkpoint_path(const std::string &folder, std::optional<int64_t> step, const std::string &prefix) {
    const scalide_checkpoint_options options = options_of(prefix, 0, 0, false, 0, 0);
    Message message;
    std::string path(folder.size() + prefix.size() + 300, 0);
    int64_t found = 0;
    message.check(scalide_checkpoint_path(folder.c_str(), step.value_or(SCALIDE_LATEST_STEP), &options, path.data(), path.size(), &found,
                                          message.text, sizeof(message.text)));
    return nb::make_tuple(path.c_str(), found);
}

} // namespace

void add_checkpoints(nb::module_ &module) {
    module.def("save_checkpoint", save_checkpoint, "folder"_a, "step"_a, "rows"_a, "metadata"_a, "prefix"_a, "keep"_a, "keep_every"_a,
               "overwrite"_a, "format"_a, "shard_bytes"_a);
    module.def("checkpoint_steps", checkpoint_steps, "folder"_a, "prefix"_a);
    module.def("read_msgpack", read_msgpack, "path"_a, "separator"_a);
    module.def("write_msgpack", write_msgpack, "path"_a, "rows"_a, "separator"_a, "chunk_bytes"_a = 0);
    module.def("save_flax_checkpoint", save_flax_checkpoint, "folder"_a, "step"_a, "rows"_a, "separator"_a, "prefix"_a, "keep"_a,
               "keep_every"_a, "overwrite"_a);
    module.def("checkpoint_path", checkpoint_path, "folder"_a, "step"_a.none(), "prefix"_a);
    module.def("read_checkpoint", read_checkpoint, "folder"_a, "step"_a.none(), "prefix"_a);
}

} // namespace scalide::python

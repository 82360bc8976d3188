// Saves the arrays that a binding updates, and reads them back.
#include "base/float_environment.h"
#include "base/strides.h"
#include "bind/binding.h"
#include "context/context.h"
#include "context/entry.h"
#include "scalide/checkpoints.h"
#include <algorithm>
#include <cstring>

using namespace scalide;

namespace {

uint64_t bytes_of(const scalide_array &array) {
    uint64_t bytes = scalide_dtype_size(array.dtype);
    for (int32_t axis = 0; axis < array.rank; ++axis) bytes *= static_cast<uint64_t>(array.extent[axis]);
    return bytes;
}

bool is_kept(const scalide_argument &argument) { return argument.role == SCALIDE_INOUT || argument.role == SCALIDE_STATE; }

/// The arrays that runs update, as dense arrays in host memory: the arrays of the caller, or copies of them.
class HostArrays {
public:
    explicit HostArrays(const scalide_binding &binding) : binding_(binding) {}
    HostArrays(const HostArrays &) = delete;
    HostArrays &operator=(const HostArrays &) = delete;
    ~HostArrays() { release(memory_); }

    scalide_status allocate_copies() {
        const scalide_program &program = *binding_.program;
        uint64_t bytes = lay_out(nullptr);
        memory_ = allocate(bytes);
        if (!memory_) {
            start_message(binding_.context) << "program '" << program.name << "': out of memory: cannot allocate a copy of its state ("
                                            << bytes << " bytes).";
            return SCALIDE_OUT_OF_MEMORY;
        }
        lay_out(memory_);
        for (size_t i = 0; i < count_; ++i) {
            const scalide_array &array = original(i);
            if (!binding_.context->device || is_dense(array)) continue;
            start_message(binding_.context)
                << "program '" << program.name << "', argument '" << tensors_[i].name
                << "': a checkpoint needs a dense array on a device, and this array is a view. Bind a dense array.";
            return SCALIDE_UNSUPPORTED;
        }
        return SCALIDE_OK;
    }
    /// Copies between the arrays of the caller and the copies.
    scalide_status copy(bool to_host) const {
        for (size_t i = 0; i < count_; ++i) {
            const scalide_array &array = original(i), &host = tensors_[i].array;
            if (host.data == array.data) continue;
            const scalide_status status = copy_one(to_host ? array : host, to_host ? host : array, to_host);
            if (status != SCALIDE_OK) return status;
        }
        return SCALIDE_OK;
    }
    const scalide_tensor *tensors() const { return tensors_; }
    size_t count() const { return count_; }

private:
    const scalide_array &original(size_t i) const { return binding_.arrays[indices_[i]]; }

    uint64_t lay_out(void *memory) {
        const scalide_program &program = *binding_.program;
        Carver carver(memory);
        tensors_ = carver.take<scalide_tensor>(static_cast<uint64_t>(program.argument_count));
        indices_ = carver.take<uint64_t>(static_cast<uint64_t>(program.argument_count));
        count_ = 0;
        for (int32_t i = 0; i < program.argument_count; ++i) {
            if (!is_kept(program.arguments[i])) continue;
            const scalide_array &array = binding_.arrays[i];
            scalide_array host = array;
            if (binding_.context->device || !is_dense(array)) {
                char *data = carver.take<char>(bytes_of(array));
                float *scale = array.scale ? carver.take<float>(1) : nullptr;
                host = scalide_dense_array(data, scale, array.dtype, array.rank, array.extent);
            }
            if (memory) {
                tensors_[count_] = {program.arguments[i].name, host};
                indices_[count_] = static_cast<uint64_t>(i);
            }
            ++count_;
        }
        return carver.bytes();
    }
    scalide_status copy_one(const scalide_array &from, const scalide_array &to, bool to_host) const {
        scalide_context *context = binding_.context;
        if (!context->device) {
            if (bytes_of(to) > 0) copy_elements(from, to, 0, 0, 0);
            if (to.scale) *to.scale = *from.scale;
            return SCALIDE_OK;
        }
        const auto call = to_host ? scalide_copy_out : scalide_copy_in;
        const scalide_status status = call(context, to.data, from.data, bytes_of(to));
        return status == SCALIDE_OK && to.scale ? call(context, to.scale, from.scale, sizeof(float)) : status;
    }
    /// Copies the elements of arrays with strides.
    static void copy_elements(const scalide_array &from, const scalide_array &to, int32_t axis, int64_t from_place, int64_t to_place) {
        const auto width = static_cast<int64_t>(scalide_dtype_size(from.dtype));
        if (axis == from.rank) {
            std::memcpy(static_cast<char *>(to.data) + to_place * width, static_cast<const char *>(from.data) + from_place * width,
                        static_cast<size_t>(width));
            return;
        }
        for (int64_t i = 0; i < from.extent[axis]; ++i)
            copy_elements(from, to, axis + 1, from_place + i * from.stride[axis], to_place + i * to.stride[axis]);
    }

    const scalide_binding &binding_;
    void *memory_ = nullptr;
    scalide_tensor *tensors_ = nullptr;
    uint64_t *indices_ = nullptr;
    size_t count_ = 0;
};

/// Adds policy and hash of the program to the entries of the caller, and saves.
scalide_status save(const scalide_binding &binding, const HostArrays &arrays, const char *folder, int64_t step,
                    const scalide_metadata *metadata, size_t count, const scalide_checkpoint_options *options) {
    scalide_context *context = binding.context;
    auto *entries = static_cast<scalide_metadata *>(allocate((count + 2) * sizeof(scalide_metadata)));
    if (!entries) {
        start_message(context) << "out of memory: cannot allocate the metadata.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    entries[0] = {"scalide.policy", binding.program->numerics};
    entries[1] = {"scalide.program", binding.program->hash};
    std::copy_n(metadata, count, entries + 2);
    const scalide_safetensors_content content = {arrays.tensors(), arrays.count(), entries, count + 2};
    const scalide_status status = scalide_checkpoint_save(folder, step, &content, options, context->message, sizeof(context->message));
    release(entries);
    return report(context, status);
}

} // namespace

scalide_status scalide_binding_save(const scalide_binding *binding, const char *folder, int64_t step, const scalide_metadata *metadata,
                                    size_t metadata_count, const scalide_checkpoint_options *options) {
    const Entry entry(context_of(binding), "scalide_binding_save",
                      {{"folder", folder}, {"metadata", metadata_count == 0 || metadata != nullptr}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    HostArrays arrays(*binding);
    scalide_status status = scalide_synchronise(binding->context);
    if (status == SCALIDE_OK) status = arrays.allocate_copies();
    if (status == SCALIDE_OK) status = arrays.copy(true);
    return status == SCALIDE_OK ? save(*binding, arrays, folder, step, metadata, metadata_count, options) : status;
}

scalide_status scalide_binding_restore(scalide_binding *binding, const char *folder, int64_t step,
                                       const scalide_checkpoint_options *options, int64_t *found) {
    const Entry entry(context_of(binding), "scalide_binding_restore", {{"folder", folder}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    scalide_context *context = binding->context;
    HostArrays arrays(*binding);
    scalide_status status = scalide_synchronise(context);
    if (status == SCALIDE_OK) status = arrays.allocate_copies();
    if (status != SCALIDE_OK) return status;
    scalide_safetensors *file = nullptr;
    int64_t step_of_file = step;
    status = scalide_checkpoint_read(folder, step, options, &file, &step_of_file, context->message, sizeof(context->message));
    if (status != SCALIDE_OK) return report(context, status);
    Text place(context->message, sizeof(context->message), Text::Use::message);
    place << folder << ", step " << step_of_file << ": ";
    const size_t used = std::min(place.size(), sizeof(context->message) - 1);
    status = scalide_checkpoint_restore(file, binding->program->numerics, arrays.tensors(), arrays.count(), context->message + used,
                                        sizeof(context->message) - used);
    scalide_safetensors_close(file);
    if (status != SCALIDE_OK) return report(context, status);
    context->message[0] = 0;
    status = arrays.copy(false);
    if (status == SCALIDE_OK && found) *found = step_of_file;
    return status;
}

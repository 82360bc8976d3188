#include "device_copies.h"

namespace scalide::python {

DeviceCopies::DeviceCopies(scalide_context *context, const std::vector<scalide_array> &arrays) : context_(context) {
    if (scalide_context_device(context) == SCALIDE_CPU) return;
    for (const scalide_array &array : arrays) {
        data_.push_back(array.data ? allocate(data_bytes(array)) : Block(nullptr, Release{context}));
        scales_.push_back(array.scale ? allocate(sizeof(float)) : Block(nullptr, Release{context}));
    }
}

void DeviceCopies::check(scalide_status status) const {
    if (status != SCALIDE_OK) throw Failure(status, scalide_message(context_));
}

DeviceCopies::Block DeviceCopies::allocate(size_t bytes) const {
    void *memory = nullptr;
    check(scalide_allocate(context_, bytes, &memory));
    return Block(memory, Release{context_});
}

const std::vector<scalide_array> &DeviceCopies::seen(const std::vector<scalide_array> &arrays) {
    if (data_.empty()) return arrays;
    seen_ = arrays;
    for (size_t i = 0; i < data_.size(); ++i) {
        seen_[i].data = data_[i].get();
        if (seen_[i].scale) seen_[i].scale = static_cast<float *>(scales_[i].get());
    }
    return seen_;
}

void DeviceCopies::copy_in(size_t argument, const scalide_array &array) const {
    if (data_.empty() || !data_[argument]) return;
    check(scalide_copy_in(context_, data_[argument].get(), array.data, data_bytes(array)));
    if (array.scale) check(scalide_copy_in(context_, scales_[argument].get(), array.scale, sizeof(float)));
}

void DeviceCopies::copy_out(size_t argument, const scalide_array &array) const {
    if (data_.empty() || !data_[argument]) return;
    check(scalide_copy_out(context_, array.data, data_[argument].get(), data_bytes(array)));
    if (array.scale) check(scalide_copy_out(context_, array.scale, scales_[argument].get(), sizeof(float)));
}

} // namespace scalide::python

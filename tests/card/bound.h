#pragma once
#include "card/card.h"
#include <gtest/gtest.h>

namespace scalide {

/// A library in a context of this kind, with its arrays.
class Bound {
public:
    Bound(const CompiledProgram &compiled, int32_t device) : context_(open_context(device)), library_(nullptr, scalide_library_close) {
        scalide_library *loaded = nullptr;
        EXPECT_EQ(context_.status, SCALIDE_OK) << context_.message;
        EXPECT_EQ(scalide_load(context(), compiled.library().c_str(), &loaded), SCALIDE_OK) << scalide_message(context());
        library_.reset(loaded);
        program_ = scalide_library_program(context(), loaded, compiled.name().c_str());
    }
    Bound(const Bound &) = delete;
    Bound &operator=(const Bound &) = delete;
    ~Bound() {
        scalide_binding_destroy(binding_);
        for (void *memory : taken_) scalide_release(context(), memory);
    }

    scalide_context *context() const { return context_.handle.get(); }
    scalide_binding *binding() const { return binding_; }
    const scalide_program *program() const { return program_; }

    scalide_array add(int32_t dtype, std::vector<int64_t> shape, const void *values, size_t bytes, bool scaled = false) {
        const float one = 1;
        float *scale = scaled ? static_cast<float *>(copy(&one, sizeof one)) : nullptr;
        return scalide_dense_array(copy(values, bytes), scale, dtype, static_cast<int32_t>(shape.size()), shape.data());
    }
    scalide_array floats(const std::vector<float> &values) {
        return add(SCALIDE_F32, {std::ssize(values)}, values.data(), values.size() * sizeof(float));
    }
    scalide_status bind(std::vector<scalide_array> arrays) {
        arrays_ = std::move(arrays);
        return scalide_bind(context(), program_, arrays_.data(), arrays_.size(), &binding_);
    }
    void run() {
        ASSERT_EQ(scalide_run(binding_), SCALIDE_OK) << scalide_message(context());
        ASSERT_EQ(scalide_synchronise(context()), SCALIDE_OK) << scalide_message(context());
    }
    const scalide_array &array(size_t index) const { return arrays_[index]; }
    void set(size_t index, const scalide_array &array) {
        arrays_[index] = array;
        ASSERT_EQ(scalide_set_argument(binding_, index, &array), SCALIDE_OK) << scalide_message(context());
    }
    std::vector<float> read(size_t index) const {
        const scalide_array &array = arrays_[index];
        std::vector<float> values(array.rank == 0 ? 1 : static_cast<size_t>(array.extent[0]));
        EXPECT_EQ(scalide_copy_out(context(), values.data(), array.data, values.size() * sizeof(float)), SCALIDE_OK);
        return values;
    }

private:
    void *copy(const void *from, size_t bytes) {
        void *memory = nullptr;
        EXPECT_EQ(scalide_allocate(context(), std::max<size_t>(bytes, 4), &memory), SCALIDE_OK) << scalide_message(context());
        taken_.push_back(memory);
        if (bytes > 0) EXPECT_EQ(scalide_copy_in(context(), memory, from, bytes), SCALIDE_OK) << scalide_message(context());
        return memory;
    }

    OpenedContext context_;
    std::unique_ptr<scalide_library, void (*)(scalide_library *)> library_;
    const scalide_program *program_ = nullptr;
    std::vector<scalide_array> arrays_;
    std::vector<void *> taken_;
    scalide_binding *binding_ = nullptr;
};

} // namespace scalide

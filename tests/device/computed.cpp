// device.computed.*: compares a training step on the emulated GPU, captured as a graph, with the CPU.
#include "elementwise.h"
#include "scalide/plan.h"
#include "standin_driver.h"
#include "training_cpu.h"
#include "training_cuda.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace scalide::test;

namespace {

constexpr int64_t batch = 32;

/// training.scl with its arrays on a device; the same numbers on each.
class Training {
public:
    Training(int32_t device, const scalide_program *program) : context_(device) {
        std::mt19937 draw(1);
        std::normal_distribution<float> normal;
        const auto floats = [&](int64_t count) {
            std::vector<unsigned char> bytes(static_cast<size_t>(4 * count));
            for (int64_t i = 0; i < count; i++) {
                const float value = normal(draw);
                std::memcpy(bytes.data() + 4 * i, &value, 4);
            }
            return bytes;
        };
        /// f16 codes of about 1 / 8 with either sign.
        const auto halves = [&](int64_t count) {
            std::vector<unsigned char> bytes(static_cast<size_t>(2 * count));
            for (int64_t i = 0; i < count; i++) {
                const auto code = static_cast<uint16_t>(0x2c00 + (draw() & 0x83ff));
                std::memcpy(bytes.data() + 2 * i, &code, 2);
            }
            return bytes;
        };
        std::vector<unsigned char> labels(4 * batch, 0);
        for (size_t i = 0; i < batch; i++) labels[4 * i] = static_cast<unsigned char>(draw() % 16);
        add(SCALIDE_F32, {batch, 64}, floats(batch * 64));
        add(SCALIDE_I32, {batch}, labels);
        add(SCALIDE_F32, {}, bytes_of({0.25f}));
        add(SCALIDE_F16, {64, 128}, halves(64 * 128), true);
        add(SCALIDE_F16, {128}, halves(128), true);
        add(SCALIDE_F16, {128, 16}, halves(128 * 16), true);
        add(SCALIDE_F16, {16}, halves(16), true);
        add(SCALIDE_F32, {4}, bytes_of({1, 2, 3, 4}));
        add(SCALIDE_F32, {}, bytes_of({0}));
        EXPECT_EQ(scalide_bind(context_.handle, program, arrays_.data(), arrays_.size(), &binding_), SCALIDE_OK)
            << scalide_message(context_.handle);
        const scalide_status captured = scalide_capture(binding_);
        EXPECT_EQ(captured, device == SCALIDE_CUDA ? SCALIDE_OK : SCALIDE_UNSUPPORTED) << scalide_message(context_.handle);
    }
    ~Training() {
        scalide_binding_destroy(binding_);
        scalide_release(context_.handle, arena_);
        for (const scalide_array &array : arrays_) {
            scalide_release(context_.handle, array.data);
            if (array.scale) scalide_release(context_.handle, array.scale);
        }
    }
    Training(const Training &) = delete;
    Training &operator=(const Training &) = delete;

    float step() {
        EXPECT_EQ(scalide_run(binding_), SCALIDE_OK) << scalide_message(context_.handle);
        EXPECT_EQ(scalide_synchronise(context_.handle), SCALIDE_OK) << scalide_message(context_.handle);
        return read(arrays_.back().data);
    }
    /// Goes on with a further binding, whose intermediate values are in memory of the test.
    void take_further_binding() {
        scalide_binding *further = nullptr;
        EXPECT_EQ(scalide_bind_like(context_.handle, binding_, arrays_.data(), arrays_.size(), &further), SCALIDE_OK)
            << scalide_message(context_.handle);
        scalide_binding_destroy(binding_);
        binding_ = further;
        const size_t bytes = scalide_arena_bytes(binding_);
        EXPECT_EQ(scalide_allocate(context_.handle, bytes + 256, &arena_), SCALIDE_OK);
        const uintptr_t aligned = (reinterpret_cast<uintptr_t>(arena_) + 255) / 256 * 256;
        EXPECT_EQ(scalide_set_arena(binding_, reinterpret_cast<void *>(aligned), bytes), SCALIDE_OK) << scalide_message(context_.handle);
        EXPECT_EQ(scalide_set_arena(binding_, reinterpret_cast<void *>(aligned + 32), bytes), SCALIDE_INVALID_ARGUMENT);
    }
    void take_own_arena() { EXPECT_EQ(scalide_set_arena(binding_, nullptr, 0), SCALIDE_OK) << scalide_message(context_.handle); }
    float scale_of_weights() { return read(arrays_[3].scale); }
    std::vector<float> history() {
        std::vector<float> values;
        for (int i = 0; i < 4; i++) values.push_back(read(static_cast<float *>(arrays_[7].data) + i));
        return values;
    }

private:
    static std::vector<unsigned char> bytes_of(const std::vector<float> &values) {
        std::vector<unsigned char> bytes(4 * values.size());
        std::memcpy(bytes.data(), values.data(), bytes.size());
        return bytes;
    }

    void add(int32_t dtype, const std::vector<int64_t> &shape, const std::vector<unsigned char> &bytes, bool is_scaled = false) {
        auto *scale = is_scaled ? static_cast<float *>(place(bytes_of({1}))) : nullptr;
        arrays_.push_back(scalide_dense_array(place(bytes), scale, dtype, static_cast<int32_t>(shape.size()), shape.data()));
    }
    void *place(const std::vector<unsigned char> &bytes) {
        void *memory = nullptr;
        EXPECT_EQ(scalide_allocate(context_.handle, bytes.size(), &memory), SCALIDE_OK);
        EXPECT_EQ(scalide_copy_in(context_.handle, memory, bytes.data(), bytes.size()), SCALIDE_OK);
        return memory;
    }
    float read(const void *memory) {
        float value = NAN;
        EXPECT_EQ(scalide_copy_out(context_.handle, &value, memory, sizeof value), SCALIDE_OK);
        return value;
    }

    Context context_;
    std::vector<scalide_array> arrays_;
    scalide_binding *binding_ = nullptr;
    void *arena_ = nullptr; ///< of take_further_binding
};

} // namespace

/// Scales and histories are equal; sums of products are added in another order, so losses are equal within a few of their roundings.
TEST(computed, a_captured_training_step_is_that_of_the_cpu) {
    const Computing computing;
    Training card(SCALIDE_CUDA, training_cuda_program()), cpu(SCALIDE_CPU, training_cpu_program());
    float first = 0, last = 0;
    for (int i = 0; i < 6; i++) {
        const float expected = cpu.step();
        last = card.step();
        if (i == 0) first = last;
        EXPECT_NEAR(last, expected, 2e-4f * expected) << "step " << i;
        EXPECT_EQ(card.scale_of_weights(), cpu.scale_of_weights()) << "step " << i;
        EXPECT_EQ(card.history(), cpu.history()) << "step " << i;
    }
    EXPECT_LT(last, first);
}

TEST(computed, a_further_binding_trains_on) {
    const Computing computing;
    Training card(SCALIDE_CUDA, training_cuda_program()), cpu(SCALIDE_CPU, training_cpu_program());
    for (int i = 0; i < 4; i++) {
        const float expected = cpu.step();
        EXPECT_NEAR(card.step(), expected, 2e-4f * expected) << "step " << i;
        EXPECT_EQ(card.scale_of_weights(), cpu.scale_of_weights()) << "step " << i;
        if (i == 0) card.take_further_binding(), cpu.take_further_binding();
        if (i == 2) card.take_own_arena(), cpu.take_own_arena();
    }
}

#include "card/bound.h"
#include "tool/common.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

// card.trainings.*: fifty steps of a classifier in each policy that trains, on a GPU and on the CPU: the same losses. The state of a run,
// also that of the policy (histories of the largest magnitudes, the number of the step), stays on the device.

namespace scalide {

namespace {

const char *const training_text = R"(
program model(x: f32[32, 128], y: i32[32], w1: f32[128, 128], c1: f32[128], w2: f32[128, 32], c2: f32[32]) -> (loss: f32[]) {
  d1 = dot_general(x, w1) {contract: [[1], [0]]}
  b1 = broadcast_in_dim(c1) {dims: [1], shape: [32, 128]}
  z1 = add(d1, b1)
  h1 = gelu(z1)
  d2 = dot_general(h1, w2) {contract: [[1], [0]]}
  b2 = broadcast_in_dim(c2) {dims: [1], shape: [32, 32]}
  z2 = add(d2, b2)
  e = softmax_cross_entropy(z2, y)
  loss = mean(e) {axes: [0]}
}
program training(x: f32[32, 128], y: i32[32], w1: f32[128, 128] inout, c1: f32[128] inout, w2: f32[128, 32] inout, c2: f32[32] inout)
    -> (loss: f32[], w1 = w1_next, c1 = c1_next, w2 = w2_next, c2 = c2_next) {
  loss, g1, e1, g2, e2 = value_and_grad(x, y, w1, c1, w2, c2) {program: model, wrt: [w1, c1, w2, c2]}
  u1 = mul(g1, 0.25)
  w1_next = sub(w1, u1)
  v1 = mul(e1, 0.25)
  c1_next = sub(c1, v1)
  u2 = mul(g2, 0.25)
  w2_next = sub(w2, u2)
  v2 = mul(e2, 0.25)
  c2_next = sub(c2, v2)
}
)";
constexpr int64_t batch = 32, classes = 32;

/// SCALIDE_CARD_STEPS shortens the trainings where the GPU is emulated.
int steps() {
    const char *given = std::getenv("SCALIDE_CARD_STEPS");
    return given != nullptr ? std::atoi(given) : 50;
}

std::unique_ptr<CompiledProgram> compile_training(const std::filesystem::path &source, const std::string &policy,
                                                  const std::string &target) {
    ProgramOptions options;
    options.program = source.string();
    options.numerics = policy;
    const Rulebook rulebook = options.load_rulebook();
    return std::make_unique<CompiledProgram>(options.load_program(rulebook), rulebook, options.load_numerics(), target);
}

/// The step on one device. Parameters begin as the same random numbers everywhere, and batches follow each other as the same.
class Training {
public:
    Training(const std::filesystem::path &source, const std::string &policy, int32_t device, const std::string &target)
        : compiled_(compile_training(source, policy, target)), bound_(*compiled_, device) {
        std::vector<scalide_array> arrays(scalide_argument_count(bound_.program()));
        check(scalide_shape_arguments(bound_.context(), bound_.program(), nullptr, 0, arrays.data(), arrays.size()));
        check(scalide_initial_state(bound_.context(), bound_.program(), arrays.data(), arrays.size()));
        std::vector<std::string> parameters;
        for (size_t i = 0; i < arrays.size(); i++) {
            scalide_argument_info info = {};
            check(scalide_describe_argument(bound_.program(), i, &info));
            const std::vector<char> zeros(bytes_of(arrays[i]));
            arrays[i] = bound_.add(info.dtype, {arrays[i].extent, arrays[i].extent + info.rank}, zeros.data(), zeros.size(), info.scaled);
            if (info.role == SCALIDE_INOUT) parameters.emplace_back(info.name);
        }
        check(scalide_initial_state(bound_.context(), bound_.program(), arrays.data(), arrays.size()));
        check(bound_.bind(std::move(arrays)));
        for (const std::string &name : parameters) begin(name);
    }

    /// Runs one step on the next batch and returns its loss. Class c has the largest of its 4 features x[4 c] to x[4 c + 3] added.
    float step() {
        std::vector<float> x(batch * 128);
        std::vector<int32_t> y(batch);
        for (float &value : x) value = normal();
        for (size_t row = 0; row < batch; row++) {
            y[row] = static_cast<int32_t>(random_() % classes);
            for (size_t i = 0; i < 4; i++) x[row * 128 + static_cast<size_t>(y[row]) * 4 + i] += 3;
        }
        write("x", SCALIDE_F32, x.data());
        write("y", SCALIDE_I32, y.data());
        bound_.run();
        return bound_.read(index_of("loss"))[0];
    }

private:
    void check(scalide_status status) const {
        if (status != SCALIDE_OK) throw std::runtime_error(scalide_message(bound_.context()));
    }
    float normal() { return static_cast<float>(static_cast<int32_t>(random_() % 2001) - 1000) * 0.001f; }
    size_t index_of(const std::string &name) const { return static_cast<size_t>(scalide_find_argument(bound_.program(), name.c_str())); }
    /// Weights are random, of the size that keeps sums near 1, and biases are 0.
    void begin(const std::string &name) {
        const scalide_array &array = bound_.array(index_of(name));
        std::vector<float> values(count_of(array));
        if (array.rank == 2)
            for (float &value : values) value = 0.15f * normal();
        write(name, SCALIDE_F32, values.data());
    }
    /// Converts an array of the host to the format of the argument, and copies it there.
    void write(const std::string &name, int32_t dtype, const void *values) {
        const scalide_array &array = bound_.array(index_of(name));
        const scalide_array from = scalide_dense_array(const_cast<void *>(values), nullptr, dtype, array.rank, array.extent);
        std::vector<char> data(bytes_of(array));
        float scale = 1;
        scalide_array to = scalide_dense_array(data.data(), array.scale ? &scale : nullptr, array.dtype, array.rank, array.extent);
        check(scalide_convert(bound_.context(), &from, &to));
        check(scalide_copy_in(bound_.context(), array.data, data.data(), data.size()));
        if (array.scale) check(scalide_copy_in(bound_.context(), array.scale, &scale, sizeof scale));
    }
    static size_t count_of(const scalide_array &array) {
        size_t count = 1;
        for (int32_t axis = 0; axis < array.rank; axis++) count *= static_cast<size_t>(array.extent[axis]);
        return count;
    }
    static size_t bytes_of(const scalide_array &array) { return count_of(array) * scalide_dtype_size(array.dtype); }

    std::unique_ptr<CompiledProgram> compiled_;
    Bound bound_;
    std::mt19937 random_{1};
};

/// A policy, and how far the loss of a step may be from the CPU's, as a part of it. A GPU adds in another order, so a value near the middle
/// of two codes becomes the other code: one part in 256 (bf16), 2048 (f16) or 16 (e4m3) of this value. With sums of f32 in another order
/// (the emulated GPU) the largest differences were 4e-7 (f32), 9e-4 (bf16), 2e-4 (f16) and 1.4e-2 (f8_block). Tensor cores add f8 products
/// in 14 bits.
struct Row {
    const char *policy;
    double tolerance;
};

class trainings : public testing::TestWithParam<Row> {};

} // namespace

TEST_P(trainings, have_the_losses_of_the_cpu) {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    const test::Folder folder;
    const std::filesystem::path source = folder.path / "training.scl";
    std::ofstream(source) << training_text;
    Training card(source, GetParam().policy, SCALIDE_CUDA, "cuda"), cpu(source, GetParam().policy, SCALIDE_CPU, "host");
    double first = 0, last = 0, worst = 0;
    for (int i = 0; i < steps(); i++) {
        const double here = card.step(), there = cpu.step();
        ASSERT_NEAR(here, there, GetParam().tolerance * there) << "step " << i;
        worst = std::max(worst, std::abs(here - there) / there);
        if (i == 0) first = here;
        last = here;
    }
    EXPECT_LT(last, (steps() < 50 ? 0.9 : 0.25) * first);
    std::printf("%s: loss %.3f to %.3f, at most %.1e from the CPU's\n", GetParam().policy, first, last, worst);
}

INSTANTIATE_TEST_SUITE_P(, trainings,
                         testing::Values(Row{"f32", 1e-5}, Row{"bf16", 0.01}, Row{"f16_master", 0.01}, Row{"f16_scaled", 0.01},
                                         Row{"f8_scaled", 0.05}, Row{"f8_master", 0.05}, Row{"f8_delayed", 0.05}, Row{"f8_block", 0.05},
                                         Row{"f8_row", 0.05}, Row{"mxfp8", 0.05}),
                         [](const auto &row) { return std::string(row.param.policy); });

} // namespace scalide

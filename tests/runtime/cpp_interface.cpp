// scalide.hpp, compiled as C++17 without warnings. The program is sample_program.c.
#include "constants_program.h"
#include "sample_program.h"
#include "scalide/checkpoints.hpp"
#include "support/folder.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace {

using namespace scalide::runtime;
using scalide::test::Folder;

/// Returns the message of the Error that an action must throw.
template<typename Action>
std::string error_of(const Action &action) {
    try {
        action();
    } catch (const Error &error) {
        EXPECT_NE(error.status(), SCALIDE_OK);
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
}

std::vector<float> numbers(size_t count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 5);
    return values;
}

TEST(cpp_interface, runs_a_program_whose_arrays_the_binding_allocates) {
    const Context context(2);
    EXPECT_EQ(context.threads(), 2);
    EXPECT_EQ(context.device_name(), "cpu");
    const Program program = sample_program();
    State state(context, program);
    state["w"].set(std::vector<float>{0.5f, 1, 1.5f, 2});
    Binding binding = Binding::allocate(context, program, {{"b", 6}}, state);
    binding["x"].set(numbers(24));
    binding.run();
    EXPECT_EQ(binding["y"].shape(), Shape{6});
    EXPECT_EQ(binding["y"].get()[0], 0 + 1 + 3 + 6);
    EXPECT_EQ(binding.symbol("b"), 6);
    EXPECT_EQ(binding.step_count(), 3u);
    EXPECT_GT(binding["mean"].item(), 0);
    EXPECT_TRUE(state["w"].is_scaled());
    EXPECT_EQ(state["w"].scale(), 4); // the runs doubles the scale 2
    EXPECT_EQ(state.bytes(), 4 * sizeof(float) + sizeof(float));
}

TEST(cpp_interface, runs_a_program_on_arrays_of_the_caller) {
    const Context context(1);
    const Program program = sample_program();
    std::vector<float> x = numbers(24), y(6);
    alignas(64) float w[] = {1, 2, 3, 4};
    float scale = 0.5f, mean = 0;
    Binding binding(context, program, {{"x", {x, {6, 4}}}, {"w", {w, SCALIDE_F32, {4}, &scale}}, {"y", y}, {"mean", mean}});
    binding.run();
    EXPECT_EQ(y[0], (2 + 6 + 12) * 0.5f);
    EXPECT_GT(mean, 0);
    EXPECT_EQ(scale, 1);
    std::vector<float> other = numbers(24);
    other[1] = 100;
    binding.set("x", {other, {6, 4}});
    const Binding moved = std::move(binding);
    EXPECT_EQ(error_of([&] { binding.run(); }), "this Binding is empty. Do not use it after a move.");
    EXPECT_EQ(moved["x"].get()[1], 100);
}

TEST(cpp_interface, allocates_missing_outputs) {
    const Context context(1);
    std::vector<float> x = numbers(8);
    Binding binding(context, sample_program(), State(context, sample_program()), {{"x", {x, {2, 4}}}});
    binding.run();
    EXPECT_EQ(binding["y"].get(), (std::vector<float>{0, 0}));
}

TEST(cpp_interface, keeps_everything_alive_that_a_binding_uses) {
    Binding binding = [] {
        const Context context(1);
        const Program program = load(context, SCALIDE_SAMPLE_LIBRARY, "sample");
        return Binding::allocate(context, program, {{"b", 2}});
    }();
    binding["w"].set(1);
    binding["x"].set(1.0);
    binding.run();
    EXPECT_EQ(binding["y"].get<int32_t>(), (std::vector<int32_t>{4, 4}));
    int seen = 0;
    binding.run_traced([&](const scalide_traced &, const scalide_array &) { ++seen; });
    EXPECT_GT(seen, 3);
    EXPECT_EQ(binding.run_checked().buffer, nullptr);
}

TEST(cpp_interface, interrupts_only_loops) {
    const Context context(2), empty(nullptr);
    Binding binding = Binding::allocate(context, sample_program(), {{"b", 6}});
    context.interrupt();
    binding.run();
    empty.interrupt();
}

TEST(cpp_interface, profiles_the_steps) {
    const Context context(2);
    Binding binding = Binding::allocate(context, sample_program(), {{"b", 6}});
    const std::vector<scalide_step_profile> steps = binding.profile(3);
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_STREQ(steps[0].name, "rows");
    EXPECT_EQ(steps[0].bytes, sizeof(float) * (24 + 4 + 1 + 6 + 6)); // x, w, its scale, h, y
    for (const scalide_step_profile &step : steps) EXPECT_TRUE(step.seconds >= 0 && step.seconds < 1e6);
    EXPECT_EQ(error_of([&] { binding.profile(0); }),
              "sample: scalide_profile needs at least 1 run and an entry for each of the 3 steps, got 0 runs and 3 entries.");
    EXPECT_EQ(scalide_profile(binding.handle(), 1, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
}

TEST(cpp_interface, binds_crops_of_larger_arrays) {
    const Context context(1);
    std::vector<float> memory(10 * 8, -1), results(16, -1);
    const Array whole(memory, {10, 8}), x = whole.crop({2, 3}, {6, 4}), y = Array(results).crop({1}, {6}, {2});
    EXPECT_EQ(x.strides(), (Shape{8, 1}));
    EXPECT_EQ(y.strides(), Shape{2});
    EXPECT_FALSE(x.is_dense() || y.is_dense());
    Array(x).set(numbers(24));
    EXPECT_EQ(x.get(), numbers(24));
    EXPECT_EQ(memory[2 * 8 + 4], 1);
    EXPECT_EQ(std::count(memory.begin(), memory.end(), -1.0f), 80 - 24);
    std::vector<float> w{0.5f, 1, 1.5f, 2};
    State state(context, sample_program());
    state["w"].set(w);
    Binding binding(context, sample_program(), state, {{"x", x}, {"y", y}});
    EXPECT_EQ(binding.copied_bytes("x"), 24 * sizeof(float));
    EXPECT_EQ(binding.copied_bytes("y"), 6 * sizeof(float));
    EXPECT_EQ(binding.copied_bytes("w"), 0u);
    binding.run();
    EXPECT_EQ(binding["y"].get()[0], 0 + 1 + 3 + 6);
    EXPECT_EQ(results[1], 0 + 1 + 3 + 6);
    EXPECT_EQ(results[2], -1);
    const Array bits(context, SCALIDE_F32, {6});
    Array(y).set_bits(bits.descriptor());
    EXPECT_EQ(results[1], 0);
    EXPECT_EQ(results[2], -1);
    EXPECT_EQ(whole.crop({1, 1}, {2, 2}, {3, 2}).crop({1, 0}, {1, 2}).get(), (std::vector<float>{memory[4 * 8 + 1], memory[4 * 8 + 3]}));
    EXPECT_EQ(Array::strided(&memory[1], SCALIDE_F32, {3}, {-1}).crop({1}, {1}).get()[0], memory[0]);
    EXPECT_EQ(whole.crop({10, 0}, {0, 8}).size(), 0u);
    EXPECT_EQ(error_of([&] {
                  whole.crop({2, 3}, {9, 4});
              }),
              "a crop must be inside of the array [10, 8], got the shape [9, 4] from [2, 3] in steps of [1, 1].");
    EXPECT_EQ(error_of([&] {
                  whole.crop({0, 0}, {2, 5}, {1, 2});
              }),
              "a crop must be inside of the array [10, 8], got the shape [2, 5] from [0, 0] in steps of [1, 2].");
    EXPECT_EQ(error_of([&] {
                  whole.crop({10, 0}, {1, 8});
              }),
              "a crop must be inside of the array [10, 8], got the shape [1, 8] from [10, 0] in steps of [1, 1].");
    EXPECT_EQ(error_of([&] {
                  Array::strided(memory.data(), SCALIDE_F32, {2, 2}, {4});
              }),
              "an array of shape [2, 2] needs a stride for each axis, got [4].");
}

TEST(cpp_interface, names_the_arguments_that_are_wrong) {
    const Context context(1);
    const Program program = sample_program();
    std::vector<float> x = numbers(24);
    EXPECT_EQ(error_of([&] {
                  Binding(context, program, {{"x", {x, {6, 4}}}});
              }),
              "sample: these arrays are missing: w. Pass them by name, pass a State, or use Binding::allocate.");
    EXPECT_EQ(error_of([&] { Binding(context, program, NamedArrays{}); }),
              "sample: these arrays are missing: x, w. Pass them by name, pass a State, or use Binding::allocate.");
    EXPECT_EQ(error_of([&] {
                  Binding(context, program, State(context, program), {{"xs", {x, {6, 4}}}});
              }),
              "unknown argument 'xs' of sample. Did you mean 'x'? Known: x, w, y, mean.");
    EXPECT_EQ(error_of([&] { Binding::allocate(context, program, {{"batch", 6}}); }), "unknown symbol 'batch' of sample. Known: b.");
    EXPECT_EQ(error_of([&] { Binding::allocate(context, program, {}); }),
              "sample: symbol b has no value. Pass {{\"b\", 64}}, for example.");
    EXPECT_EQ(error_of([&] { Binding::allocate(context, program, {{"b", 7}}); }), "sample: b must be a multiple of 2 in [2, 1024], got 7.");
    Binding binding = Binding::allocate(context, program, {{"b", 6}});
    EXPECT_EQ(error_of([&] { binding["meam"]; }), "unknown argument 'meam' of sample. Did you mean 'mean'? Known: x, w, y, mean.");
    EXPECT_EQ(error_of([&] { binding.symbol("c"); }), "unknown symbol 'c' of sample. Did you mean 'b'? Known: b.");
    EXPECT_EQ(error_of([&] { State(context, program)["v"]; }), "unknown state 'v' of sample. Did you mean 'w'? Known: w.");
    EXPECT_EQ(error_of([&] {
                  binding.set("x", {x, {3, 8}});
              }),
              "sample.x: extent 0 must be 6, got 3. Pass an array of shape [b, 4] with b = 6.");
    alignas(64) float w[5] = {};
    float scale = 1;
    EXPECT_NE(error_of([&] {
                  binding.set("w", {w + 1, SCALIDE_F32, {4}, &scale});
              }).find("sample.w: data must be aligned to 64 bytes"),
              std::string::npos);
    EXPECT_NE(error_of([&] { Context(-1); }).find("threads must be in"), std::string::npos);
    EXPECT_NE(error_of([&] { load(context, "/nowhere.so", "step"); }).find("/nowhere.so"), std::string::npos);
    EXPECT_NE(error_of([&] { load(context, SCALIDE_SAMPLE_LIBRARY, "step"); }).find("no program 'step'"), std::string::npos);
}

TEST(cpp_interface, clones_a_binding_for_another_thread) {
    const Context context(1);
    Binding binding = Binding::allocate(context, sample_program(), {{"b", 6}});
    alignas(64) char arena[4096];
    std::vector<float> y;
    std::thread([&] {
        const Context own(1);
        State state(own, sample_program());
        state["w"].set(std::vector<float>{1, 2, 3, 4});
        Array x(own, SCALIDE_F32, {6, 4});
        x.set(1);
        NamedArrays arrays = state.arrays();
        arrays["x"] = x;
        Binding further = binding.clone(own, arrays);
        ASSERT_LE(further.arena_bytes(), sizeof(arena));
        further.set_arena(arena, sizeof(arena));
        further.run();
        y = further["y"].get();
    }).join();
    EXPECT_EQ(y, std::vector<float>(6, 10));
    EXPECT_EQ(error_of([&] { binding.clone(context, {}); }), "sample: these arrays are missing: x, w. Pass them by name.");
}

/// Throws because another thread is in a run of the context.
TEST(cpp_interface, says_that_another_thread_uses_the_context) {
    const Context context(1);
    Binding binding = Binding::allocate(context, sample_program(), {{"b", 6}});
    std::string message;
    binding.run_traced(
        [&](const scalide_traced &, const scalide_array &) { std::thread([&] { message = error_of([&] { binding.run(); }); }).join(); });
    EXPECT_EQ(message, "another thread uses the context");
}

TEST(cpp_interface, refuses_the_state_of_another_program) {
    const Context context(1);
    scalide_program other = *sample_program();
    scalide_argument arguments[4];
    std::copy(other.arguments, other.arguments + 4, arguments);
    other.name = "other";
    other.arguments = arguments;
    const State of_sample(context, sample_program());
    arguments[1].name = "v";
    const std::string renamed = error_of([&] { Binding::allocate(context, &other, {{"b", 6}}, of_sample); });
    EXPECT_EQ(renamed, "this State is of program sample, but the Binding is of program other, which has no argument w of type scaled "
                       "f32[4]. Pass a State of other.");
    EXPECT_EQ(error_of([&] { Binding(context, &other, of_sample); }), renamed);
    arguments[1].name = "w";
    Binding::allocate(context, &other, {{"b", 6}}, of_sample).run(); // the same arrays fit
}

TEST(cpp_interface, converts_between_numbers_and_formats) {
    const Context context(1);
    Array array(context, SCALIDE_F8_E4M3FN, {2, 2}, true);
    array.set(std::vector<double>{1e-9, -2e-9, 3e-9, 4e-9});
    EXPECT_EQ(array.get<float>()[3], array.get<double>()[3]);
    EXPECT_NEAR(array.get<double>()[2], 3e-9, 1e-10);
    EXPECT_EQ(array.bytes(), 4 + sizeof(float));
    array.set(2);
    EXPECT_EQ(array.get<int32_t>(), (std::vector<int32_t>{2, 2, 2, 2}));
    std::vector<int64_t> wide{int64_t{1} << 60, -1};
    Array indices(wide, {2});
    EXPECT_EQ(indices.dtype(), SCALIDE_I64);
    EXPECT_EQ(indices.get<int64_t>(), wide);
    EXPECT_EQ(indices.get<int32_t>(), (std::vector<int32_t>{0, -1}));
    EXPECT_EQ(error_of([&] { array.set(numbers(3)); }), "an array of shape [2, 2] has 4 elements, got 3.");
    EXPECT_EQ(error_of([&] { array.item(); }), "item() needs an array with one element, got the shape [2, 2].");
    std::vector<float> three = numbers(3);
    EXPECT_EQ(error_of([&] { Array(three, {2, 2}); }), "the vector must have the 4 elements of the shape [2, 2], got 3.");
    EXPECT_EQ(error_of([&] {
                  Array(context, SCALIDE_F32, {int64_t{1} << 32, int64_t{1} << 32});
              }),
              "an array must have at most 2146435072 elements, got the shape [4294967296, 4294967296]. Split the array.");
    EXPECT_EQ(error_of([&] {
                  Array(three, {3, INT64_MAX, 2});
              }),
              "an array must have at most 2146435072 elements, got the shape [3, 9223372036854775807, 2]. Split the array.");
    EXPECT_EQ(Array(context, SCALIDE_F32, {int64_t{1} << 32, int64_t{1} << 32, 0}).size(), 0u);
    EXPECT_EQ(error_of([&] { Array(context, 99, {2}); }), "unknown dtype 99. Use a scalide_dtype.");
    EXPECT_EQ(error_of([&] { Array(context, SCALIDE_F32, {-1}); }), "a shape must have at most 8 extents, all at least 0, got [-1].");
    EXPECT_EQ(error_of([&] { array.set_bits(Array(three).descriptor()); }),
              "the array must be scaled f8_e4m3fn[2, 2], got f32[3]. Use set to convert it.");
    Array shared = array;
    shared.set(5);
    EXPECT_EQ(array.get()[0], 5);
    const Array moved = std::move(array);
    EXPECT_EQ(error_of([&] { array.get(); }), "this Array is empty. Allocate it before use; do not use it after a move.");
    EXPECT_EQ(error_of([&] { Program().name(); }), "this Program is empty. Pass the result of a function <name>_program().");
    EXPECT_EQ(error_of([&] { Context(nullptr).threads(); }), "this Context is empty. Create it before use; do not use it after a move.");
    std::vector<float> none;
    EXPECT_EQ(Array(none).get(), none);
}

TEST(cpp_interface, saves_and_loads_a_state) {
    const Context context(1);
    const Program program = sample_program();
    State state(context, program);
    state["w"].set(std::vector<float>{1, -2, 3, 1e-20f});
    const Folder folder;
    const std::string path = folder.file("state.safetensors");
    state.save(path, {{"step", "7"}});
    State other(context, program);
    other.load(path);
    EXPECT_EQ(other["w"].get(), state["w"].get());
    EXPECT_EQ(other["w"].scale(), state["w"].scale());
    scalide_safetensors *file = nullptr;
    ASSERT_EQ(scalide_safetensors_read(path.c_str(), &file, nullptr, 0), SCALIDE_OK);
    EXPECT_STREQ(scalide_safetensors_metadata(file, "scalide.policy"), "name: plain");
    EXPECT_STREQ(scalide_safetensors_metadata(file, "scalide.program"), "0123");
    EXPECT_STREQ(scalide_safetensors_metadata(file, "step"), "7");
    scalide_safetensors_close(file);
    EXPECT_NE(error_of([&] { other.load(folder.file("none")); }).find("none"), std::string::npos);
}

/// Writes one tensor and returns the message of State::load.
std::string loading(const char *name, scalide_array array, const char *policy) {
    const Folder folder;
    const std::string path = folder.file("f");
    const scalide_tensor tensor = {name, array};
    const scalide_metadata metadata = {"scalide.policy", policy};
    const scalide_safetensors_content content = {&tensor, 1, &metadata, policy ? size_t{1} : size_t{0}};
    EXPECT_EQ(scalide_safetensors_write(path.c_str(), &content, nullptr, 0), SCALIDE_OK);
    const Context context(1);
    State state(context, sample_program());
    const std::string message = error_of([&] { state.load(path); });
    EXPECT_EQ(state["w"].get(), std::vector<float>(4)); // nothing was written
    return message.substr(path.size());
}

TEST(cpp_interface, load_says_why_a_file_does_not_fit) {
    float data[6] = {1, 2, 3, 4, 5, 6}, scale = 1;
    const int64_t four = 4, six = 6;
    EXPECT_EQ(
        loading("w", scalide_dense_array(data, &scale, SCALIDE_F32, 1, &four), "f8_scaled"),
        ": the file has arrays of policy f8_scaled, but the program has policy name: plain. Convert the file with 'scalide convert'.");
    EXPECT_EQ(loading("w", scalide_dense_array(data, nullptr, SCALIDE_F32, 1, &four), nullptr),
              ": w must be scaled f32[4] for policy name: plain, got f32[4]. Convert the file with 'scalide convert'.");
    EXPECT_EQ(loading("w", scalide_dense_array(data, &scale, SCALIDE_F32, 1, &six), "name: plain"),
              ": w must be scaled f32[4] for policy name: plain, got scaled f32[6]. Convert the file with 'scalide convert'.");
    EXPECT_NE(loading("v", scalide_dense_array(data, &scale, SCALIDE_F32, 1, &four), nullptr).find("'w'"), std::string::npos);
}

TEST(cpp_interface, constants_are_prepared_once_and_replaced) {
    const scalide::test::WeightedPlan plan;
    const Context context(1);
    const Program program(&plan.main);
    Array w(context, SCALIDE_F32, {4});
    w.set(std::vector<float>{1, 1, 1, 1});
    const Constants ones(context, program, {{"w", w}});
    w.set(std::vector<float>{2, 2, 2, 2});
    const Constants twos(context, program, {{"w", w}});
    EXPECT_EQ(ones.bytes(), 64u); // 16 bytes, rounded up
    Binding binding = Binding::allocate(context, program, {{"b", 2}}, ones);
    binding["x"].set(std::vector<float>{1, 3});
    binding.run();
    EXPECT_EQ(binding["y"].get(), (std::vector<float>{8, 24}));
    binding.replace(twos);
    binding.run();
    EXPECT_EQ(binding["y"].get(), (std::vector<float>{16, 48}));
    Binding by_name = Binding::allocate(context, program, {{"b", 1}}, {{"w", w}});
    by_name["x"].set(1.0f);
    by_name.run();
    EXPECT_EQ(by_name["y"].item(), 16);

    EXPECT_EQ(
        error_of([&] {
            Binding::allocate(context, program, {{"b", 1}});
        }),
        "weighted: these constants are missing: w. They must have their values before the program is bound. Pass Constants, or pass them "
        "by name.");
    EXPECT_EQ(error_of([&] { Constants(context, program, {}); }), "weighted: these constants are missing: w. Pass them by name.");
    EXPECT_NE(error_of([&] { Constants(context, program, {{"w", w}, {"x", w}}); }).find("unknown constant 'x'"), std::string::npos);
    EXPECT_NE(error_of([&] { binding["w"]; }).find("a constant that was prepared has no array"), std::string::npos);
    EXPECT_NE(error_of([&] { binding.replace(Constants()); }).find("these Constants are empty"), std::string::npos);
}

TEST(cpp_interface, saves_and_restores_checkpoints) {
    const Folder folder;
    const Context context(1);
    State state(context, sample_program());
    std::vector<uint32_t> key = {1, 2};
    for (const auto format : {SCALIDE_CHECKPOINT_SAFETENSORS, SCALIDE_CHECKPOINT_FLAX}) {
        CheckpointOptions options;
        options.keep = 2;
        options.format = format;
        const Checkpoints checkpoints(folder.file(std::to_string(format)), options);
        EXPECT_EQ(checkpoints.latest(), SCALIDE_LATEST_STEP);
        for (int64_t step = 1; step < 4; ++step) {
            state["w"].set(std::vector<float>(4, static_cast<float>(step)));
            key[0] = static_cast<uint32_t>(step);
            checkpoints.save(step, state, {{"key", Array(key)}});
        }
        EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{2, 3}));
        EXPECT_EQ(checkpoints.restore(state, {{"key", Array(key)}}, 2), 2);
        EXPECT_EQ(state["w"].get(), std::vector<float>(4, 2));
        EXPECT_EQ(key[0], 2u);
        EXPECT_NE(error_of([&] { checkpoints.restore(state); }).find("step 3: the file must have the arrays of the program"),
                  std::string::npos);
        EXPECT_NE(error_of([&] { checkpoints.save(3, state); }).find("step must be greater than the latest checkpoint"), std::string::npos);
        EXPECT_EQ(error_of([&] {
                      checkpoints.save(9, state, {{"w", Array(key)}});
                  }),
                  "the state has an array of the name 'w' already. Rename the further array.");
        EXPECT_EQ(state["w"].get(), std::vector<float>(4, 2));
    }
    const std::string file = folder.file("arrays.msgpack");
    write_flax(file, {{"w", state["w"]}, {"opt.key", Array(key)}});
    const NamedArrays arrays = read_arrays(context, file);
    EXPECT_EQ(arrays.size(), 2u);
    EXPECT_TRUE(arrays.at("w").is_scaled());
    EXPECT_EQ(arrays.at("w").get(), std::vector<float>(4, 2));
    EXPECT_EQ(arrays.at("opt.key").get<uint32_t>(), key);
    state.save(folder.file("x.safetensors"));
    EXPECT_EQ(read_arrays(context, folder.file("x.safetensors")).at("w").get(), std::vector<float>(4, 2));
    EXPECT_NE(error_of([&] { read_arrays(context, folder.file("none")); }).find("cannot read this file"), std::string::npos);
}

} // namespace

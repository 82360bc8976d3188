#include "fixture.h"
#include <cmath>
#include <functional>
#include <string>

using namespace scalide::test;

namespace {

/// The copy of the sample program that a case may change.
struct Program {
    scalide_program program = *sample_program();
    std::vector<scalide_symbol> symbols{program.symbols, program.symbols + program.symbol_count};
    std::vector<scalide_buffer> buffers{program.buffers, program.buffers + program.buffer_count};
    std::vector<scalide_argument> arguments{program.arguments, program.arguments + program.argument_count};
    std::vector<scalide_step> steps{program.steps, program.steps + program.step_count};
    std::vector<scalide_operand> operands{steps[0].operands, steps[0].operands + steps[0].operand_count}; ///< of the first step
    scalide_requirement requirement;
    scalide_variant variant;
    Program() {
        steps[0].operands = operands.data();
        program.steps = steps.data();
        program.symbols = symbols.data();
        program.buffers = buffers.data();
        program.arguments = arguments.data();
    }

    void require(const char *rule, const scalide_extent &surplus) {
        requirement = {"dynamic_slice.sizes", rule, &surplus};
        program.requirements = &requirement;
        program.requirement_count = 1;
    }

    void add_form(const scalide_variant &form) {
        variant = form;
        program.variants = &variant;
        program.variant_count = 1;
    }
};

struct Case {
    const char *name;
    scalide_status status;
    std::function<void(Sample &, Program &)> change;
    const char *message;
};

const scalide_term twice_b[] = {{2, {0, -1, -1, -1}}};
const scalide_term b_squared[] = {{1, {0, 0, -1, -1}}, {1, {-1, -1, -1, -1}}};
const scalide_term eight[] = {{8, {-1, -1, -1, -1}}};
const scalide_extent twice_b_by_4[] = {{twice_b, 1}, {eight, 1}}, squares[] = {{b_squared, 2}};
const scalide_term b_less_7[] = {{1, {0, -1, -1, -1}}, {-7, {-1, -1, -1, -1}}}, symbol_1[] = {{1, {1, -1, -1, -1}}};
const scalide_extent at_least_7 = {b_less_7, 2}, of_symbol_1 = {symbol_1, 1};

const Case cases[] = {
    {"dtype", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].dtype = SCALIDE_F16; },
     "sample.x: dtype must be f32, got f16. Convert the array, or build the program with another policy."},
    {"no_dtype", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].dtype = 77; },
     "sample.x: dtype must be f32, got ?. Convert the array, or build the program with another policy."},
    {"rank", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].rank = 3; },
     "sample.x: rank must be 2, got 3. Pass an array of shape [b, 4]."},
    {"extent", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].extent[1] = 5; },
     "sample.x: extent 1 must be 4, got 5. Pass an array of shape [b, 4] with b = 6."},
    {"extents_disagree", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[2].extent[0] = 4; },
     "sample.y: extent 0 must be 6, got 4. Pass an array of shape [b] with b = 6 from x."},
    {"negative_extent", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].extent[0] = -6; },
     "sample.x: extent 0 must be in [0, 2147483647], got -6. Pass an array of shape [b, 4]."},
    {"huge_array", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].extent[0] = 1 << 30; },
     "sample.x: the number of elements must be at most 2146435072. Split the array."},
    {"huge_empty_array", SCALIDE_INVALID_ARGUMENT,
     [](Sample &s, Program &) {
         s.arrays[0].extent[0] = INT32_MAX;
         s.arrays[0].extent[1] = 0;
     },
     "sample.x: extent 0 gives b = 2147483647, but b must be a multiple of 2 in [2, 1024]. Pass an array with another extent, or declare "
     "another range in the program."},
    {"below_minimum", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].extent[0] = 0; },
     "sample.x: extent 0 gives b = 0, but b must be a multiple of 2 in [2, 1024]. Pass an array with another extent, or declare "
     "another range in the program."},
    {"above_maximum", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].extent[0] = 1026; },
     "sample.x: extent 0 gives b = 1026, but b must be a multiple of 2 in [2, 1024]. Pass an array with another extent, or declare "
     "another range in the program."},
    {"multiple", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].extent[0] = 5; },
     "sample.x: extent 0 gives b = 5, but b must be a multiple of 2 in [2, 1024]. Pass an array with another extent, or declare "
     "another range in the program."},
    {"coefficient", SCALIDE_INVALID_ARGUMENT,
     [](Sample &s, Program &p) {
         p.buffers[0].shape = twice_b_by_4;
         s.arrays[0].extent[0] = 7;
     },
     "sample.x: extent 0 must be a multiple of 2, got 7. Pass an array of shape [2*b, 8]."},
    {"polynomial", SCALIDE_INVALID_ARGUMENT, [](Sample &, Program &p) { p.buffers[3].shape = squares; },
     "sample.y: extent 0 must be 37, got 6. Pass an array of shape [b*b + 1] with b = 6 from x."},
    {"two_elements_at_one_address", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[2].stride[0] = 0; },
     "sample.y: a run writes this array, so the strides must give each element its own memory, got strides [0]. Pass an array whose rows "
     "do "
     "not overlap."},
    {"null", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].data = nullptr; },
     "sample.x: data must point to 96 bytes, got NULL. Pass the address of the array's memory."},
    {"misaligned", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].data = reinterpret_cast<char *>(s.x.data()) + 2; },
     "sample.x: data must be aligned to 4 bytes; this address is 2 bytes past a 4-byte boundary. Use scalide_allocate or aligned_alloc(64, "
     "size)."},
    {"missing_scale", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[1].scale = nullptr; },
     "sample.w: scale must point to an f32, got NULL. The argument is scaled: pass the address of its scale."},
    {"unexpected_scale", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[0].scale = &s.w_scale; },
     "sample.x: scale must be NULL, because the argument is not scaled. Multiply data by the scale, or build the program with this "
     "argument scaled."},
    {"misaligned_inout", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[1].data = s.w.data() + 4; },
     "sample.w: data must be aligned to 64 bytes; this address is 16 bytes past a 64-byte boundary. Use scalide_allocate or "
     "aligned_alloc(64, size)."},
    {"misaligned_scale", SCALIDE_INVALID_ARGUMENT,
     [](Sample &s, Program &) { s.arrays[1].scale = reinterpret_cast<float *>(reinterpret_cast<char *>(&s.w_scale) + 1); },
     "sample.w: scale must be aligned to 4 bytes; this address is 1 bytes past a 4-byte boundary. Use scalide_allocate or "
     "aligned_alloc(64, size)."},
    {"nan_scale", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.w_scale = NAN; },
     "sample.w: scale must not be NaN or negative, got NaN. Write the scale before the call. The sign of a value belongs to its data."},
    {"negative_scale", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.w_scale = -0.5f; },
     "sample.w: scale must not be NaN or negative, got a negative number. Write the scale before the call. The sign of a value belongs to "
     "its data."},
    {"negative_zero_scale", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.w_scale = -0.0f; },
     "sample.w: scale must not be NaN or negative, got a negative number. Write the scale before the call. The sign of a value belongs to "
     "its data."},
    {"output_overlaps_input", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[2].data = &s.x[20]; },
     "sample.y: a run writes this memory, but it overlaps with x. Pass separate memory."},
    {"inout_overlaps_output", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[2].data = s.w.data() - 5; },
     "sample.w: a run writes this memory, but it overlaps with y. Pass separate memory."},
    {"scale_overlaps_own_data", SCALIDE_INVALID_ARGUMENT, [](Sample &s, Program &) { s.arrays[1].scale = &s.w[3]; },
     "sample.w: a run writes this memory, but it overlaps with w. Pass separate memory."},
    {"plan_version", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.program.plan_version = 99; },
     "sample: plan version must be 18, got 99. Generate the library again with the tool of this runtime."},
    {"device", SCALIDE_WRONG_DEVICE, [](Sample &, Program &p) { p.program.device = SCALIDE_OPENCL; },
     "sample: the context must be for opencl (the program's target), got cpu. Create it with this device, or build the program for cpu."},
    {"bad_table", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.buffers[6].index = 1; },
     "sample: the plan has a wrong entry: total. Generate the library again."},
    {"bad_lifetime", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.buffers[5].last_step = 3; },
     "sample: the plan has a wrong entry: h. Generate the library again."},
    {"data_of_another_argument", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.buffers[3].index = 0; },
     "sample: the plan has a wrong entry: y. Generate the library again."},
    {"argument_outside_of_its_data", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.arguments[2].data_buffer = 5; },
     "sample: the plan has a wrong entry: y. Generate the library again."},
    {"argument_outside_of_its_scale", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.arguments[1].scale_buffer = 6; },
     "sample: the plan has a wrong entry: w.scale. Generate the library again."},
    {"long_scale", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.buffers[2].dtype = SCALIDE_F64; },
     "sample: the plan has a wrong entry: w.scale. Generate the library again."},
    {"scalar_with_axes", SCALIDE_INVALID_PROGRAM,
     [](Sample &, Program &p) { p.buffers[6].rank = 1, p.buffers[6].shape = p.buffers[3].shape; },
     "sample: the plan has a wrong entry: total. Generate the library again."},
    {"symbol_with_axes", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.operands[3].rank = -2; },
     "sample: the plan has a wrong entry: rows. Generate the library again."},
    {"negative_operands", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.steps[0].operand_count = -4; },
     "sample: the plan has a wrong entry: rows. Generate the library again."},
    {"negative_scalars", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.program.scalar_count = -1; },
     "sample: the plan has a wrong entry: a number of entries is negative. Generate the library again."},
    {"operand_that_is_a_constant", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.arguments[0].role = SCALIDE_CONSTANT; },
     "sample: the plan has a wrong entry: rows. Generate the library again."},
    {"written_argument_that_is_a_constant", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.arguments[1].role = SCALIDE_CONSTANT; },
     "sample: the plan has a wrong entry: w.data. Generate the library again."},
    {"small_buffer", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.buffers[5].rank = 0; },
     "sample.h: a kernel reads more elements than this buffer has. Generate the library again."},
    {"requirement", SCALIDE_INVALID_ARGUMENT, [](Sample &, Program &p) { p.require("b must be at least 7", at_least_7); },
     "sample: dynamic_slice.sizes: b must be at least 7, got b = 6. Pass arrays with other extents."},
    {"requirement_of_an_unknown_symbol", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.require("", of_symbol_1); },
     "sample: the plan has a wrong entry: dynamic_slice.sizes. Generate the library again."},
    {"requirement_without_words", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.require(nullptr, at_least_7); },
     "sample: the plan has a wrong entry: dynamic_slice.sizes. Generate the library again."},
    {"form_of_an_unknown_symbol", SCALIDE_INVALID_PROGRAM,
     [](Sample &, Program &p) {
         p.add_form({0, nullptr, 1, {1}, {1}});
     },
     "sample: the plan has a wrong entry: a variant. Generate the library again."},
    {"form_of_too_many_symbols", SCALIDE_INVALID_PROGRAM,
     [](Sample &, Program &p) {
         p.add_form({0, nullptr, 5, {}, {}});
     },
     "sample: the plan has a wrong entry: a variant. Generate the library again."},
    {"form_that_is_its_program", SCALIDE_INVALID_PROGRAM,
     [](Sample &, Program &p) {
         p.add_form({0, &p.program, 1, {0}, {6}});
     },
     "sample: the plan has a wrong entry: a variant. Generate the library again."},
    {"no_source", SCALIDE_INVALID_PROGRAM, [](Sample &, Program &p) { p.arguments[0].role = SCALIDE_OUTPUT; },
     "sample: no input has the symbol b alone on an axis, so it has no value. Generate the library again."},
    {"target", SCALIDE_UNSUPPORTED_CPU, [](Sample &, Program &p) { p.program.target = "arm-64-linux"; },
     "sample: the CPU must have all features of the target arm-64-linux, but it has no arm. Build the program for this CPU, or "
     "one library for several CPUs: scalide build --target x86-64-v2,x86-64-v3 (CMake: TARGETS)."},
    {"feature", SCALIDE_UNSUPPORTED_CPU, [](Sample &, Program &p) { p.program.target = "x86-64-linux-sse41-future_unit-tune_znver5"; },
     "sample: the CPU must have all features of the target x86-64-linux-sse41-future_unit-tune_znver5, but it has no future_unit. Build "
     "the program for this CPU, or one library for several CPUs: scalide build --target x86-64-v2,x86-64-v3 (CMake: TARGETS)."},
};

class BindError : public testing::Test {
public:
    explicit BindError(const Case &wrong) : case_(wrong) {}

private:
    void TestBody() override {
        Context context;
        Sample sample(6);
        Program program;
        case_.change(sample, program);
        scalide_binding *binding = nullptr;
        EXPECT_EQ(bind(context, &program.program, sample, &binding), case_.status);
        EXPECT_STREQ(scalide_message(context.handle), case_.message);
        EXPECT_EQ(binding, nullptr);
    }

    const Case &case_;
};

// One test a case: runtime.bind_refuses_<name>.
const bool registered = [] {
    for (const Case &wrong : cases) {
        const std::string name = std::string("bind_refuses_") + wrong.name;
        testing::RegisterTest("runtime", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [&wrong]() -> testing::Test * { return new BindError(wrong); });
    }
    return true;
}();

} // namespace

TEST(runtime, bind_checks_the_number_of_arrays) {
    Context context;
    Sample sample(6);
    scalide_binding *binding = nullptr;
    EXPECT_EQ(scalide_bind(context.handle, sample_program(), sample.arrays.data(), 3, &binding), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample: the number of arrays must be 4, got 3. Pass in this order: x, w, y, mean.");
}

TEST(runtime, bind_refuses_null_pointers) {
    Context context;
    Sample sample(6);
    scalide_binding *binding = nullptr;
    EXPECT_EQ(scalide_bind(nullptr, sample_program(), sample.arrays.data(), 4, &binding), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_bind(context.handle, nullptr, sample.arrays.data(), 4, &binding), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_bind(context.handle, sample_program(), nullptr, 4, &binding), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_bind(context.handle, sample_program(), sample.arrays.data(), 4, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_run(nullptr), SCALIDE_INVALID_ARGUMENT);
}

TEST(runtime, inputs_may_share_memory) {
    Context context;
    Sample sample(6);
    Program program;
    program.arguments[1].role = SCALIDE_INPUT;
    sample.arrays[1].data = sample.x.data();
    scalide_binding *binding = nullptr;
    EXPECT_EQ(bind(context, &program.program, sample, &binding), SCALIDE_OK) << scalide_message(context.handle);
    scalide_binding_destroy(binding);
}

TEST(runtime, scales_that_are_no_factor_are_refused_at_every_bind) {
    Context context;
    Sample sample(6), other(6);
    scalide_binding *binding = nullptr;
    for (const float scale : {0.0f, INFINITY, 0.5f}) { // of zeros, of infinities
        scalide_binding_destroy(binding);
        sample.w_scale = scale;
        ASSERT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK) << scalide_message(context.handle);
    }
    other.w_scale = NAN;
    EXPECT_EQ(scalide_set_argument(binding, 1, &other.arrays[1]), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_set_arguments(binding, other.arrays.data(), other.arrays.size()), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(
        scalide_message(context.handle),
        "sample.w: scale must not be NaN or negative, got NaN. Write the scale before the call. The sign of a value belongs to its data.");
    const float expected = sample.expected_y(5);
    EXPECT_EQ(scalide_run(binding), SCALIDE_OK);
    EXPECT_EQ(sample.y[5], expected) << "the old array stays bound";
    scalide_binding_destroy(binding);
    Program program; // the scale of an output is written
    program.arguments[1].role = SCALIDE_OUTPUT;
    EXPECT_EQ(bind(context, &program.program, other, &binding), SCALIDE_OK) << scalide_message(context.handle);
    scalide_binding_destroy(binding);
}

TEST(runtime, initial_state_that_is_too_large_is_refused) {
    constexpr scalide_term half = {int64_t{1} << 30, {-1, -1, -1, -1}};
    const scalide_extent shape[] = {{&half, 1}, {&half, 1}, {&half, 1}, {&half, 1}}; // the product wraps to 0
    Context context;
    Sample sample(6);
    Program program;
    program.arguments[1].role = SCALIDE_STATE;
    program.buffers[1].rank = 4;
    program.buffers[1].shape = shape;
    EXPECT_EQ(scalide_initial_state(context.handle, &program.program, sample.arrays.data(), 4), SCALIDE_INVALID_PROGRAM);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample.w: this array would have more than 2146435072 elements. Generate the library again.");
}

TEST(runtime, the_signature_of_the_header_is_compared) {
    Context context;
    Program program;
    program.program.signature = 7;
    EXPECT_EQ(scalide_check_signature(context.handle, &program.program, 7), SCALIDE_OK);
    EXPECT_EQ(scalide_check_signature(context.handle, &program.program, 8), SCALIDE_INVALID_PROGRAM);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample: the application was compiled with a header that has other arguments than the library. Compile it again with the "
                 "header of this library, and check that no other library has a program of this name. The library has x: f32[b, 4], "
                 "w: f32[4], y: f32[b], mean: f32[].");
    program.program.plan_version = 12;
    EXPECT_EQ(scalide_check_signature(context.handle, &program.program, 7), SCALIDE_INVALID_PROGRAM);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample: plan version must be 18, got 12. Generate the library again with the tool of this runtime.");
}

// Checked runs, and what of each dtype is not finite.
#include "run/non_finite.h"
#include "fixture.h"
#include <algorithm>
#include <limits>
#include <string>

using namespace scalide::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// `buffer, step (kernel)` of the first result that is not finite.
std::string first_non_finite(Sample &sample) {
    Context context;
    scalide_binding *binding = nullptr;
    EXPECT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK);
    scalide_non_finite first = {"none", "none", 9};
    EXPECT_EQ(scalide_run_checked(binding, &first), SCALIDE_OK) << scalide_message(context.handle);
    scalide_binding_destroy(binding);
    if (!first.buffer) return "all are finite";
    return first.buffer + std::string(", ") + std::to_string(first.step) + " (" + first.kernel + ")";
}

template<typename Word>
bool is_non_finite(int32_t dtype, Word word) {
    return scalide::has_non_finite(scalide_dense_array(&word, nullptr, dtype, 0, nullptr));
}

template<typename Word>
int count_non_finite(int32_t dtype) {
    int count = 0;
    for (int word = 0; word <= std::numeric_limits<Word>::max(); ++word) count += is_non_finite(dtype, static_cast<Word>(word));
    return count;
}

} // namespace

TEST(runtime, a_checked_run_is_a_run) {
    Sample sample, expected;
    EXPECT_EQ(first_non_finite(sample), "all are finite");
    EXPECT_EQ(sample.y[5], expected.expected_y(5));
    EXPECT_EQ(sample.w_scale, 1.0f);
}

TEST(runtime, tells_the_first_result_that_is_not_finite) {
    Sample given(300), made, last;
    given.x.back() = infinity;
    EXPECT_EQ(first_non_finite(given), "y, 0 (rows)");
    made.w_scale = infinity;
    made.x[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(first_non_finite(made), "y, 0 (rows)");
    std::fill(last.x.begin(), last.x.end(), 0.0f);
    last.w_scale = 3e38f;
    EXPECT_EQ(first_non_finite(last), "w.scale, 2 (update)") << "what overflows in the last step";
}

TEST(runtime, does_not_count_arguments_that_no_step_writes) {
    scalide_program program = *sample_program();
    const scalide_step step = {"nothing", [](void **) { return 0; }, nullptr, 0, nullptr};
    program.steps = &step;
    program.step_count = 1;
    std::vector<scalide_buffer> buffers(program.buffers, program.buffers + program.buffer_count);
    for (scalide_buffer &buffer : buffers) buffer.first_step = -1;
    buffers[5].storage = SCALIDE_STORAGE_SCALAR; // no arena
    buffers[5].index = buffers[5].rank = 0;
    program.buffers = buffers.data();
    Context context;
    Sample sample;
    std::fill(sample.x.begin(), sample.x.end(), infinity);
    sample.w.fill(-infinity);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, &program, sample, &binding), SCALIDE_OK) << scalide_message(context.handle);
    scalide_non_finite first;
    EXPECT_EQ(scalide_run_checked(binding, &first), SCALIDE_OK);
    EXPECT_STREQ(first.buffer, nullptr);
    EXPECT_EQ(scalide_run_checked(binding, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_run_checked(nullptr, &first), SCALIDE_INVALID_ARGUMENT);
    scalide_binding_destroy(binding);
}

TEST(runtime, knows_what_is_not_finite_in_each_dtype) {
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E4M3FN), 2);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E5M2), 8);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E4M3FNUZ), 1);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E5M2FNUZ), 1);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E8M0FNU), 1);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E3M4), 32);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E4M3), 16);
    EXPECT_EQ(count_non_finite<uint8_t>(SCALIDE_F8_E4M3B11FNUZ), 1);
    EXPECT_EQ(count_non_finite<uint16_t>(SCALIDE_F16), 2048);
    EXPECT_EQ(count_non_finite<uint16_t>(SCALIDE_BF16), 256);
    for (const int32_t dtype : {SCALIDE_BOOL, SCALIDE_I8, SCALIDE_U8}) EXPECT_EQ(count_non_finite<uint8_t>(dtype), 0);
    for (const int32_t dtype : {SCALIDE_I16, SCALIDE_U16}) EXPECT_EQ(count_non_finite<uint16_t>(dtype), 0);
    for (const int32_t dtype : {SCALIDE_I32, SCALIDE_U32}) EXPECT_FALSE(is_non_finite(dtype, infinity));
    for (const float finite : {0.0f, -0.0f, 3.4e38f, -3.4e38f, 1e-45f}) EXPECT_FALSE(is_non_finite(SCALIDE_F32, finite));
    for (const float other : {infinity, -infinity, infinity - infinity}) {
        EXPECT_TRUE(is_non_finite(SCALIDE_F32, other));
        EXPECT_TRUE(is_non_finite(SCALIDE_F64, double(other)));
    }
    for (const double finite : {0.0, 1e300, -1e300, 5e-324}) EXPECT_FALSE(is_non_finite(SCALIDE_F64, finite));
}

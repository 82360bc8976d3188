// Tables of statistics that a plan must not have. The statistics program is the sample program, with outputs that no kernel writes.
#include "fixture.h"
#include "scalide/statistics.h"
#include <algorithm>
#include <functional>
#include <string>

using namespace scalide::test;

namespace {

const scalide_term no_terms[] = {{4, {-1, -1, -1, -1}}}, b_term[] = {{1, {0, -1, -1, -1}}}, bin_terms[] = {{38, {-1, -1, -1, -1}}},
                   other_term[] = {{1, {1, -1, -1, -1}}}, b_bins[] = {{38, {0, -1, -1, -1}}};
const scalide_extent tensor_shape[] = {{b_term, 1}, {no_terms, 1}}, bins[] = {{bin_terms, 1}}, other_symbol[] = {{other_term, 1}},
                     symbolic_bins[] = {{b_bins, 1}}, four_bins[] = {{no_terms, 1}};

/// The sample program with statistics of x. The output `amax` is between outputs of the program itself.
struct Counted {
    static constexpr uint32_t kinds = SCALIDE_COLLECTS_AMAX | SCALIDE_COLLECTS_RMS | SCALIDE_COLLECTS_ZEROS | SCALIDE_COLLECTS_SUBNORMAL |
                                      SCALIDE_COLLECTS_NON_FINITE | SCALIDE_COLLECTS_HISTOGRAM;
    enum { AMAX = 3, MEAN, SCALE, LARGE, SMALL, ZEROS, NON_FINITE, FIRST, CATEGORIES, ARGUMENTS };
    scalide_program program = *sample_program(), collecting = *sample_program();
    std::vector<scalide_buffer> buffers{program.buffers, program.buffers + program.buffer_count};
    std::vector<scalide_argument> arguments{program.arguments, program.arguments + program.argument_count};
    scalide_collected tensor = {"x",          "argument", "",  "", nullptr, nullptr,      "-", SCALIDE_F32, 2,
                                tensor_shape, 2,          -40, 2,  kinds,   {-1, 15, -1}, 0,   {}};
    scalide_statistics_plan plan = {&collecting, 1, &tensor};

    Counted() {
        arguments.resize(ARGUMENTS);
        arguments[MEAN] = arguments[3];
        buffers[static_cast<size_t>(arguments[MEAN].data_buffer)].index = MEAN;
        std::fill_n(tensor.argument, SCALIDE_STATISTIC_PARTS, -1);
        const char *const names[] = {"amax", "scale", "large", "small", "zeros", "non_finite", "first", "categories"};
        const int32_t indices[] = {AMAX, SCALE, LARGE, SMALL, ZEROS, NON_FINITE, FIRST, CATEGORIES}, parts[] = {0, 1, 2, 3, 4, 7, 8, 9};
        for (size_t i = 0; i < 8; ++i) {
            const int32_t dtype = parts[i] < SCALIDE_PART_ZEROS ? SCALIDE_F32 : SCALIDE_I32;
            const bool is_table = parts[i] == SCALIDE_PART_CATEGORIES;
            arguments[static_cast<size_t>(indices[i])] = {names[i], SCALIDE_OUTPUT, static_cast<int32_t>(buffers.size()), -1, 0};
            buffers.push_back({names[i], dtype, is_table ? 1 : 0, is_table ? bins : nullptr, SCALIDE_STORAGE_DATA, indices[i], 0, 0,
                               SCALIDE_WHOLE, nullptr, nullptr});
            tensor.argument[parts[i]] = indices[i];
        }
        collecting.argument_count = ARGUMENTS;
        collecting.buffer_count = static_cast<int32_t>(buffers.size());
        collecting.arguments = arguments.data();
        collecting.buffers = buffers.data();
        program.statistics = &plan;
    }
    Counted(const Counted &) = delete;
    Counted &operator=(const Counted &) = delete;

    void scale_y() {
        buffers.push_back({"y.scale", SCALIDE_F32, 0, nullptr, SCALIDE_STORAGE_SCALE, 2, 0, 0, SCALIDE_SCALE, nullptr, nullptr});
        arguments[2].scale_buffer = collecting.buffer_count++;
        collecting.buffers = buffers.data();
    }
    scalide_buffer &buffer(int argument) { return buffers[static_cast<size_t>(arguments[static_cast<size_t>(argument)].data_buffer)]; }
};

struct Case {
    const char *name, *entry;
    std::function<void(Counted &)> change;
};

const char *const head = "the program of the statistics", *const tensors = "the tensors with statistics",
                  *const names = "a name of a tensor with statistics", *const dtype = "the dtype of a tensor with statistics",
                  *const shape = "the shape of a tensor with statistics", *const every = "the steps that collect statistics",
                  *const histogram = "the bins of a histogram", *const numbers = "the numbers of a tensor with statistics",
                  *const categories = "the categories of a tensor with statistics", *const output = "an output for statistics",
                  *const arguments = "the arguments of the program of the statistics";

const Case cases[] = {
    {"no_program", head, [](Counted &c) { c.plan.program = nullptr; }},
    {"own_program", head, [](Counted &c) { c.plan.program = &c.program; }},
    {"statistics_of_statistics", head, [](Counted &c) { c.collecting.statistics = &c.plan; }},
    {"no_tensors", tensors, [](Counted &c) { c.plan.count = 0; }},
    {"negative_count", tensors, [](Counted &c) { c.plan.count = -1; }},
    {"no_table", tensors, [](Counted &c) { c.plan.tensors = nullptr; }},
    {"no_tensor_name", names, [](Counted &c) { c.tensor.tensor = nullptr; }},
    {"no_use", names, [](Counted &c) { c.tensor.use = nullptr; }},
    {"no_operator", names, [](Counted &c) { c.tensor.op = nullptr; }},
    {"no_scope", names, [](Counted &c) { c.tensor.scope = nullptr; }},
    {"no_direction", names, [](Counted &c) { c.tensor.direction = nullptr; }},
    {"dtype", dtype, [](Counted &c) { c.tensor.dtype = 77; }},
    {"negative_rank", shape, [](Counted &c) { c.tensor.rank = -1; }},
    {"large_rank", shape, [](Counted &c) { c.tensor.rank = SCALIDE_MAX_RANK + 1; }},
    {"no_shape", shape, [](Counted &c) { c.tensor.shape = nullptr; }},
    {"unknown_symbol", shape, [](Counted &c) { c.tensor.rank = 1, c.tensor.shape = other_symbol; }},
    {"every_0", every, [](Counted &c) { c.tensor.every = 0; }},
    {"every_negative", every, [](Counted &c) { c.tensor.every = -2; }},
    {"octaves", histogram, [](Counted &c) { c.tensor.octaves = 0; }},
    {"first_exponent", histogram, [](Counted &c) { c.tensor.first_exponent = 2000; }},
    {"large_squares_alone", numbers, [](Counted &c) { c.tensor.argument[SCALIDE_PART_SMALL_SQUARES] = -1; }},
    {"squares_without_scale", numbers,
     [](Counted &c) { c.tensor.argument[SCALIDE_PART_LARGE_SQUARES] = c.tensor.argument[SCALIDE_PART_SCALE] = -1; }},
    {"number_without_index", numbers, [](Counted &c) { c.tensor.argument[SCALIDE_PART_FIRST] = -1; }},
    {"zeros_without_number", numbers, [](Counted &c) { c.tensor.argument[SCALIDE_PART_ZEROS] = -1; }},
    {"subnormals_without_limit", numbers, [](Counted &c) { c.tensor.first[1] = -1; }},
    {"counts_without_categories", numbers, [](Counted &c) { c.tensor.argument[SCALIDE_PART_CATEGORIES] = -1; }},
    {"unknown_kind", numbers, [](Counted &c) { c.tensor.collects |= 128; }},
    {"limit_of_zero", categories, [](Counted &c) { c.tensor.first[1] = 0; }},
    {"limit_of_infinities", categories, [](Counted &c) { c.tensor.first[1] = 37; }},
    {"negative_limit", categories, [](Counted &c) { c.tensor.first[1] = -2; }},
    {"limits_out_of_order", categories, [](Counted &c) { c.tensor.first[0] = 15; }},
    {"argument_out_of_range", output, [](Counted &c) { c.tensor.argument[SCALIDE_PART_AMAX] = Counted::ARGUMENTS; }},
    {"argument_below_range", output, [](Counted &c) { c.tensor.argument[SCALIDE_PART_AMAX] = -2; }},
    {"argument_twice", output, [](Counted &c) { c.tensor.argument[SCALIDE_PART_SATURATED] = Counted::ZEROS; }},
    {"output_that_is_read", output, [](Counted &c) { c.arguments[Counted::ZEROS].role = SCALIDE_INOUT; }},
    {"count_as_f32", output, [](Counted &c) { c.buffer(Counted::ZEROS).dtype = SCALIDE_F32; }},
    {"amax_as_f64", output, [](Counted &c) { c.buffer(Counted::AMAX).dtype = SCALIDE_F64; }},
    {"amax_with_axes", output, [](Counted &c) { c.buffer(Counted::AMAX).rank = 1, c.buffer(Counted::AMAX).shape = bins; }},
    {"categories_without_axes", output, [](Counted &c) { c.buffer(Counted::CATEGORIES).rank = 0; }},
    {"categories_of_4", output, [](Counted &c) { c.buffer(Counted::CATEGORIES).shape = four_bins; }},
    {"categories_of_symbols", output, [](Counted &c) { c.buffer(Counted::CATEGORIES).shape = symbolic_bins; }},
    {"number_of_the_program", arguments, [](Counted &c) { c.tensor.argument[SCALIDE_PART_AMAX] = Counted::MEAN; }},
    {"other_name", arguments, [](Counted &c) { c.arguments[0].name = "y"; }},
    {"other_role", arguments, [](Counted &c) { c.arguments[1].role = SCALIDE_STATE; }},
    {"other_dtype", arguments, [](Counted &c) { c.buffer(2).dtype = SCALIDE_F16; }},
    {"other_rank", arguments, [](Counted &c) { c.buffer(0).rank = 1; }},
    {"scaled", arguments, [](Counted &c) { c.scale_y(); }},
    {"further_argument", arguments, [](Counted &c) { c.tensor.argument[SCALIDE_PART_ZEROS] = -1, c.tensor.collects &= ~4u; }},
    {"missing_argument", arguments,
     [](Counted &c) { c.tensor.argument[SCALIDE_PART_SATURATED] = Counted::MEAN, c.buffer(Counted::MEAN).dtype = SCALIDE_I32; }},
};

class StatisticsError : public testing::Test {
public:
    explicit StatisticsError(const Case &wrong) : case_(wrong) {}

private:
    void TestBody() override {
        Context context;
        Sample sample(6);
        Counted counted;
        case_.change(counted);
        const std::string message = std::string("sample: the plan has a wrong entry: ") + case_.entry + ". Generate the library again.";
        scalide_binding *binding = nullptr;
        EXPECT_EQ(bind(context, &counted.program, sample, &binding), SCALIDE_INVALID_PROGRAM);
        EXPECT_EQ(scalide_message(context.handle), message);
        scalide_constants *constants = nullptr;
        EXPECT_EQ(scalide_statistics_prepare(context.handle, &counted.program, sample.arrays.data(), 4, &constants),
                  SCALIDE_INVALID_PROGRAM);
        EXPECT_EQ(scalide_message(context.handle), message);
    }

    const Case &case_;
};

// One test a case: runtime.bind_refuses_statistics_<name>.
const bool registered = [] {
    for (const Case &wrong : cases) {
        const std::string name = std::string("bind_refuses_statistics_") + wrong.name;
        testing::RegisterTest("runtime", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [&wrong]() -> testing::Test * { return new StatisticsError(wrong); });
    }
    return true;
}();

} // namespace

TEST(runtime, statistics_of_a_plan_by_hand_run) {
    Context context;
    Sample sample(6);
    Counted counted;
    Bound bound;
    ASSERT_EQ(bind(context, &counted.program, sample, &bound.handle), SCALIDE_OK) << scalide_message(context.handle);
    scalide_statistics *statistics = nullptr;
    ASSERT_EQ(scalide_statistics_create(bound.handle, sample.arrays.data(), 4, nullptr, &statistics), SCALIDE_OK)
        << scalide_message(context.handle);
    const float expected = sample.expected_y(5);
    EXPECT_EQ(scalide_run_collecting(statistics, 4), SCALIDE_OK);
    EXPECT_EQ(sample.y[5], expected);
    EXPECT_EQ(scalide_statistics_step(statistics), 4);
    EXPECT_EQ(scalide_run_collecting(statistics, 5), SCALIDE_OK) << "a step that collects nothing";
    EXPECT_EQ(scalide_statistics_step(statistics), 4);
    scalide_statistic row;
    EXPECT_EQ(scalide_read_statistics(statistics, &row, 1), SCALIDE_OK);
    EXPECT_EQ(row.elements, 24);
    scalide_statistics_destroy(statistics);
}

TEST(runtime, a_wrong_statistics_program_is_named) {
    Context context;
    Sample sample(6);
    Counted counted;
    counted.collecting.name = "sample.statistics";
    counted.buffers[6].index = 1;
    scalide_binding *binding = nullptr;
    EXPECT_EQ(bind(context, &counted.program, sample, &binding), SCALIDE_INVALID_PROGRAM);
    EXPECT_STREQ(scalide_message(context.handle), "sample.statistics: the plan has a wrong entry: total. Generate the library again.");
}

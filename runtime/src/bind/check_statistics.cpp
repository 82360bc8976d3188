#include "bind/check_statistics.h"
#include "base/memory.h"
#include "bind/check.h"
#include "bind/check_blocks.h"
#include "scalide/statistics.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace scalide {

namespace {

/// A number of a tensor: whether it is a count, and its rank.
struct PartType {
    int32_t dtype, rank;
};
constexpr PartType part_types[SCALIDE_STATISTIC_PARTS] = {
    {SCALIDE_F32, 0}, {SCALIDE_F32, 0}, {SCALIDE_F32, 0}, {SCALIDE_F32, 0}, {SCALIDE_I32, 0},
    {SCALIDE_I32, 0}, {SCALIDE_I32, 0}, {SCALIDE_I32, 0}, {SCALIDE_I32, 0}, {SCALIDE_I32, 1},
};
/// 2^1100 is beyond all formats.
constexpr int32_t most_exponent = 1100;

bool is_number_of_categories(const scalide_extent &extent) {
    const auto is_none = [](int32_t symbol) { return symbol < 0; };
    return extent.count == 1 && extent.terms[0].coefficient == SCALIDE_STATISTIC_CATEGORIES &&
           std::all_of(std::begin(extent.terms[0].symbol), std::end(extent.terms[0].symbol), is_none);
}

/// The argument is in range.
bool good_output(const scalide_program &program, int32_t argument, const PartType &type) {
    const scalide_argument &output = program.arguments[argument];
    const scalide_buffer &buffer = program.buffers[output.data_buffer];
    return output.role == SCALIDE_OUTPUT && output.scale_buffer < 0 && buffer.dtype == type.dtype && buffer.rank == type.rank &&
           (type.rank == 0 || is_number_of_categories(buffer.shape[0]));
}

bool good_outputs(const scalide_program &program, const scalide_collected &tensor) {
    for (int32_t part = 0; part < SCALIDE_STATISTIC_PARTS; ++part)
        if (tensor.argument[part] >= 0 && !good_output(program, tensor.argument[part], part_types[part])) return false;
    return true;
}

bool good_tensor_shape(const scalide_program &program, const scalide_collected &tensor) {
    if (tensor.rank < 0 || tensor.rank > SCALIDE_MAX_RANK || (tensor.rank > 0 && !tensor.shape)) return false;
    return std::all_of(tensor.shape, tensor.shape + tensor.rank,
                       [&](const scalide_extent &extent) { return good_extent(program, extent); });
}

/// From which number or category each kind follows.
struct KindSource {
    uint32_t kind;
    int32_t part, limit; ///< -1: the kind needs no limit
    bool has_categories; ///< the categories are enough
};
constexpr KindSource kind_sources[] = {
    {SCALIDE_COLLECTS_AMAX, SCALIDE_PART_AMAX, -1, false},         {SCALIDE_COLLECTS_RMS, SCALIDE_PART_SMALL_SQUARES, -1, false},
    {SCALIDE_COLLECTS_ZEROS, SCALIDE_PART_ZEROS, 0, true},         {SCALIDE_COLLECTS_SATURATED, SCALIDE_PART_SATURATED, 2, true},
    {SCALIDE_COLLECTS_SUBNORMAL, SCALIDE_PART_SUBNORMAL, 1, true}, {SCALIDE_COLLECTS_NON_FINITE, SCALIDE_PART_NON_FINITE, -1, true},
    {SCALIDE_COLLECTS_NON_FINITE, SCALIDE_PART_FIRST, -1, false},  {SCALIDE_COLLECTS_HISTOGRAM, SCALIDE_PART_CATEGORIES, -1, true},
};
constexpr uint32_t all_kinds = 2 * SCALIDE_COLLECTS_HISTOGRAM - 1;

/// A root of a mean square needs two sums, or one sum and the scale.
bool good_parts(const scalide_collected &tensor) {
    const auto has = [&](int32_t part) { return tensor.argument[part] >= 0; };
    const auto is_given = [&](const KindSource &source) {
        const bool is_category =
            source.has_categories && has(SCALIDE_PART_CATEGORIES) && (source.limit < 0 || tensor.first[source.limit] >= 0);
        return !(tensor.collects & source.kind) || has(source.part) || is_category;
    };
    const bool is_split = has(SCALIDE_PART_LARGE_SQUARES), is_summed = has(SCALIDE_PART_SMALL_SQUARES);
    return (!is_split || is_summed) && (!is_summed || is_split || has(SCALIDE_PART_SCALE)) && tensor.collects <= all_kinds &&
           std::all_of(std::begin(kind_sources), std::end(kind_sources), is_given);
}

/// The limits have categories between those of zeros and of infinities, in their order.
bool good_limits(const scalide_collected &tensor) {
    int32_t before = 0;
    for (const int32_t first : tensor.first) {
        if (first == -1) continue;
        if (first <= before || first > SCALIDE_STATISTIC_CATEGORIES - 2) return false;
        before = first;
    }
    return true;
}

/// Returns the wrong field of a tensor, or nullptr.
const char *wrong_field(const scalide_program &program, const scalide_collected &tensor) {
    if (!tensor.tensor || !tensor.use || !tensor.op || !tensor.scope || !tensor.direction) return "a name of a tensor with statistics";
    if (scalide_dtype_size(tensor.dtype) == 0) return "the dtype of a tensor with statistics";
    if (!good_tensor_shape(program, tensor)) return "the shape of a tensor with statistics";
    if (tensor.every < 1) return "the steps that collect statistics";
    if (tensor.octaves < 1 || tensor.octaves > most_exponent || std::abs(tensor.first_exponent) > most_exponent)
        return "the bins of a histogram";
    if (!good_limits(tensor)) return "the categories of a tensor with statistics";
    if (!good_parts(tensor)) return "the numbers of a tensor with statistics";
    return good_outputs(program, tensor) ? nullptr : "an output for statistics";
}

const char *wrong_field(const scalide_program &program, const scalide_statistics_plan &plan) {
    if (!plan.program || plan.program == &program || plan.program->statistics) return "the program of the statistics";
    return plan.count < 1 || !plan.tensors ? "the tensors with statistics" : nullptr;
}

bool is_same_argument(const scalide_program &a, const scalide_argument &one, const scalide_program &b, const scalide_argument &other) {
    const scalide_buffer &data = a.buffers[one.data_buffer], &other_data = b.buffers[other.data_buffer];
    return std::strcmp(one.name, other.name) == 0 && one.role == other.role && data.dtype == other_data.dtype &&
           data.rank == other_data.rank && (one.scale_buffer < 0) == (other.scale_buffer < 0);
}

/// Returns true if the arguments without a number are the arguments of the program itself.
bool have_same_arguments(const scalide_program &program, const scalide_program &collecting, const bool *is_number) {
    int32_t own = 0;
    for (int32_t i = 0; i < collecting.argument_count; ++i) {
        if (is_number[i]) continue;
        if (own >= program.argument_count || !is_same_argument(program, program.arguments[own++], collecting, collecting.arguments[i]))
            return false;
    }
    return own == program.argument_count;
}

/// Returns what is wrong with statistics whose program is correct, or nullptr.
const char *find_wrong(const scalide_program &program, const scalide_statistics_plan &plan, bool *is_number) {
    if (!mark_numbers(plan, is_number)) return "an output for statistics";
    for (int32_t i = 0; i < plan.count; ++i)
        if (const char *field = wrong_field(*plan.program, plan.tensors[i])) return field;
    return have_same_arguments(program, *plan.program, is_number) ? nullptr : "the arguments of the program of the statistics";
}

} // namespace

bool mark_numbers(const scalide_statistics_plan &plan, bool *is_number) {
    std::fill_n(is_number, plan.program->argument_count, false);
    for (int32_t i = 0; i < plan.count; ++i) {
        for (const int32_t argument : plan.tensors[i].argument) {
            if (argument == -1) continue;
            if (argument < 0 || argument >= plan.program->argument_count || is_number[argument]) return false;
            is_number[argument] = true;
        }
    }
    return true;
}

scalide_status check_statistics(scalide_context *context, const scalide_program &program) {
    if (!program.statistics) return SCALIDE_OK;
    const char *wrong = wrong_field(program, *program.statistics);
    if (!wrong) {
        const scalide_status status = check_program(context, *program.statistics->program);
        if (status != SCALIDE_OK) return status;
        auto *is_number = static_cast<bool *>(allocate(context->allocator, program.statistics->program->argument_count));
        if (!is_number) {
            start_message(context) << program.name << ": out of memory: cannot allocate a table of the statistics.";
            return SCALIDE_OUT_OF_MEMORY;
        }
        wrong = find_wrong(program, *program.statistics, is_number);
        release(context->allocator, is_number);
    }
    if (!wrong) return SCALIDE_OK;
    start_message(context) << program.name << ": the plan has a wrong entry: " << wrong << ". Generate the library again.";
    return SCALIDE_INVALID_PROGRAM;
}

} // namespace scalide

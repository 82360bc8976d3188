#include "scalide/statistics.h"
#include "base/float_environment.h"
#include "base/memory.h"
#include "bind/binding.h"
#include "bind/check.h"
#include "bind/check_statistics.h"
#include "bind/extent.h"
#include "context/entry.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

using namespace scalide;

static_assert(SCALIDE_HISTOGRAM_BINS == SCALIDE_STATISTIC_BINS);

/// One block holds the structure and its tables.
struct scalide_statistics {
    scalide_binding *binding, *collecting;
    const scalide_statistics_plan *plan;
    scalide_array *arrays; ///< of the statistics program
    uint64_t *offsets;     ///< by output of the statistics program: in `numbers`
    int64_t *steps;        ///< by tensor: the step of its newest numbers; -1: none
    scalide_statistic *rows;
    unsigned char *copy; ///< of `numbers` on the host
    void *numbers;       ///< all outputs, in memory of the context
    uint64_t bytes;
    int64_t step;
    bool is_read; ///< `rows` has the numbers of `step`
};

namespace {

constexpr uint64_t no_offset = UINT64_MAX; ///< of an argument that the program itself has

/// Plans of other versions may lack the member.
const scalide_statistics_plan *plan_of(const scalide_program *program) {
    return program && program->plan_version == SCALIDE_PLAN_VERSION ? program->statistics : nullptr;
}

scalide_status refuse_without(scalide_context *context, const scalide_program &program) {
    start_message(context) << program.name
                           << ": the program was built without statistics. Build it with --statistics, or with a policy that has "
                           << "rows 'statistics'.";
    return SCALIDE_UNSUPPORTED;
}

/// The shape of an output of a statistics program is the number of categories, or it is a scalar.
scalide_array output_of(const scalide_program &program, int32_t argument, void *data) {
    const scalide_buffer &buffer = program.buffers[program.arguments[argument].data_buffer];
    const int64_t categories = SCALIDE_STATISTIC_CATEGORIES;
    return scalide_dense_array(data, nullptr, buffer.dtype, buffer.rank, &categories);
}

uint64_t bytes_of(const scalide_array &array) {
    return scalide_dtype_size(array.dtype) * (array.rank == 0 ? 1 : SCALIDE_STATISTIC_CATEGORIES);
}

scalide_statistics *lay_out(void *memory, const scalide_statistics_plan &plan, uint64_t numbers, uint64_t *bytes) {
    Carver carver(memory);
    auto *made = carver.take<scalide_statistics>(1);
    const auto arguments = static_cast<uint64_t>(plan.program->argument_count), tensors = static_cast<uint64_t>(plan.count);
    scalide_statistics tables = {};
    tables.arrays = carver.take<scalide_array>(arguments);
    tables.offsets = carver.take<uint64_t>(arguments);
    tables.steps = carver.take<int64_t>(tensors);
    tables.rows = carver.take<scalide_statistic>(tensors);
    tables.copy = carver.take<unsigned char>(numbers);
    *bytes = carver.bytes();
    if (memory) *made = tables;
    return made;
}

/// Gives each output for numbers its place, aligned for kernels, and returns the bytes of all.
uint64_t place_numbers(const scalide_statistics_plan &plan, uint64_t *offsets) {
    uint64_t bytes = 0;
    if (offsets) std::fill_n(offsets, plan.program->argument_count, no_offset);
    for (int32_t i = 0; i < plan.count; ++i) {
        for (const int32_t argument : plan.tensors[i].argument) {
            if (argument < 0) continue;
            if (offsets) offsets[argument] = bytes;
            bytes += round_up(bytes_of(output_of(*plan.program, argument, nullptr)), memory_alignment);
        }
    }
    return bytes;
}

scalide_statistics *allocate_statistics(scalide_context *context, const scalide_statistics_plan &plan) {
    const uint64_t numbers = place_numbers(plan, nullptr);
    uint64_t bytes = 0;
    lay_out(nullptr, plan, numbers, &bytes);
    void *memory = allocate(context->allocator, bytes);
    if (!memory) return nullptr;
    std::memset(memory, 0, bytes);
    scalide_statistics *made = lay_out(memory, plan, numbers, &bytes);
    made->plan = &plan;
    made->bytes = numbers;
    made->step = -1;
    std::fill_n(made->steps, plan.count, -1);
    place_numbers(plan, made->offsets);
    return made;
}

/// Takes the arrays of the program itself, in their order, and the outputs in `numbers`.
void take_arrays(scalide_statistics &statistics, const scalide_array *arrays) {
    const scalide_program &program = *statistics.plan->program;
    for (int32_t i = 0; i < program.argument_count; ++i) {
        const uint64_t offset = statistics.offsets[i];
        statistics.arrays[i] = offset == no_offset ? *arrays++ : output_of(program, i, static_cast<char *>(statistics.numbers) + offset);
    }
}

scalide_status bind_statistics(scalide_statistics &statistics, const scalide_array *arrays, scalide_constants *constants) {
    scalide_context *context = statistics.binding->context;
    const scalide_status status = scalide_allocate(context, std::max<uint64_t>(statistics.bytes, 1), &statistics.numbers);
    if (status != SCALIDE_OK) return status;
    take_arrays(statistics, arrays);
    const auto count = static_cast<size_t>(statistics.plan->program->argument_count);
    return constants
               ? scalide_bind_constants(context, statistics.plan->program, statistics.arrays, count, constants, &statistics.collecting)
               : scalide_bind(context, statistics.plan->program, statistics.arrays, count, &statistics.collecting);
}

bool is_due(const scalide_collected &tensor, int64_t step) { return step % tensor.every == 0; }

double number_of(const scalide_statistics &statistics, const scalide_collected &tensor, int32_t part) {
    const int32_t argument = tensor.argument[part];
    if (argument < 0) return std::numeric_limits<double>::quiet_NaN();
    const unsigned char *at = statistics.copy + statistics.offsets[argument];
    if (statistics.arrays[argument].dtype == SCALIDE_I32) {
        int32_t count;
        std::memcpy(&count, at, sizeof(count));
        return count;
    }
    float number;
    std::memcpy(&number, at, sizeof(number));
    return number;
}

/// The numbers of the categories of a tensor, which its row collects.
struct CategoryCounts {
    explicit CategoryCounts(const scalide_statistics &statistics, const scalide_collected &tensor) : tensor_(tensor) {
        const int32_t argument = tensor.argument[SCALIDE_PART_CATEGORIES];
        if (argument >= 0) std::memcpy(counts, statistics.copy + statistics.offsets[argument], sizeof(counts));
    }

    /// The number of elements with categories in [from, to).
    int64_t between(int32_t from, int32_t to) const { return std::accumulate(counts + from, counts + to, int64_t{0}); }

    int64_t of(int32_t part) const {
        switch (part) {
        case SCALIDE_PART_ZEROS: return between(1, tensor_.first[0]);
        case SCALIDE_PART_SUBNORMAL: return between(std::max(tensor_.first[0], 1), tensor_.first[1]);
        case SCALIDE_PART_SATURATED:
            return between(tensor_.first[2], infinities) + (tensor_.makes_infinities_finite ? counts[infinities] : 0);
        default: return between(infinities, SCALIDE_STATISTIC_CATEGORIES);
        }
    }

    /// Without its limits, a category is a bin.
    void write_histogram(int32_t *histogram) const {
        std::fill_n(histogram, SCALIDE_HISTOGRAM_BINS, 0);
        for (int32_t category = 1; category < infinities; ++category) {
            const auto is_reached = [=](int32_t limit) { return limit >= 0 && limit <= category; };
            const auto limits = static_cast<int32_t>(std::count_if(std::begin(tensor_.first), std::end(tensor_.first), is_reached));
            const int32_t bin = std::min(category - 1 - limits, SCALIDE_HISTOGRAM_BINS - 1);
            histogram[bin] += counts[category];
        }
    }

private:
    static constexpr int32_t infinities = SCALIDE_STATISTIC_CATEGORIES - 2;
    const scalide_collected &tensor_;
    int32_t counts[SCALIDE_STATISTIC_CATEGORIES] = {};
};

int64_t count_of(const scalide_statistics &statistics, const scalide_collected &tensor, const CategoryCounts &categories, int32_t part,
                 uint32_t kind) {
    if (!(tensor.collects & kind)) return -1;
    return tensor.argument[part] < 0 ? categories.of(part) : static_cast<int64_t>(number_of(statistics, tensor, part));
}

int64_t elements_of(const scalide_statistics &statistics, const scalide_collected &tensor) {
    int64_t count = 1;
    count_elements(tensor.shape, tensor.rank, statistics.collecting->symbols, &count);
    return count;
}

/// Of an array without elements, kernels write the smallest number of all, -infinity.
double amax_of(const scalide_statistics &statistics, const scalide_collected &tensor, int64_t elements) {
    const bool is_empty = elements == 0 && tensor.argument[SCALIDE_PART_AMAX] >= 0;
    return is_empty ? 0 : number_of(statistics, tensor, SCALIDE_PART_AMAX);
}

/// The factors undo the factors of scalide_statistic_part.
double rms_of(const scalide_statistics &statistics, const scalide_collected &tensor, const scalide_statistic &row) {
    const bool is_split = tensor.argument[SCALIDE_PART_LARGE_SQUARES] >= 0;
    const double large = is_split ? number_of(statistics, tensor, SCALIDE_PART_LARGE_SQUARES) * 0x1p150 : 0,
                 small = number_of(statistics, tensor, SCALIDE_PART_SMALL_SQUARES) * 0x1p-40;
    const int64_t finite = row.elements - std::max<int64_t>(row.non_finite, 0);
    const double rms = finite > 0 ? std::sqrt((large + small) / static_cast<double>(finite)) : 0;
    return is_split ? rms : rms * row.scale; // one sum has the units of the data
}

void read_row(const scalide_statistics &statistics, const scalide_collected &tensor, scalide_statistic &row) {
    row.elements = elements_of(statistics, tensor);
    row.amax = amax_of(statistics, tensor, row.elements);
    row.scale = number_of(statistics, tensor, SCALIDE_PART_SCALE);
    const CategoryCounts categories(statistics, tensor);
    row.zeros = count_of(statistics, tensor, categories, SCALIDE_PART_ZEROS, SCALIDE_COLLECTS_ZEROS);
    row.saturated = count_of(statistics, tensor, categories, SCALIDE_PART_SATURATED, SCALIDE_COLLECTS_SATURATED);
    row.subnormal = count_of(statistics, tensor, categories, SCALIDE_PART_SUBNORMAL, SCALIDE_COLLECTS_SUBNORMAL);
    row.non_finite = count_of(statistics, tensor, categories, SCALIDE_PART_NON_FINITE, SCALIDE_COLLECTS_NON_FINITE);
    row.first = row.non_finite < 0 ? -1 : static_cast<int64_t>(number_of(statistics, tensor, SCALIDE_PART_FIRST));
    if (row.non_finite == 0) row.first = -1;
    row.rms = rms_of(statistics, tensor, row);
    std::fill_n(row.histogram, SCALIDE_HISTOGRAM_BINS, -1);
    if (tensor.collects & SCALIDE_COLLECTS_HISTOGRAM) categories.write_histogram(row.histogram);
}

void read_rows(scalide_statistics &statistics) {
    for (int32_t i = 0; i < statistics.plan->count; ++i) {
        if (statistics.steps[i] != statistics.step) continue;
        statistics.rows[i].step = statistics.step;
        read_row(statistics, statistics.plan->tensors[i], statistics.rows[i]);
    }
}

/// Copies the numbers of the newest step to the rows, once.
scalide_status read(scalide_statistics &statistics) {
    if (statistics.is_read) return SCALIDE_OK;
    const scalide_status status = scalide_copy_out(statistics.binding->context, statistics.copy, statistics.numbers, statistics.bytes);
    if (status != SCALIDE_OK) return status;
    read_rows(statistics);
    statistics.is_read = true;
    return SCALIDE_OK;
}

/// Runs the form with statistics. Rows of other tensors keep the numbers of earlier steps, so these are read before.
scalide_status collect(scalide_statistics &statistics, int64_t step) {
    scalide_status status = read(statistics);
    if (status != SCALIDE_OK) return status;
    take_arrays(statistics, statistics.binding->arrays);
    status = scalide_set_arguments(statistics.collecting, statistics.arrays, static_cast<size_t>(statistics.plan->program->argument_count));
    if (status == SCALIDE_OK) status = scalide_run(statistics.collecting);
    if (status != SCALIDE_OK) return status;
    statistics.step = step;
    statistics.is_read = false;
    for (int32_t i = 0; i < statistics.plan->count; ++i)
        if (is_due(statistics.plan->tensors[i], step)) statistics.steps[i] = step;
    return SCALIDE_OK;
}

/// Prepares the constants among `arrays`, which the program itself has.
scalide_status prepare(scalide_context *context, const scalide_statistics_plan &plan, const scalide_array *arrays, size_t count,
                       scalide_constants **constants) {
    const auto total = static_cast<size_t>(plan.program->argument_count);
    Carver size;
    size.take<scalide_array>(total);
    size.take<bool>(total);
    void *memory = allocate(context->allocator, size.bytes());
    if (!memory) {
        start_message(context) << plan.program->name << ": out of memory: cannot allocate a table of the statistics.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    Carver carver(memory);
    auto *all = carver.take<scalide_array>(total);
    auto *is_number = carver.take<bool>(total);
    mark_numbers(plan, is_number);
    size_t own = 0;
    for (size_t i = 0; i < total; ++i) all[i] = !is_number[i] && own < count ? arrays[own++] : scalide_array();
    const scalide_status status = scalide_prepare(context, plan.program, all, total, constants);
    release(context->allocator, memory);
    return status;
}

} // namespace

size_t scalide_statistics_count(const scalide_program *program) {
    const scalide_statistics_plan *plan = plan_of(program);
    return plan ? static_cast<size_t>(plan->count) : 0;
}

scalide_status scalide_describe_statistic(const scalide_program *program, size_t index, scalide_statistic_info *info) {
    if (index >= scalide_statistics_count(program) || !info) return SCALIDE_INVALID_ARGUMENT;
    const scalide_collected &tensor = program->statistics->tensors[index];
    *info = {tensor.tensor, tensor.use,  tensor.op,    tensor.scope,          tensor.location, tensor.policy,  tensor.direction,
             tensor.dtype,  tensor.rank, tensor.every, tensor.first_exponent, tensor.octaves,  tensor.collects};
    return SCALIDE_OK;
}

scalide_status scalide_statistics_create(scalide_binding *binding, const scalide_array *arrays, size_t count, scalide_constants *constants,
                                         scalide_statistics **result) {
    if (result) *result = nullptr;
    const Entry entry(context_of(binding), "scalide_statistics_create", {{"arrays", arrays || count == 0}, {"statistics", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const scalide_program &program = *binding->asked;
    if (!program.statistics) return refuse_without(binding->context, program);
    if (count != static_cast<size_t>(program.argument_count)) {
        start_message(binding->context) << program.name << ": the number of arrays must be " << program.argument_count << ", got "
                                        << uint64_t(count) << ". Pass one for each argument.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    scalide_statistics *made = allocate_statistics(binding->context, *program.statistics);
    if (!made) {
        start_message(binding->context) << program.name << ": out of memory: cannot allocate the tables of the statistics.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    made->binding = binding;
    const scalide_status status = bind_statistics(*made, arrays, constants);
    made->is_read = true;
    for (int32_t i = 0; i < made->plan->count; ++i) made->rows[i].step = -1;
    if (status == SCALIDE_OK) {
        *result = made;
    } else {
        scalide_statistics_destroy(made);
    }
    return status;
}

scalide_status scalide_statistics_prepare(scalide_context *context, const scalide_program *program, const scalide_array *arrays,
                                          size_t count, scalide_constants **constants) {
    if (constants) *constants = nullptr;
    const Entry entry(context, "scalide_statistics_prepare",
                      {{"program", program}, {"arrays", arrays || count == 0}, {"constants", constants}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    if (!plan_of(program)) return refuse_without(context, *program);
    const scalide_status checked = check_program(context, *program);
    return checked == SCALIDE_OK ? prepare(context, *program->statistics, arrays, count, constants) : checked;
}

scalide_status scalide_statistics_set_constants(scalide_statistics *statistics, scalide_constants *constants) {
    return statistics ? scalide_set_constants(statistics->collecting, constants) : SCALIDE_INVALID_ARGUMENT;
}

scalide_status scalide_run_collecting(scalide_statistics *statistics, int64_t step) {
    if (!statistics) return SCALIDE_INVALID_ARGUMENT;
    const Entry entry(statistics->binding->context, "scalide_run_collecting");
    if (entry.status() != SCALIDE_OK) return entry.status();
    const scalide_collected *tensors = statistics->plan->tensors;
    const bool is_any_due =
        std::any_of(tensors, tensors + statistics->plan->count, [&](const auto &tensor) { return is_due(tensor, step); });
    return is_any_due ? collect(*statistics, step) : scalide_run(statistics->binding);
}

scalide_status scalide_read_statistics(scalide_statistics *statistics, scalide_statistic *rows, size_t count) {
    if (!statistics) return SCALIDE_INVALID_ARGUMENT;
    const Entry entry(statistics->binding->context, "scalide_read_statistics", {{"rows", rows || count == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    if (count != static_cast<size_t>(statistics->plan->count)) {
        start_message(statistics->binding->context)
            << statistics->binding->asked->name << ": the number of rows must be " << statistics->plan->count << ", got " << uint64_t(count)
            << ". Ask scalide_statistics_count.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    const FloatEnvironment environment;
    const scalide_status status = read(*statistics);
    if (status == SCALIDE_OK) std::copy_n(statistics->rows, count, rows);
    return status;
}

int64_t scalide_statistics_step(const scalide_statistics *statistics) { return statistics ? statistics->step : -1; }

const scalide_program *scalide_statistics_program(const scalide_statistics *statistics) {
    return statistics ? statistics->binding->asked : nullptr;
}

void scalide_statistics_destroy(scalide_statistics *statistics) {
    if (!statistics) return;
    scalide_context *context = statistics->binding->context;
    scalide_binding_destroy(statistics->collecting);
    scalide_release(context, statistics->numbers);
    release(context->allocator, statistics);
}

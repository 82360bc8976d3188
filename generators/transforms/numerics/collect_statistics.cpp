#include "transforms/numerics/collect_statistics.h"
#include "ir/dtype.h"
#include "rulebook/builder.h"
#include "rulebook/nearest.h"
#include "transforms/analysis/operators.h"
#include "transforms/numerics/loop_statistics.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <ranges>

namespace scalide {

namespace {

/// Squares of f32 magnitudes leave the range of f32 at both ends. So large magnitudes are summed with a factor of 2^-75, and others with a
/// factor of 2^20. Sums of up to 2^20 squares stay finite, and magnitudes from 2^-83 on count.
constexpr double large_from = 0x1p20, large_factor = 0x1p-75, small_factor = 0x1p20;

/// The bits of an f32 number are sign, 8 bits of the exponent plus 127, and 23 bits of the mantissa.
constexpr int mantissa_bits_of_f32 = 23, bias_of_f32 = 127;
constexpr uint32_t infinity_of_f32 = 0x7f800000;

/// The exponent of f32 with which the second bin begins, less the octaves of a bin.
int first_exponent_of(const MagnitudeBins &bins) { return bias_of_f32 + bins.first_exponent - bins.octaves; }

/// Returns the bin of a finite magnitude, which is the number of f32 with these bits, 0 for zero.
int bin_of(const MagnitudeBins &bins, uint32_t bits) {
    const int above = static_cast<int>(bits >> mantissa_bits_of_f32) - first_exponent_of(bins);
    return std::clamp(above, 0, statistic_bins * bins.octaves - 1) / bins.octaves;
}

/// Writes the nodes of the statistics of one tensor.
class Collector {
public:
    Collector(Builder &builder, const StatisticsSite &site, CollectedStatistic &made, const std::string &prefix, bool is_gpu)
        : builder_(builder), site_(site), made_(made), prefix_(prefix), is_gpu_(is_gpu), shape_(builder.type(site.data).shape),
          format_(format_of(site.format)) {}

    void collect(const std::vector<StatisticKind> &kinds) {
        has_table_ = std::ranges::count(kinds, StatisticKind::histogram) > 0;
        for (const StatisticKind kind : kinds)
            if (collect(kind)) made_.collects |= 1u << static_cast<uint32_t>(kind);
        if (has_table_) add_categories();
    }

private:
    /// Returns false for a kind that the tensor does not have.
    bool collect(StatisticKind kind) {
        const bool is_rounded = site_.stored != site_.data;
        switch (kind) {
        case StatisticKind::amax: add_amax(); return true;
        case StatisticKind::rms: add_squares(); return true;
        case StatisticKind::zeros:
            if (is_rounded) count_limit(0, StatisticPart::zeros, "zeros");
            return is_rounded;
        case StatisticKind::saturated:
            if (is_rounded) count_limit(2, StatisticPart::saturated, "saturated");
            return is_rounded;
        case StatisticKind::subnormal: count_limit(1, StatisticPart::subnormal, "subnormal"); return true;
        case StatisticKind::non_finite: add_non_finite(); return true;
        case StatisticKind::histogram: return true;
        }
        return false;
    }

    void add(StatisticPart part, const std::string &word, ValueId value) {
        std::string &name = made_.results[static_cast<size_t>(part)];
        name = prefix_ + word;
        builder_.program().results.push_back({name, value});
    }

    ValueId filled(double number, Dtype dtype = Dtype::f32) { return builder_.broadcast(builder_.constant(number, dtype), shape_); }
    ValueId op(const char *name, ValueId a) { return builder_.add_one(name, {a}); }
    ValueId op(const char *name, ValueId a, ValueId b) { return builder_.add_one(name, {a, b}); }
    ValueId choose(ValueId condition, ValueId no, ValueId yes) { return builder_.add_one("select_n", {condition, no, yes}); }

    ValueId reduce(const char *name, ValueId value) {
        const auto rank = static_cast<int64_t>(builder_.type(value).shape.size());
        return rank == 0 ? value : builder_.add_one(name, {value}, reduce_attributes(count_up(rank)));
    }
    ValueId count(ValueId condition) { return reduce("reduce_sum", builder_.convert(condition, Dtype::i32)); }

    /// The magnitudes of a value in f32, with 0 for infinities and NaNs.
    ValueId finite_magnitudes(ValueId value) {
        const ValueId wide = builder_.convert(value, Dtype::f32);
        return choose(op("is_finite", wide), filled(0), op("abs", wide));
    }

    void add_amax() {
        add(StatisticPart::amax, "amax", times_scale(reduce("reduce_max", finite_magnitudes(site_.value))));
        add_scale();
    }

    void add_scale() {
        const bool is_known = !made_.results[static_cast<size_t>(StatisticPart::scale)].empty();
        if (is_known || (site_.factor < 0 && site_.scale < 0)) return;
        add(StatisticPart::scale, "scale",
            site_.factor < 0 ? site_.scale : builder_.add_one("divide_no_nan", {builder_.constant(1), site_.factor}));
    }

    /// The data of a scaled argument is in units of its scale. The tensor of another site is known before it is divided.
    ValueId times_scale(ValueId scalar) { return site_.is_data ? op("mul", scalar, site_.scale) : scalar; }

    /// Data of an argument, and data that was multiplied by the inverse of a scale from its own amax, is in the range of its format. So one
    /// sum is enough.
    void add_squares() {
        if (site_.factor >= 0 || site_.is_data) {
            add(StatisticPart::small_squares, "small_squares", sum_of_squares(finite_magnitudes(site_.data), small_factor));
            return add_scale();
        }
        const ValueId magnitudes = finite_magnitudes(site_.value), is_large = op("ge", magnitudes, filled(large_from));
        add(StatisticPart::large_squares, "large_squares", sum_of_squares(choose(is_large, filled(0), magnitudes), large_factor));
        add(StatisticPart::small_squares, "small_squares", sum_of_squares(choose(is_large, magnitudes, filled(0)), small_factor));
    }

    ValueId sum_of_squares(ValueId magnitudes, double factor) {
        const ValueId scaled = op("mul", magnitudes, filled(factor));
        return reduce("reduce_sum", op("mul", scaled, scaled));
    }

    /// The result of the conversion, as the number that it stands for.
    ValueId stored() { return builder_.convert(site_.stored, Dtype::f32); }

    /// Counts by a limit of the table. Without a table, or with random bits, a sum over all elements counts.
    void count_limit(size_t limit, StatisticPart part, const std::string &word) {
        const bool is_in_table = has_table_ && (limit == 2 || !site_.rounds_at_random);
        if (is_in_table) {
            limits_[limit] = limit_of(limit);
            if (limit == 1 && site_.stored != site_.data) limits_[0] = limit_of(0); // a number that becomes 0 is not subnormal
        } else
            add(part, word, count(limit == 0 ? becomes_zero() : limit == 1 ? is_subnormal() : is_saturated()));
    }

    /// The bits of the smallest f32 magnitude beyond a limit. Magnitudes of f32 have the order of their bits.
    uint32_t limit_of(size_t limit) const {
        const double normal = std::ldexp(1.0, 1 - format_.bias);
        const auto is_below = [&](uint32_t bits) {
            const double magnitude = std::bit_cast<float>(bits), rounded = decode(format_, encode(format_, magnitude));
            return limit == 0 ? rounded == 0 : limit == 1 ? rounded < normal : !is_beyond(format_, magnitude);
        };
        const auto all = std::views::iota(1u, infinity_of_f32);
        return *std::ranges::partition_point(all, is_below);
    }

    ValueId becomes_zero() { return op("and", op("eq", stored(), filled(0)), op("ne", site_.data, filled(0))); }

    /// As is_beyond() of ir/dtype.h. Of infinities, those count that become finite.
    ValueId is_saturated() {
        const ValueId magnitude = op("abs", builder_.convert(site_.data, Dtype::f32));
        const ValueId is_beyond = op(is_tie_beyond(format_) ? "ge" : "gt", magnitude, filled(beyond_limit(format_)));
        return op("and", is_beyond, op("or", op("is_finite", magnitude), op("is_finite", stored())));
    }

    ValueId is_subnormal() {
        const ValueId magnitude = op("abs", stored());
        const ValueId is_small = op("lt", magnitude, filled(std::ldexp(1.0, 1 - format_.bias)));
        return op("and", is_small, op("ne", magnitude, filled(0)));
    }

    void add_non_finite() {
        const ValueId is_finite = op("is_finite", builder_.convert(site_.value, Dtype::f32));
        if (!has_table_) add(StatisticPart::non_finite, "non_finite", count(op("not", is_finite)));
        const double none = 2147483647;
        add(StatisticPart::first_non_finite, "first_non_finite",
            reduce("reduce_min", choose(is_finite, places(), filled(none, Dtype::i32))));
    }

    Extent elements() const { return element_count(shape_); }

    ValueId count_up_to(const Extents &shape, int64_t dimension) {
        return builder_.add_one("iota", {}, {{"dtype", std::string("i32")}, {"shape", to_attribute(shape)}, {"dimension", dimension}});
    }

    /// The row-major index of each element.
    ValueId places() { return builder_.add_one("reshape", {count_up_to({elements()}, 0)}, reshape_attributes(shape_)); }

    /// 1 + the bin of each element, as bin_of() computes it.
    ValueId after_bins(ValueId bits) {
        const int octaves = made_.bins.octaves, shift = mantissa_bits_of_f32 + std::bit_width(static_cast<unsigned>(octaves)) - 1;
        const int64_t least = int64_t{first_exponent_of(made_.bins)} << mantissa_bits_of_f32, bin = int64_t{1} << shift;
        const ValueId at_least = op("max", bits, filled(least, Dtype::i32));
        const ValueId inside = op("min", at_least, filled(least + statistic_bins * bin - 1, Dtype::i32));
        const ValueId from_first = op("sub", inside, filled(least - bin, Dtype::i32));
        return op("shift_right_logical", from_first, filled(shift, Dtype::i32));
    }

    /// Adds the number of limits that each element reaches, and writes the categories of the limits. A limit that the collector does not
    /// count has no category.
    ValueId past_limits(ValueId bits) {
        ValueId category = after_bins(bits);
        int passed = 0;
        for (size_t limit = 0; limit < limits_.size(); limit++) {
            if (limits_[limit] == 0) continue;
            category = op("add", category, builder_.convert(op("ge", bits, filled(limits_[limit], Dtype::i32)), Dtype::i32));
            made_.categories.first[limit] = bin_of(made_.bins, limits_[limit]) + 1 + ++passed;
        }
        return category;
    }

    void add_categories() {
        const ValueId wide = builder_.convert(site_.value, Dtype::f32);
        const ValueId magnitude = op("abs", builder_.convert(site_.data, Dtype::f32));
        const ValueId bits = builder_.add_one("bitcast_convert_type", {magnitude}, convert_attributes(Dtype::i32));
        const ValueId is_zero = op("eq", bits, filled(0, Dtype::i32));
        const ValueId finite = choose(is_zero, past_limits(bits), filled(0, Dtype::i32));
        const ValueId beyond =
            choose(op("ne", wide, wide), filled(statistic_categories - 2, Dtype::i32), filled(statistic_categories - 1, Dtype::i32));
        const ValueId category = choose(op("is_finite", wide), beyond, finite);
        made_.categories.makes_infinities_finite = site_.makes_infinities_finite;
        const ValueId flat = builder_.add_one("reshape", {category}, reshape_attributes({elements()}));
        add(StatisticPart::categories, "categories",
            is_gpu_ || elements() == Extent(1) ? count_by_comparisons(flat) : count_by_scatter(flat));
    }

    /// Compares each element with each category. On a GPU, the kernel has many threads and no conflicts. A single element needs no loop.
    ValueId count_by_comparisons(ValueId categories) {
        const Extents table{elements(), Extent(statistic_categories)};
        const ValueId all = builder_.add_one("broadcast_in_dim", {categories}, broadcast_attributes(table, {0}));
        const ValueId hits = builder_.convert(op("eq", all, count_up_to(table, 1)), Dtype::i32);
        return builder_.add_one("reduce_sum", {hits}, reduce_attributes({0}));
    }

    /// Adds 1 to the category of each element. For 8,192 elements on a Zen 4 core, this takes 3.3 us, and comparisons with 32 categories
    /// take 11.6 us (2026-11-29).
    ValueId count_by_scatter(ValueId categories) {
        const ValueId none = builder_.broadcast(builder_.constant(0, Dtype::i32), {Extent(statistic_categories)});
        const ValueId ones = builder_.broadcast(builder_.constant(1, Dtype::i32), {elements()});
        const ValueId bytes = builder_.convert(builder_.convert(categories, Dtype::u8), Dtype::i32);
        const ValueId indices = builder_.add_one("reshape", {bytes}, reshape_attributes({elements(), 1}));
        return builder_.add_one("scatter_add", {none, indices, ones},
                                {{"mode", std::string("promise_in_bounds")},
                                 {"update_window_dims", to_attribute(std::vector<int64_t>())},
                                 {"inserted_window_dims", to_attribute(std::vector<int64_t>{0})},
                                 {"scatter_dims_to_operand_dims", to_attribute(std::vector<int64_t>{0})}});
    }

    Builder &builder_;
    const StatisticsSite &site_;
    CollectedStatistic &made_;
    const std::string prefix_;
    const bool is_gpu_;
    const Extents shape_;
    const FormatSpec &format_;
    bool has_table_ = false;
    std::array<uint32_t, 3> limits_ = {}; ///< as in Categories; 0: not counted
};

/// Throws UserError for a row that decides for no site.
void check_rows(const std::vector<StatisticsRow> &rows, const std::vector<const StatisticsRow *> &deciding,
                const std::vector<StatisticsSite> &sites) {
    for (const StatisticsRow &row : rows) {
        if (row.optional || row.inherited || std::ranges::count(deciding, &row)) continue;
        const bool is_hidden = std::ranges::any_of(sites, [&](const auto &site) { return deciding_row(site, {row}) != nullptr; });
        std::vector<std::string> names;
        for (const StatisticsSite &site : sites) names.push_back(site.tensor);
        const std::string wanted = row.argument.empty() ? row.tensor : row.argument;
        throw UserError(
            statement(row.location,
                      is_hidden ? "earlier rows of 'statistics' decide for all tensors that this row matches"
                                : "this row of 'statistics' matches no tensor",
                      is_hidden || wanted.empty() ? "If the row may match nothing, add 'optional: true'" : suggestion(wanted, names)));
    }
}

/// What decides which numbers are collected, and how.
struct Collection {
    const Rulebook &rulebook;
    const std::vector<StatisticsRow> &rows;
    bool is_gpu;
};

/// Adds results to a program for sites of it. `first` is the number of the first entry that it returns.
std::vector<CollectedStatistic> collect_sites(Program &program, const Collection &how, const std::vector<StatisticsSite> &sites,
                                              size_t first, std::vector<const StatisticsRow *> &deciding) {
    std::vector<CollectedStatistic> collected;
    for (const StatisticsSite &site : sites) {
        const StatisticsRow *row = deciding_row(site, how.rows);
        if (row == nullptr) continue;
        deciding.push_back(row);
        CollectedStatistic made{.site = site,
                                .row = row->location,
                                .every = row->every,
                                .shape = program.type(site.data).shape,
                                .bins = magnitude_bins(site.format)};
        Builder builder(how.rulebook, program);
        Collector collector(builder, site, made, "statistics." + std::to_string(first + collected.size()) + ".", how.is_gpu);
        collector.collect(row->collect);
        collected.push_back(std::move(made));
    }
    return collected;
}

} // namespace

MagnitudeBins magnitude_bins(Dtype format) {
    const FormatSpec &spec = format_of(format);
    if (spec.exponent_bits >= format_of(Dtype::f32).exponent_bits) return {-40, 2}; // 2^-40 to 2^20
    const int top = std::ilogb(decode(spec, spec.max_code)), bottom = 1 - spec.bias - spec.mantissa_bits, inner = statistic_bins - 2;
    const int window = top - bottom + 1, octaves = window + 8 <= inner ? 1 : 2;
    return {bottom - (inner * octaves - window) / 2, octaves};
}

std::vector<CollectedStatistic> collect_statistics(Program &program, const Rulebook &rulebook, const std::vector<StatisticsRow> &rows,
                                                   const NamedTensors &source, bool is_gpu) {
    std::vector<StatisticsSite> sites = statistics_sites(program, rulebook, source.outside);
    const std::vector<LoopSites> loops = loop_sites(program, Directions(program), rulebook, source.inside);
    const std::vector<int> made_by = producers(program);
    std::vector<const StatisticsRow *> deciding;
    const auto collect = [&](Program &into, const std::vector<StatisticsSite> &of, size_t first) {
        return collect_sites(into, {rulebook, rows, is_gpu}, of, first, deciding);
    };
    const std::vector<CollectedStatistic> outside = collect(program, sites, 0);
    std::vector<CollectedStatistic> collected;
    size_t next = 0, count = outside.size();
    for (const LoopSites &loop : loops) { // in the order of the program
        const auto is_later = [&](const CollectedStatistic &tensor) { return made_by[tensor.site.stored] > static_cast<int>(loop.node); };
        for (; next < outside.size() && !is_later(outside[next]); next++) collected.push_back(outside[next]);
        const std::vector<CollectedStatistic> made = collect_in_loop(program, loop, rulebook, count, collect);
        collected.insert(collected.end(), made.begin(), made.end());
        count += made.size();
    }
    collected.insert(collected.end(), outside.begin() + static_cast<ptrdiff_t>(next), outside.end());
    visit_sites(loops, [&](const StatisticsSite &site) { sites.push_back(site); });
    check_rows(rows, deciding, sites);
    return collected;
}

} // namespace scalide

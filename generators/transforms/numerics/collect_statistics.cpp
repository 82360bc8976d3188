#include "transforms/numerics/collect_statistics.h"
#include "ir/dtype.h"
#include "rulebook/builder.h"
#include "rulebook/nearest.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// Squares of f32 magnitudes leave the range of f32 at both ends. So large magnitudes are summed with a factor of 2^-75, and others with a
/// factor of 2^20. Sums of up to 2^20 squares stay finite, and magnitudes from 2^-83 on count.
constexpr double large_from = 0x1p20, large_factor = 0x1p-75, small_factor = 0x1p20;

/// The bits of an f32 number are sign, 8 bits of the exponent plus 127, and 23 bits of the mantissa.
constexpr int mantissa_bits_of_f32 = 23, bias_of_f32 = 127;

/// Writes the nodes of the statistics of one tensor.
class Collector {
public:
    Collector(Builder &builder, const StatisticsSite &site, CollectedStatistic &made, const std::string &prefix, bool is_gpu)
        : builder_(builder), site_(site), made_(made), prefix_(prefix), is_gpu_(is_gpu), shape_(builder.type(site.data).shape),
          format_(format_of(site.format)) {}

    void collect(StatisticKind kind) {
        switch (kind) {
        case StatisticKind::amax: return add_amax();
        case StatisticKind::rms: return add_squares();
        case StatisticKind::zeros: return add_zeros();
        case StatisticKind::saturated: return add_saturated();
        case StatisticKind::subnormal: return add_subnormal();
        case StatisticKind::non_finite: return add_non_finite();
        case StatisticKind::histogram: return add_histogram();
        }
    }

private:
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

    bool is_scaled_argument() const { return site_.is_argument && site_.scale >= 0; }

    /// The data of a scaled argument is in units of its scale. The tensor of another site is known before it is divided.
    ValueId times_scale(ValueId scalar) { return is_scaled_argument() ? op("mul", scalar, site_.scale) : scalar; }

    /// Data of an argument, and data that was multiplied by the inverse of a scale from its own amax, is in the range of its format. So one
    /// sum is enough.
    void add_squares() {
        if (site_.factor >= 0 || is_scaled_argument()) {
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

    void add_zeros() {
        if (site_.stored == site_.data) return; // nothing is rounded
        add(StatisticPart::zeros, "zeros", count(op("and", op("eq", stored(), filled(0)), op("ne", site_.data, filled(0)))));
    }

    /// As is_beyond() of ir/dtype.h. Of infinities, those count that become finite.
    void add_saturated() {
        if (site_.stored == site_.data) return;
        const ValueId magnitude = op("abs", builder_.convert(site_.data, Dtype::f32));
        const ValueId is_beyond = op(is_tie_beyond(format_) ? "ge" : "gt", magnitude, filled(beyond_limit(format_)));
        const ValueId is_one_finite = op("or", op("is_finite", magnitude), op("is_finite", stored()));
        add(StatisticPart::saturated, "saturated", count(op("and", is_beyond, is_one_finite)));
    }

    void add_subnormal() {
        const ValueId magnitude = op("abs", stored());
        const ValueId is_small = op("lt", magnitude, filled(std::ldexp(1.0, 1 - format_.bias)));
        add(StatisticPart::subnormal, "subnormal", count(op("and", is_small, op("ne", magnitude, filled(0)))));
    }

    void add_non_finite() {
        const ValueId is_finite = op("is_finite", builder_.convert(site_.value, Dtype::f32));
        add(StatisticPart::non_finite, "non_finite", count(op("not", is_finite)));
        const double none = 2147483647;
        add(StatisticPart::first_non_finite, "first_non_finite",
            reduce("reduce_min", choose(is_finite, places(), filled(none, Dtype::i32))));
    }

    Extent elements() const {
        Extent product = 1;
        for (const Extent &extent : shape_) product = product * extent;
        return product;
    }

    ValueId count_up_to(const Extents &shape, int64_t dimension) {
        return builder_.add_one("iota", {}, {{"dtype", std::string("i32")}, {"shape", to_attribute(shape)}, {"dimension", dimension}});
    }

    /// The row-major index of each element.
    ValueId places() { return builder_.add_one("reshape", {count_up_to({elements()}, 0)}, reshape_attributes(shape_)); }

    void add_histogram() {
        const MagnitudeBins bins = made_.bins;
        const ValueId magnitudes = finite_magnitudes(site_.data);
        const ValueId bits = builder_.add_one("bitcast_convert_type", {magnitudes}, convert_attributes(Dtype::i32));
        const ValueId exponent = op("shift_right_logical", bits, filled(mantissa_bits_of_f32, Dtype::i32));
        const ValueId above = op("sub", exponent, filled(bias_of_f32 + bins.first_exponent - bins.octaves, Dtype::i32));
        const ValueId at_least = op("max", above, filled(0, Dtype::i32));
        const ValueId inside = op("min", at_least, filled(statistic_bins * bins.octaves - 1, Dtype::i32));
        const ValueId bin = bins.octaves == 1 ? inside : op("shift_right_logical", inside, filled(std::log2(bins.octaves), Dtype::i32));
        const ValueId is_counted = op("ne", magnitudes, filled(0));
        const ValueId counted = choose(is_counted, filled(statistic_bins, Dtype::i32), bin);
        const ValueId flat = builder_.add_one("reshape", {counted}, reshape_attributes({elements()}));
        add(StatisticPart::histogram, "histogram", is_gpu_ ? count_by_comparisons(flat) : count_by_scatter(flat));
    }

    /// Counts each bin in all elements. On a GPU, the kernel has many threads and no conflicts.
    ValueId count_by_comparisons(ValueId bins) {
        const Extents table{elements(), Extent(statistic_bins)};
        const ValueId all = builder_.add_one("broadcast_in_dim", {bins}, broadcast_attributes(table, {0}));
        const ValueId hits = builder_.convert(op("eq", all, count_up_to(table, 1)), Dtype::i32);
        return builder_.add_one("reduce_sum", {hits}, reduce_attributes({0}));
    }

    /// Adds 1 to the bin of each element; a bin out of range counts nowhere. For 8,192 elements on a Zen 4 core, this takes 3.3 us, and
    /// comparisons take 11.6 us (2026-11-29).
    ValueId count_by_scatter(ValueId bins) {
        const ValueId none = builder_.broadcast(builder_.constant(0, Dtype::i32), {Extent(statistic_bins)});
        const ValueId ones = builder_.broadcast(builder_.constant(1, Dtype::i32), {elements()});
        const ValueId indices = builder_.add_one("reshape", {bins}, reshape_attributes({elements(), 1}));
        return builder_.add_one("scatter_add", {none, indices, ones},
                                {{"update_window_dims", to_attribute(std::vector<int64_t>())},
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

} // namespace

MagnitudeBins magnitude_bins(Dtype format) {
    const FormatSpec &spec = format_of(format);
    if (spec.exponent_bits >= format_of(Dtype::f32).exponent_bits) return {-40, 2}; // 2^-40 to 2^20
    const int top = std::ilogb(decode(spec, spec.max_code)), bottom = 1 - spec.bias - spec.mantissa_bits, inner = statistic_bins - 2;
    const int window = top - bottom + 1, octaves = window + 8 <= inner ? 1 : 2;
    return {bottom - (inner * octaves - window) / 2, octaves};
}

std::vector<CollectedStatistic> collect_statistics(Program &program, const Rulebook &rulebook, const std::vector<StatisticsRow> &rows,
                                                   const std::map<std::string, NamedTensor> &source, bool is_gpu) {
    const std::vector<StatisticsSite> sites = statistics_sites(program, rulebook, source);
    std::vector<CollectedStatistic> collected;
    std::vector<const StatisticsRow *> deciding;
    for (const StatisticsSite &site : sites) {
        const StatisticsRow *row = deciding_row(site, rows);
        if (row == nullptr) continue;
        deciding.push_back(row);
        CollectedStatistic made{.site = site,
                                .row = row->location,
                                .every = row->every,
                                .shape = program.type(site.data).shape,
                                .bins = magnitude_bins(site.format)};
        Builder builder(rulebook, program);
        Collector collector(builder, site, made, "statistics." + std::to_string(collected.size()) + ".", is_gpu);
        for (const StatisticKind kind : row->collect) collector.collect(kind);
        collected.push_back(std::move(made));
    }
    check_rows(rows, deciding, sites);
    return collected;
}

} // namespace scalide

#include "tool/statistics_report.h"
#include "ir/words.h"
#include "tool/tables.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using StatisticJson = nlohmann::ordered_json;

/// A number of a tensor. A count that is not collected is negative, and another number NaN.
struct StatisticColumn {
    const char *key;
    double scalide_statistic::*number;
    int64_t scalide_statistic::*count;
};
constexpr StatisticColumn statistic_columns[] = {
    {"step", nullptr, &scalide_statistic::step},
    {"elements", nullptr, &scalide_statistic::elements},
    {"amax", &scalide_statistic::amax, nullptr},
    {"scale", &scalide_statistic::scale, nullptr},
    {"rms", &scalide_statistic::rms, nullptr},
    {"zeros", nullptr, &scalide_statistic::zeros},
    {"saturated", nullptr, &scalide_statistic::saturated},
    {"subnormal", nullptr, &scalide_statistic::subnormal},
    {"non_finite", nullptr, &scalide_statistic::non_finite},
    {"first", nullptr, &scalide_statistic::first},
};

/// Returns the location of "net.scl:4"; without a line if it is not known.
Location location_of(const char *text) {
    const std::string place = text ? text : "";
    const size_t colon = place.rfind(':');
    Location location;
    if (colon == std::string::npos) return location;
    location.file = place.substr(0, colon);
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), location.line);
    return location;
}

std::string or_dash(const std::string &text) { return text.empty() ? "-" : text; }

std::string text_of(const StatisticColumn &column, const scalide_statistic &numbers) {
    if (column.count) return numbers.*column.count < 0 ? "-" : std::to_string(numbers.*column.count);
    return std::isnan(numbers.*column.number) ? "-" : fmt::format("{:.4g}", numbers.*column.number);
}

StatisticJson json_of(const StatisticColumn &column, const scalide_statistic &numbers) {
    if (column.count) return numbers.*column.count < 0 ? StatisticJson() : StatisticJson(numbers.*column.count);
    const double number = numbers.*column.number;
    if (std::isnan(number)) return {};
    return std::isinf(number) ? StatisticJson("inf") : StatisticJson(number);
}

/// Pairs of an exponent and a count above 0, or null.
StatisticJson histogram_of(const TensorStatistic &row) {
    if (row.numbers.histogram[0] < 0) return {};
    StatisticJson pairs = StatisticJson::array();
    for (int bin = 0; bin < SCALIDE_HISTOGRAM_BINS; bin++)
        if (row.numbers.histogram[bin] > 0) pairs.push_back({row.first_exponent + (bin - 1) * row.octaves, row.numbers.histogram[bin]});
    return pairs;
}

} // namespace

std::vector<TensorStatistic> read_statistics(scalide_statistics *statistics) {
    const scalide_program *program = scalide_statistics_program(statistics);
    std::vector<scalide_statistic> numbers(scalide_statistics_count(program));
    if (scalide_read_statistics(statistics, numbers.data(), numbers.size()) != SCALIDE_OK)
        throw UserError(failed_action("read the statistics", "the device failed", "Run the program again"));
    std::vector<TensorStatistic> rows;
    for (size_t i = 0; i < numbers.size(); i++) {
        scalide_statistic_info info = {};
        scalide_describe_statistic(program, i, &info);
        if (numbers[i].step < 0) continue;
        rows.push_back({info.tensor, info.use, info.op, scalide_dtype_name(info.dtype), info.scope, info.direction,
                        info.policy ? info.policy : "", location_of(info.location), info.first_exponent, info.octaves, numbers[i]});
    }
    return rows;
}

std::string to_text(const std::vector<TensorStatistic> &rows) {
    std::vector<std::vector<std::string>> table{{"tensor", "use", "format"}};
    for (const StatisticColumn &column : statistic_columns) {
        std::string &heading = table[0].emplace_back(column.key);
        std::ranges::replace(heading, '_', ' ');
    }
    table[0].insert(table[0].end(), {"operator", "scope", "direction", "source", "policy"});
    for (const TensorStatistic &row : rows) {
        std::vector<std::string> &words = table.emplace_back(std::vector{name_to_string(row.tensor), row.use, row.format});
        for (const StatisticColumn &column : statistic_columns) words.push_back(text_of(column, row.numbers));
        words.insert(words.end(), {or_dash(row.op), or_dash(row.scope), row.direction, short_place(row.source, "-"), or_dash(row.policy)});
    }
    drop_unused_columns(table);
    return in_columns(table);
}

std::string to_json(const std::vector<TensorStatistic> &rows) {
    StatisticJson list = StatisticJson::array();
    for (const TensorStatistic &row : rows) {
        StatisticJson members = {{"tensor", row.tensor}, {"use", row.use}, {"format", row.format}};
        for (const StatisticColumn &column : statistic_columns) members[column.key] = json_of(column, row.numbers);
        members["histogram"] = histogram_of(row);
        members["operator"] = row.op;
        members["scope"] = row.scope;
        members["direction"] = row.direction == "-" ? StatisticJson() : StatisticJson(row.direction);
        members["source"] = place_json(row.source);
        members["policy"] = row.policy;
        list.push_back(std::move(members));
    }
    return list.dump(2, ' ', false, StatisticJson::error_handler_t::replace) + "\n";
}

} // namespace scalide

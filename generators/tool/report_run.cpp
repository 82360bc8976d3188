#include "tool/report_run.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using RunJson = nlohmann::ordered_json;

/// More points than a wide screen has pixels are not visible: of each interval of a curve, the smallest and the largest value stay.
constexpr size_t most_points = 4000;

std::string base64(const std::vector<uint8_t> &bytes) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve(bytes.size() / 3 * 4 + 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const size_t count = std::min<size_t>(3, bytes.size() - i);
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (k < count ? bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++) text += k <= count ? letters[bits >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

/// A magnitude in two bytes: 64 * (log2 + 256), so the error is below 0.6 %. 0: not collected. 1: zero. 65535: infinite.
uint16_t magnitude_code(float value) {
    if (value < 0) return 0;
    if (value == 0) return 1;
    if (std::isinf(value)) return 65535;
    return static_cast<uint16_t>(std::clamp(std::round(64 * (std::log2(value) + 256)), 2.0F, 65534.0F));
}

/// A share in one byte: 254 + 10 * log2, so the error is below 4 %. 0: not collected. 1: zero. 2: 2^-25 or less.
uint8_t share_code(float count, double elements) {
    if (count < 0 || elements <= 0) return 0;
    if (count == 0) return 1;
    return static_cast<uint8_t>(std::clamp(std::round(254 + 10 * std::log2(count / elements)), 2.0, 254.0));
}

bool is_magnitude(RunStatistic which) { return which == RunStatistic::amax || which == RunStatistic::scale || which == RunStatistic::rms; }

/// The cells of a statistic, tensor by tensor. Empty if no tensor has it.
std::string cells_of(const RunLog &log, RunStatistic which) {
    std::vector<uint8_t> bytes;
    bool has_one = false;
    for (size_t tensor = 0; tensor < log.tensors.size(); tensor++) {
        for (const StepColumn &column : log.columns) {
            const float value = tensor < column.samples.size() ? column.samples[tensor][which] : not_collected;
            has_one |= value >= 0;
            if (is_magnitude(which)) {
                const uint16_t code = magnitude_code(value);
                bytes.push_back(static_cast<uint8_t>(code & 255));
                bytes.push_back(static_cast<uint8_t>(code >> 8));
            } else {
                bytes.push_back(share_code(value, log.tensors[tensor].elements));
            }
        }
    }
    return has_one ? base64(bytes) : "";
}

RunJson tensors_json(const RunLog &log) {
    RunJson rows = RunJson::array();
    for (const LoggedTensor &tensor : log.tensors)
        rows.push_back({{"tensor", tensor.tensor},
                        {"use", tensor.use},
                        {"operator", tensor.op},
                        {"format", tensor.format},
                        {"scope", tensor.scope},
                        {"direction", tensor.direction},
                        {"source", tensor.source},
                        {"policy", tensor.policy},
                        {"elements", tensor.elements},
                        {"largest", tensor.largest},
                        {"normal", tensor.smallest_normal},
                        {"smallest", tensor.smallest},
                        {"every", tensor.every},
                        {"first_exponent", tensor.first_exponent},
                        {"octaves", tensor.octaves}});
    return rows;
}

/// The share of elements of each bin, in one byte.
RunJson histograms_json(const RunLog &log) {
    RunJson rows = RunJson::array();
    for (const std::vector<Histogram> &histograms : log.histograms) {
        RunJson row = RunJson::array();
        for (const Histogram &histogram : histograms) {
            double sum = 0;
            for (const double count : histogram.counts) sum += count;
            std::vector<uint8_t> bytes;
            for (const double count : histogram.counts) bytes.push_back(share_code(static_cast<float>(count), sum));
            row.push_back({histogram.step, magnitude_code(histogram.scale), base64(bytes)});
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

RunJson number_json(double value) {
    if (std::isfinite(value)) return static_cast<float>(value);
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// Returns the points of a curve that are visible.
std::vector<MetricPoint> visible(const std::vector<MetricPoint> &points) {
    if (points.size() <= most_points) return points;
    const size_t width = 2 * (points.size() + most_points - 1) / most_points;
    std::vector<MetricPoint> kept;
    for (size_t begin = 0; begin < points.size(); begin += width) {
        const size_t end = std::min(begin + width, points.size());
        size_t low = begin, high = begin;
        for (size_t i = begin; i < end; i++) {
            if (std::isnan(points[i].value)) low = high = i;
            if (points[i].value < points[low].value) low = i;
            if (points[i].value > points[high].value) high = i;
        }
        kept.push_back(points[std::min(low, high)]);
        if (low != high) kept.push_back(points[std::max(low, high)]);
    }
    return kept;
}

} // namespace

RunJson describe_metrics(const RunLog &log) {
    RunJson metrics = RunJson::object();
    for (const std::string &name : log.metric_names) {
        RunJson steps = RunJson::array(), values = RunJson::array();
        for (const MetricPoint &point : visible(log.metrics.at(name))) {
            steps.push_back(point.step);
            values.push_back(number_json(point.value));
        }
        metrics[name] = {{"steps", steps}, {"values", values}};
    }
    return {{"name", log.name}, {"metrics", metrics}};
}

RunJson describe_run(const RunLog &log) {
    RunJson run = describe_metrics(log);
    run.update({{"program", log.program},
                {"numerics", log.numerics},
                {"target", log.target},
                {"first_step", log.first_step},
                {"last_step", log.last_step},
                {"lines", log.statistic_lines},
                {"tensors", tensors_json(log)},
                {"columns", RunJson::array()},
                {"cells", RunJson::object()},
                {"histograms", histograms_json(log)}});
    for (const StepColumn &column : log.columns) run["columns"].push_back({column.first, column.last});
    for (size_t which = 0; which < statistic_count; which++)
        if (std::string cells = cells_of(log, static_cast<RunStatistic>(which)); !cells.empty())
            run["cells"][statistic_names[which]] = std::move(cells);
    return run;
}

} // namespace scalide

#include "tool/run_log.h"
#include "expr/error.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using LogJson = nlohmann::json;

/// Cells of all columns, tensors by steps. 7 statistics of 4 bytes make 28 MB. A page stores at most 10 bytes of each cell.
constexpr size_t most_cells = 1'000'000;
constexpr size_t most_columns = 1000, most_histograms = 12, most_events = 20;

/// Returns a number of a line. JSON has no NaN and no infinity, so the files have them as texts.
std::optional<double> number_of(const LogJson &value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_string()) return std::nullopt;
    for (const auto &[text, number] : {std::pair("nan", std::numeric_limits<double>::quiet_NaN()),
                                       {"inf", std::numeric_limits<double>::infinity()},
                                       {"-inf", -std::numeric_limits<double>::infinity()}})
        if (value.get_ref<const std::string &>() == text) return number;
    return std::nullopt;
}

std::string text_of(const LogJson &row, const char *key) {
    const auto found = row.find(key);
    return found == row.end() || !found->is_string() ? "" : found->get<std::string>();
}

double number_of(const LogJson &row, const char *key, double otherwise) {
    const auto found = row.find(key);
    return found == row.end() || !found->is_number() ? otherwise : found->get<double>();
}

/// Returns an integer of a line, at most a million in magnitude.
int integer_of(const LogJson &row, const char *key, int otherwise) {
    return static_cast<int>(std::clamp(std::round(number_of(row, key, otherwise)), -1e6, 1e6));
}

LoggedTensor tensor_of(const LogJson &row) {
    LoggedTensor tensor{text_of(row, "tensor"), text_of(row, "use"),       text_of(row, "operator"), text_of(row, "format"),
                        text_of(row, "scope"),  text_of(row, "direction"), text_of(row, "source"),   text_of(row, "policy")};
    if (const auto collect = row.find("collect"); collect != row.end() && collect->is_array())
        for (const LogJson &word : *collect)
            if (word.is_string()) tensor.collect.push_back(word.get<std::string>());
    tensor.elements = std::max(0.0, number_of(row, "elements", 0));
    tensor.largest = number_of(row, "largest", 0);
    tensor.smallest_normal = number_of(row, "smallest_normal", 0);
    tensor.smallest = number_of(row, "smallest", 0);
    tensor.every = integer_of(row, "every", 0);
    tensor.first_exponent = integer_of(row, "first_exponent", 0);
    tensor.octaves = std::max(1, integer_of(row, "octaves", 1));
    return tensor;
}

void take_larger(Sample &sample, const Sample &other) {
    for (size_t i = 0; i < statistic_count; i++) sample.values[i] = std::max(sample.values[i], other.values[i]);
}

Sample empty_sample() {
    Sample sample;
    sample.values.fill(not_collected);
    return sample;
}

/// Puts steps into columns of equal numbers of steps. If there are too many columns, two become one.
class ColumnMaker {
public:
    void add(int64_t step, const std::vector<int> &tensors, const std::vector<Sample> &samples, size_t tensor_count) {
        StepColumn &column = column_of(step);
        if (column.samples.size() < tensor_count) column.samples.resize(tensor_count, empty_sample());
        for (size_t i = 0; i < tensors.size(); i++) take_larger(column.samples[static_cast<size_t>(tensors[i])], samples[i]);
        const size_t limit = std::clamp(most_cells / std::max<size_t>(1, tensor_count), size_t(100), most_columns);
        while (columns_.size() > limit) widen();
    }
    std::vector<StepColumn> take() {
        std::vector<StepColumn> made;
        for (auto &[key, column] : columns_) made.push_back(std::move(column));
        return made;
    }

private:
    StepColumn &column_of(int64_t step) {
        const auto [found, is_new] = columns_.try_emplace(step / width_, StepColumn{step, step, {}});
        found->second.first = std::min(found->second.first, step);
        found->second.last = std::max(found->second.last, step);
        return found->second;
    }

    void widen() {
        std::map<int64_t, StepColumn> wide;
        width_ *= 2;
        for (auto &[key, column] : columns_) {
            const auto [found, is_new] = wide.try_emplace(column.first / width_, column);
            if (is_new) continue;
            StepColumn &into = found->second;
            into.last = std::max(into.last, column.last);
            into.samples.resize(std::max(into.samples.size(), column.samples.size()), empty_sample());
            for (size_t i = 0; i < column.samples.size(); i++) take_larger(into.samples[i], column.samples[i]);
        }
        columns_ = std::move(wide);
    }

    int64_t width_ = 1;
    std::map<int64_t, StepColumn> columns_; ///< by step / width_
};

/// Keeps some of the histograms of a tensor at equal distances: if there are too many, every second one goes.
class HistogramKeeper {
public:
    void add(Histogram histogram) {
        if (seen_++ % distance_ != 0) return;
        kept.push_back(std::move(histogram));
        if (kept.size() <= most_histograms) return;
        for (size_t i = 0; 2 * i < kept.size(); i++) std::swap(kept[i], kept[2 * i]);
        kept.resize((kept.size() + 1) / 2);
        distance_ *= 2;
    }
    std::vector<Histogram> kept;

private:
    size_t seen_ = 0, distance_ = 1;
};

class RunReader {
public:
    explicit RunReader(SampleVisitor *visitor) : visitor_(visitor) {}

    void read(const std::filesystem::path &file) {
        std::ifstream in(file, std::ios::binary);
        if (!in) throw UserError(failed_action("read the run file " + file.string(), "it cannot be opened", "Check its name"));
        place_ = {file.string(), 0, 0};
        header_.clear();
        std::string line;
        while (std::getline(in, line)) {
            place_.line++;
            const bool is_whole = !in.eof();
            const LogJson row = LogJson::parse(line, nullptr, false);
            if (!row.is_discarded() && row.is_object()) {
                add(row);
            } else if (is_whole) {
                refuse("must be a JSON object", line);
            } else {
                log_.is_torn = true;
            }
        }
    }

    RunLog take() {
        log_.columns = columns_.take();
        log_.histograms.resize(log_.tensors.size());
        for (size_t i = 0; i < histograms_.size(); i++) log_.histograms[i] = std::move(histograms_[i].kept);
        return std::move(log_);
    }

private:
    [[noreturn]] void refuse(const std::string &requirement, const std::string &got) const {
        throw UserError({place_, "line", requirement, "'" + got.substr(0, 60) + "'", "Remove the line, or write the run again"});
    }

    void add(const LogJson &row) {
        if (text_of(row, "scalide") == "statistics") return add_header(row);
        const auto step = row.find("step");
        if (step == row.end() || !step->is_number_integer())
            refuse("must have an integer 'step', or be a header of statistics", row.dump());
        const int64_t number = step->get<int64_t>();
        log_.first_step = log_.is_empty() ? number : std::min(log_.first_step, number);
        log_.last_step = std::max(log_.last_step, number);
        // In a line of statistics, it is a list of counts.
        if (const auto event = row.find("non_finite"); event != row.end() && event->is_object()) return add_event(number, *event);
        const bool is_statistic =
            std::ranges::any_of(statistic_names, [&](const char *name) { return row.contains(name) && row[name].is_array(); }) ||
            (row.contains("histogram") && row["histogram"].is_array());
        is_statistic ? add_samples(number, row) : add_metrics(number, row);
    }

    void add_header(const LogJson &row) {
        const double version = number_of(row, "version", 1);
        if (version != 1)
            throw UserError(
                {place_, "version of the statistics", "must be 1", fmt::format("{}", version), "Use a newer Scalide to read them"});
        log_.program = text_of(row, "program");
        log_.numerics = text_of(row, "numerics");
        log_.target = text_of(row, "target");
        header_.clear();
        const auto tensors = row.find("tensors");
        if (tensors == row.end() || !tensors->is_array()) refuse("must have a list 'tensors'", row.dump());
        for (const LogJson &each : *tensors) header_.push_back(index_of(tensor_of(each)));
        samples_.assign(header_.size(), empty_sample());
    }

    int index_of(LoggedTensor tensor) {
        const std::string key = tensor.tensor + '\n' + tensor.use + '\n' + tensor.scope + '\n' + tensor.direction + '\n' + tensor.op;
        std::vector<int> &known = by_key_[key];
        for (const int index : known)
            if (log_.tensors[static_cast<size_t>(index)].is_same(tensor) && std::ranges::find(header_, index) == header_.end())
                return index;
        known.push_back(static_cast<int>(log_.tensors.size()));
        log_.tensors.push_back(std::move(tensor));
        histograms_.emplace_back();
        return known.back();
    }

    void add_event(int64_t step, const LogJson &event) {
        if (log_.events.size() >= most_events) return;
        NonFiniteEvent found{step,
                             text_of(event, "tensor"),
                             text_of(event, "operator"),
                             text_of(event, "scope"),
                             text_of(event, "source"),
                             {},
                             static_cast<int64_t>(std::clamp(number_of(event, "first", -1), -1.0, 1e15))};
        if (const auto index = event.find("index"); index != event.end() && index->is_array())
            for (const LogJson &axis : *index)
                if (axis.is_number_integer()) found.index.push_back(axis.get<int64_t>());
        log_.events.push_back(std::move(found));
    }

    /// Returns the array of a line, which has one element for each tensor of the header; nullptr if the line lacks it.
    const LogJson *array_of(const LogJson &row, const char *key) const {
        const auto found = row.find(key);
        if (found == row.end() || found->is_null()) return nullptr;
        if (!found->is_array() || found->size() != header_.size())
            throw UserError({place_, std::string("'") + key + "'",
                             fmt::format("must be a list with {} elements, one for each tensor of the header", header_.size()),
                             found->is_array() ? fmt::format("{} elements", found->size()) : found->type_name(),
                             "Write the header again if the tensors change"});
        return &*found;
    }

    void add_samples(int64_t step, const LogJson &row) {
        if (header_.empty()) refuse("must be after a header of statistics", row.dump());
        for (size_t which = 0; which < statistic_count; which++) {
            const LogJson *array = array_of(row, statistic_names[which]);
            for (size_t i = 0; i < header_.size(); i++) {
                const std::optional<double> number = array ? number_of((*array)[i]) : std::nullopt;
                const double value = !number               ? not_collected
                                     : std::isnan(*number) ? std::numeric_limits<double>::infinity()
                                                           : std::abs(*number);
                samples_[i].values[which] = static_cast<float>(value);
            }
        }
        add_elements(array_of(row, "elements"));
        add_histograms(step, array_of(row, "histogram"));
        columns_.add(step, header_, samples_, log_.tensors.size());
        if (visitor_) visitor_->visit(step, header_, samples_);
        log_.statistic_lines++;
    }

    /// The number of elements of a tensor depends on the values of symbols, so a line may have it.
    void add_elements(const LogJson *array) {
        for (size_t i = 0; array && i < header_.size(); i++)
            if (const auto number = number_of((*array)[i])) log_.tensors[static_cast<size_t>(header_[i])].elements = std::max(0.0, *number);
    }

    void add_histograms(int64_t step, const LogJson *array) {
        for (size_t i = 0; array && i < header_.size(); i++) {
            const LogJson &counts = (*array)[i];
            if (!counts.is_array()) continue;
            Histogram histogram{step, samples_[i][RunStatistic::scale], {}};
            for (const LogJson &count : counts) histogram.counts.push_back(count.is_number() ? count.get<double>() : 0);
            histograms_[static_cast<size_t>(header_[i])].add(std::move(histogram));
        }
    }

    void add_metrics(int64_t step, const LogJson &row) {
        for (const auto &[name, value] : row.items()) {
            if (name == "step" || name == "time") continue;
            const std::optional<double> number = number_of(value);
            if (!number) refuse("must have numbers, \"nan\" or \"inf\" as metrics", row.dump());
            const auto [found, is_new] = log_.metrics.try_emplace(name);
            if (is_new) log_.metric_names.push_back(name);
            std::vector<MetricPoint> &points = found->second;
            while (!points.empty() && points.back().step >= step) points.pop_back(); // a resumed run repeats steps: the last ones hold
            points.push_back({step, *number});
        }
    }

    RunLog log_;
    SampleVisitor *visitor_;
    Location place_;
    std::vector<int> header_; ///< the tensors of the last header
    std::vector<Sample> samples_;
    std::map<std::string, std::vector<int>> by_key_;
    ColumnMaker columns_;
    std::vector<HistogramKeeper> histograms_;
};

/// Returns the files of a run, and its name.
std::vector<std::filesystem::path> files_of(const std::filesystem::path &path) {
    if (!std::filesystem::is_directory(path)) return {path};
    std::vector<std::filesystem::path> files;
    for (const char *name : {"metrics.jsonl", "statistics.jsonl"})
        if (std::filesystem::exists(path / name)) files.push_back(path / name);
    if (files.empty())
        throw UserError(failed_action("read the run " + path.string(), "the folder has no metrics.jsonl and no statistics.jsonl",
                                      "Name the folder that the run wrote to, or its .jsonl files"));
    return files;
}

} // namespace

bool LoggedTensor::is_same(const LoggedTensor &other) const {
    return tensor == other.tensor && use == other.use && op == other.op && scope == other.scope && direction == other.direction &&
           format == other.format && first_exponent == other.first_exponent && octaves == other.octaves;
}

RunLog read_run(const std::vector<std::filesystem::path> &paths, SampleVisitor *visitor) {
    RunReader reader(visitor);
    std::string name;
    for (const std::filesystem::path &path : paths) {
        for (const std::filesystem::path &file : files_of(path)) reader.read(file);
        const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
        name += (name.empty() ? "" : ", ") + (whole.has_filename() ? whole : whole.parent_path()).filename().string();
    }
    RunLog log = reader.take();
    log.name = name;
    return log;
}

} // namespace scalide

#pragma once
#include <filesystem>
#include <optional>
#include <scalide/scalide.hpp>
#include <stdexcept>
#include <string>

// The files of a training in a folder of its own. Without a folder for runs, nothing is written.
class RunRecord {
public:
    RunRecord(const std::string &runs, const std::string &policy) {
        if (runs.empty()) return;
        const std::filesystem::path folder = std::filesystem::path(runs) / policy;
        if (std::filesystem::exists(folder)) // Metrics would continue the files of another training
            throw std::runtime_error("cannot write the run " + folder.string() +
                                     ": the folder exists. Remove it, or name another one with --runs.");
        std::filesystem::create_directories(folder);
        metrics_.emplace(folder.string(), false, 0, true);
    }

    void write(int64_t step, const char *name, double value) {
        if (metrics_) metrics_->write(step, {{name, value}});
    }
    void write(int64_t step, scalide::runtime::Statistics *statistics) {
        if (metrics_ && statistics) metrics_->write(step, *statistics);
    }
    void close() {
        if (metrics_) metrics_->close();
    }

private:
    std::optional<scalide::runtime::Metrics> metrics_;
};

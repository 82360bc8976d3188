#pragma once
#include "trace.h"
#include <vector>

// The record of one training: one policy.
struct History {
    std::string name;
    std::vector<double> loss, accuracy;                // by epoch: mean training loss, test accuracy
    std::vector<std::map<std::string, double>> scales; // by epoch, of the state and of intermediate tensors
    std::vector<std::map<std::string, StepTrace::Codes>> codes;
    size_t state_bytes = 0;
    int kernels = 0;
    double step_ms = 0;
    double cold_seconds = 0, warm_seconds = 0; // of generation, from an empty and a full cache
};

// The results as JSON text.
std::string to_json(const std::vector<History> &histories);
// Writes a file, whole or not at all. Throws std::runtime_error.
void write_file(const std::string &file, const std::string &text);
// The HTML page: report.html with the JSON in it.
std::string to_html(const std::vector<History> &histories, const std::string &page);
void print_table(const std::vector<History> &histories);

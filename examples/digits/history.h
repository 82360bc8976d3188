#pragma once
#include <cstddef>
#include <string>
#include <vector>

// What the table and the JSON file say of one training: one policy.
struct History {
    std::string name;
    std::vector<double> loss, accuracy; // by epoch: mean training loss, test accuracy
    size_t state_bytes = 0;
    int kernels = 0;
    double step_ms = 0;
    double cold_seconds = 0, warm_seconds = 0; // of generation, from an empty and a full cache
};

void print_table(const std::vector<History> &histories);
// Writes the histories as JSON, the whole file or nothing. Throws std::runtime_error.
void write_json(const std::vector<History> &histories, const std::string &file);

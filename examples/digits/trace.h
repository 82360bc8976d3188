#pragma once
#include <map>
#include <scalide/scalide.hpp>
#include <string>

// How the codes of the 8-bit tensors of one step were used, and the scale of every scaled tensor.
struct StepTrace {
    struct Codes {
        size_t count = 0, zero = 0, underflowed = 0, subnormal = 0, largest = 0;
    };
    std::map<std::string, Codes> codes;
    std::map<std::string, double> scales;
    std::map<std::string, size_t> nonzero; // elements of the tensors seen so far, as they were first

    // Adds an array that a traced run has computed.
    void add(const scalide_traced &buffer, const scalide_array &array);
    // Adds an array that the step reads.
    void add(const std::string &tensor, const scalide::runtime::Array &array);
};

#pragma once
#include <map>
#include <optional>
#include <scalide/scalide.hpp>
#include <string>

// How the codes of the 8-bit tensors of one step were used, and the scale of every scaled tensor.
struct StepTrace {
    struct Codes {
        size_t count = 0, zero = 0, subnormal = 0, largest = 0;
        std::optional<size_t> underflowed; // zeros that were none before; nothing: the trace has no wider form of the array
    };
    std::map<std::string, Codes> codes;
    std::map<std::string, double> scales;
    struct Form {
        size_t count, nonzero;
    };
    std::map<std::string, Form> sources; // the tensors seen so far, as they were first

    // Adds an array that a traced run has computed.
    void add(const scalide_traced &buffer, const scalide_array &array);
    // Adds an array that the step reads.
    void add(const std::string &tensor, const scalide::runtime::Array &array);
};

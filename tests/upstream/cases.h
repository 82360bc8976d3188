#pragma once
#include <string>
#include <vector>

namespace scalide {

/// One array of a case: data, and scale, 1 when it is plain.
struct CaseArray {
    std::vector<double> data;
    double scale = 1;
};

/// A program that Scalify gets wrong.
struct UpstreamCase {
    const char *name;
    const char *policy; ///< a file from rules/policies, without .yaml
    const char *rounding;
    std::string text; ///< the program; sub-programs first
    std::vector<CaseArray> inputs;
    std::vector<std::vector<double>> values; ///< of the results, data * scale
    double tolerance = 0;                    ///< of each element, relative to it
    std::vector<double> scales = {};         ///< of the scaled results, where the scale itself went wrong
};

const std::vector<UpstreamCase> &upstream_cases();

} // namespace scalide

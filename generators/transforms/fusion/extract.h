#pragma once
#include "transforms/fusion/groups/groups.h"
#include <map>

namespace scalide {

/// Kernels without duplicates: equal texts share one sub-program. Names consist of the kind and a number.
class KernelSet {
public:
    /// Returns the name of a kernel in canonical form.
    const std::string &name_of(Program kernel);
    std::vector<Program> take() { return std::move(kernels_); }

private:
    std::vector<Program> kernels_;
    std::map<std::string, std::string> names_;
    std::map<std::string, int> counts_;
};

/// Returns a program that calls kernels of the set: one call for each group, in this order. Groups with equal canonical text share one
/// kernel.
Program extract_kernels(const Groups &groups, const std::vector<int> &order, KernelSet &kernels);

} // namespace scalide

#pragma once
#include <Halide.h>

namespace scalide {

/// Hears what Halide warns of while a kernel is compiled; one at a time in a process. Kernels have no assertions, so one that Halide knows
/// to fail is an error here: loops leave the bounds that their schedule promised, and what follows is simplified by what does not hold.
class HalideWarnings : Halide::CompileTimeErrorReporter {
public:
    HalideWarnings();
    HalideWarnings(const HalideWarnings &) = delete;
    ~HalideWarnings() override;

    /// Throws InternalError when an assertion of what was compiled is known to fail.
    void check() const;

private:
    void warning(const char *words) override;
    [[noreturn]] void error(const char *words) override;

    std::string failing_;
};

} // namespace scalide

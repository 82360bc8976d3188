#pragma once
#include <Halide.h>

namespace scalide {

/// Collects Halide's warnings while a kernel is compiled. Only one such object may exist in a process. Kernels have no assertions. A
/// warning that an assertion must fail is therefore an error: loops exceed the bounds that their schedule promised, and Halide simplifies
/// by false facts.
class HalideWarnings : Halide::CompileTimeErrorReporter {
public:
    HalideWarnings();
    HalideWarnings(const HalideWarnings &) = delete;
    ~HalideWarnings() override;

    /// Throws InternalError if Halide warned that an assertion must fail.
    void check() const;

private:
    void warning(const char *words) override;
    [[noreturn]] void error(const char *words) override;

    std::string failing_;
};

} // namespace scalide

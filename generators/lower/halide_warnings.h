#pragma once
#include <Halide.h>

namespace scalide {

/// Hears what Halide warns of while a kernel is compiled; one at a time in a process. Kernels have no assertions, so one on bounds that
/// Halide knows to fail is an error here: the loops of a stage leave what its schedule promised. (Halide also takes assertions for failing
/// that it met where nothing can come, such as those on the first place of an argument.)
class HalideWarnings : Halide::CompileTimeErrorReporter {
public:
    HalideWarnings();
    HalideWarnings(const HalideWarnings &) = delete;
    ~HalideWarnings() override;

    /// Throws InternalError when bounds of what was compiled are known not to hold.
    void check() const;

private:
    void warning(const char *words) override;
    [[noreturn]] void error(const char *words) override;

    std::string failing_;
};

} // namespace scalide

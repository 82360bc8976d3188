#include "lower/halide/halide_warnings.h"
#include "expr/error.h"
#include <cstdio>

namespace scalide {

HalideWarnings::HalideWarnings() { Halide::set_custom_compile_time_error_reporter(this); }

HalideWarnings::~HalideWarnings() { Halide::set_custom_compile_time_error_reporter(nullptr); }

void HalideWarnings::check() const { internal_check(failing_.empty(), failing_); }

void HalideWarnings::warning(const char *words) {
    const std::string text = words;
    if (text.find("guaranteed to fail an assertion") != std::string::npos)
        failing_ = text;
    else
        std::fputs(words, stderr);
}

void HalideWarnings::error(const char *words) { throw Halide::CompileError(words); }

} // namespace scalide

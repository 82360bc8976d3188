#pragma once
#include "support/compiled/compiled_program.h"

namespace scalide {

/// Returns why no program can run on a GPU here, or an empty string if one can.
const std::string &why_no_card();

/// A program for the GPU, from its text. Throws like CompiledProgram.
std::unique_ptr<CompiledProgram> compile_for_card(const std::string &text);

/// One program for the GPU and for the CPU.
class OnBoth {
public:
    /// `text` is a program. Throws like CompiledProgram.
    explicit OnBoth(const std::string &text);

    /// Names the first element whose bits differ between GPU and CPU (all NaNs count as equal). Returns an empty string if none
    /// differs. The inputs are in the order of the arguments.
    std::string first_difference(const std::vector<HostArray> &inputs) const;

private:
    std::unique_ptr<CompiledProgram> card_;
    CompiledProgram cpu_;
};

} // namespace scalide

#pragma once
#include "support/compiled/compiled_program.h"

namespace scalide {

/// Why no program can run on a card here; empty when one can.
const std::string &why_no_card();

/// A program for the card. `text` is that of a program. Throws as CompiledProgram.
std::unique_ptr<CompiledProgram> compile_for_card(const std::string &text);

/// One program for the card and for the CPU.
class OnBoth {
public:
    /// `text` is that of a program. Throws as CompiledProgram.
    explicit OnBoth(const std::string &text);

    /// Names the first element whose bits differ between the card and the CPU (all NaN of f32 are one); empty when none does. The inputs
    /// are in the order of the arguments.
    std::string first_difference(const std::vector<HostArray> &inputs) const;

private:
    std::unique_ptr<CompiledProgram> card_;
    CompiledProgram cpu_;
};

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "kinds/panel_layout.h"
#include <optional>

namespace scalide {

/// A program that computes the right operand of a kernel in panels.
struct PanelProgram {
    Program program;             ///< its result is the array of panels
    std::vector<size_t> sources; ///< the arguments of the kernel that are its arguments
};

/// Returns nothing if the operand cannot be packed: an extent is symbolic and no multiple of a panel, or it depends on no argument.
std::optional<PanelProgram> panel_program(const Program &kernel, const PanelLayout &layout);

/// Returns the canonical kernel that reads its right operand from a last argument in panels. `operands` are those of a call, with the
/// panels; the ones that the kernel no longer reads are removed.
Program with_panels(const Program &kernel, const PanelLayout &layout, const Type &panels, std::vector<ValueId> &operands);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "kinds/panel_layout.h"
#include <functional>
#include <optional>

namespace scalide {

/// Returns how a kernel arranges its right operand in panels; nothing if it has no such operand.
using ChoosePanels = std::function<std::optional<PanelLayout>(const Program &kernel)>;

/// Moves the packing of constants from runs to `prepare` (split_constants.h). `mains` are the forms of one program after fusion. If the
/// right operand of a product is computed only from prepared arrays, `prepare` computes its panels, and the kernel reads them. Forms with
/// equal panels share them. Prepared arrays that no form reads any more are removed. All forms have the same prepared arguments.
///
/// An operand keeps its ordinary array if its columns have a symbolic extent that is no multiple of a panel.
void pack_constants(const std::vector<Program *> &mains, Program &prepare, const ChoosePanels &choose);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "kinds/panel_layout.h"
#include <functional>
#include <optional>

namespace scalide {

/// Returns how a kernel arranges its right operand in panels; nothing if it has no such operand.
using ChoosePanels = std::function<std::optional<PanelLayout>(const Program &kernel)>;
/// Groups the nodes of a program into kernels.
using FormKernels = std::function<Program(const Program &program)>;

/// Moves the packing of right operands out of kernels. `mains` are the forms of one program after fusion.
///
///     the right operand is computed from    packed
///     prepared arrays                       by `prepare` (split_constants.h), once at bind
///     captures of a loop                    before the outermost such loop
///     others                                by the kernel, in each call
///
/// Forms with equal panels in `prepare` share them. Prepared arrays that no form reads any more are removed. All forms have the same
/// prepared arguments. `prepare` is null if there is none.
///
/// An operand keeps its ordinary array if its columns have a symbolic extent that is no multiple of a panel.
void pack_operands(const std::vector<Program *> &mains, Program *prepare, const ChoosePanels &choose, const FormKernels &form);

} // namespace scalide

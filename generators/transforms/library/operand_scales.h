#pragma once
#include "ir/library_product.h"
#include "transforms/library/matmul_form.h"
#include <functional>

namespace scalide {

/// An operand of a dot_general that is codes times scales.
struct ScaledOperand {
    ValueId codes = -1; ///< f8, of as many elements in the same order
    BlockScales scales;
    int mul = -1; ///< the node that multiplies
};

/// Nothing where the operand, [rows, k] elements along k side by side, is something else. `makers`: producers(program).
std::optional<ScaledOperand> scaled_operand(const Program &program, const std::vector<int> &makers, ValueId operand, const Extent &rows,
                                            const Extent &k);

/// How a library would read the scales of both operands; nothing where it knows no such blocks. {} where neither has any.
std::optional<ScaleLayouts> scale_layouts(const Program &program, const MatmulForm &form);

/// The array in memory that holds an operand's scales as a library reads them; -1: they lie otherwise. `rows`, `k`: the operand's extents.
ValueId packed_scales(const Program &program, const std::vector<int> &makers, const BlockScales &scales, const Extent &rows,
                      const Extent &k, ScaleLayout layout);

/// True when a library reads an array of `blocks` as it is.
bool is_packed(const Extents &blocks, ScaleLayout layout);

/// Appends a node of one result to a program.
using AppendNode = std::function<ValueId(const std::string &op, const std::vector<ValueId> &operands, const Attributes &, const Type &)>;

/// An extent filled up to a multiple; nothing where it is no number and not known to be one.
std::optional<Extent> fill(const Extent &extent, int64_t multiple);

/// The scales of an operand's rows and along k.
Extents blocks_of(const BlockScales &scales, const Extent &rows, const Extent &k);

/// False where a layout's zeros or tiles are behind an extent that is no number.
bool can_pack(const BlockScales &scales, const Extent &rows, const Extent &k, ScaleLayout layout);
/// Stores scales (`value`, in the order of their operand's blocks) as a library reads them, and reads them back, as an array of `blocks`.
ValueId pack_and_read(ValueId value, const Type &type, const Extents &blocks, ScaleLayout layout, const AppendNode &append);

} // namespace scalide

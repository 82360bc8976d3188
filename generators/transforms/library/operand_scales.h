#pragma once
#include "ir/library_product.h"
#include "transforms/library/matmul_form.h"
#include <functional>

namespace scalide {

/// An operand of a dot_general that consists of encoded values times scales.
struct ScaledOperand {
    ValueId codes = -1; ///< f8, with as many elements in the same order
    BlockScales scales;
    int mul = -1; ///< the node that multiplies
};

/// Returns nothing if the operand is computed in another way. Its elements are [rows, k], contiguous along k. `makers`: producers(program).
std::optional<ScaledOperand> scaled_operand(const Program &program, const std::vector<int> &makers, ValueId operand, const Extent &rows,
                                            const Extent &k);

/// Returns the layouts in which a library reads the scales of both operands; {} if neither has scales. Returns nothing if no layout has
/// such blocks.
std::optional<ScaleLayouts> scale_layouts(const Program &program, const MatmulForm &form);

/// Returns the array in memory that holds the scales of these blocks in the library's layout; -1: there is none.
ValueId packed_scales(const Program &program, const std::vector<int> &makers, ValueId scales, const Extents &blocks, ScaleLayout layout);

/// True if a library reads an array of `blocks` without packing.
bool is_packed(const Extents &blocks, ScaleLayout layout);

/// Appends a node with one result to a program.
using AppendNode = std::function<ValueId(const std::string &op, const std::vector<ValueId> &operands, const Attributes &, const Type &)>;

/// Rounds an extent up to a multiple. Returns nothing if a symbolic extent is not known to be a multiple.
std::optional<Extent> fill(const Extent &extent, int64_t multiple);

/// Returns how many scales an operand has along its rows and along k.
Extents blocks_of(const BlockScales &scales, const Extent &rows, const Extent &k);

/// Returns false if a layout needs padding of an extent that is symbolic.
bool can_pack(const BlockScales &scales, const Extent &rows, const Extent &k, ScaleLayout layout);
/// Stores scales in the library's layout and reads them back as an array of `blocks`. `value` holds them in the order of the operand's
/// blocks.
ValueId pack_and_read(ValueId value, const Type &type, const Extents &blocks, ScaleLayout layout, const AppendNode &append);

} // namespace scalide

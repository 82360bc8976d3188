#pragma once
#include "scalide/plan.h"

namespace scalide {

/// Returns true if steps may use this buffer: it is there, and it is not an argument that only the prepare program reads.
bool is_used_by_steps(const scalide_program &program, int32_t index);
bool good_extent(const scalide_program &program, const scalide_extent &extent);
/// Returns true if a run may write the buffer: it is no input and no constant.
bool is_writable(const scalide_program &program, int32_t index);

/// Checks a block of a program whose other tables are correct. The blocks before it are correct.
bool good_block(const scalide_program &program, const scalide_block &block);

} // namespace scalide

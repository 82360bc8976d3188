#pragma once
#include "fuzz/choices.h"
#include "scalide/plan.h"
#include <iterator>

namespace scalide {

/// Changes one field of a buffer of a plan.
inline void change_buffer(scalide_buffer &buffer, Choices &choices) {
    int32_t *const fields[] = {&buffer.dtype, &buffer.storage, &buffer.index, &buffer.first_step, &buffer.last_step};
    const size_t field = choices.below(std::size(fields) + 1);
    if (field < std::size(fields)) {
        *fields[field] = static_cast<int32_t>(choices.number());
    } else if (buffer.rank > 0) {
        --buffer.rank;
    }
}

} // namespace scalide

#include "run/show.h"
#include "run/loops.h"

namespace scalide {

void show(const scalide_binding &binding, const Trace &trace, int32_t index, const scalide_array &array) {
    const scalide_buffer &buffer = binding.program->buffers[index];
    char words[sizeof(binding.loops.words)];
    Text loops(words, sizeof(words));
    const bool is_in_loop = print_loops(loops, binding, false).size() > 0;
    const scalide_traced traced = {buffer.name, buffer.tensor ? buffer.tensor : buffer.name, buffer.part, is_in_loop ? words : nullptr};
    trace.call(trace.user, &traced, &array);
}

} // namespace scalide

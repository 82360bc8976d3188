#include "tool/open_context.h"

namespace scalide {

OpenedContext open_context(int32_t device, int32_t index) {
    char message[1024] = "";
    scalide_options options{};
    options.struct_size = sizeof options;
    options.device = device;
    options.device_index = index;
    options.message = message;
    options.message_size = sizeof message;
    scalide_context *context = nullptr;
    const scalide_status status = scalide_context_create(&options, &context);
    return {{context, scalide_context_destroy}, status, message};
}

} // namespace scalide

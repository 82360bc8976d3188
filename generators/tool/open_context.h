#pragma once
#include "scalide/scalide.h"
#include <memory>
#include <string>

namespace scalide {

using ContextPointer = std::unique_ptr<scalide_context, void (*)(scalide_context *)>;

struct OpenedContext {
    ContextPointer handle; ///< null unless the status is SCALIDE_OK
    scalide_status status;
    std::string message; ///< the runtime's message
};

/// Opens a context for the device of this kind (scalide_device) and index.
OpenedContext open_context(int32_t device, int32_t index = 0);

} // namespace scalide

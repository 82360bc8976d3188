#pragma once
#include "scalide/scalide.h"
#include <memory>
#include <string>

namespace scalide {

using ContextPointer = std::unique_ptr<scalide_context, void (*)(scalide_context *)>;

struct OpenedContext {
    ContextPointer handle; ///< null unless the status is SCALIDE_OK
    scalide_status status;
    std::string message; ///< the runtime's words
};

/// A context of this kind of device (scalide_device) and number.
OpenedContext open_context(int32_t device, int32_t index = 0);

} // namespace scalide

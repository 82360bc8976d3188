#pragma once
#include "text.h"

namespace scalide {

/// True when the loader may take this file. False: it is of another machine, or was cut, which would be a signal and no error of the
/// loader's; `why` gets words such as "one for arm-64". Files that are no ELF files, or cannot be opened, are left to the loader.
bool is_loadable(const char *path, Text &why);

} // namespace scalide

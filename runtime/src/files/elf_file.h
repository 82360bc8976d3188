#pragma once
#include "base/text.h"

namespace scalide {

/// Returns true if the loader may load this file. Returns false if the file is for another machine, or if it was cut: loading it would
/// raise a signal. `why` gets a reason such as "one for arm-64". Files that are not ELF files or cannot be opened are left to the loader.
bool is_loadable(const char *path, Text &why);

} // namespace scalide

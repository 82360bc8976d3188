#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// The rules of the source tree.
const Rulebook &rules();

} // namespace scalide

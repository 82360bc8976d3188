#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// The rules of the tree.
const Rulebook &rules();

} // namespace scalide

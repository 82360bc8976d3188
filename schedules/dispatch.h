#pragma once
#include "ir/library_product.h"

namespace scalide {

/// The rows of dispatch.yaml for a target (`cuda`): what a library computes in place of a kernel.
std::vector<LibraryProduct> library_products(const std::string &target);

} // namespace scalide

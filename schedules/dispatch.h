#pragma once
#include "ir/library_product.h"

namespace scalide {

/// The rows of dispatch.yaml for a target (`cuda`): what a library computes in place of a kernel.
std::vector<LibraryProduct> library_products(const std::string &target);
/// The same of another table, in the words of dispatch.yaml. UserError with file and line: where it is none.
std::vector<LibraryProduct> library_products(const std::string &target, const std::string &table, const std::string &file);

} // namespace scalide

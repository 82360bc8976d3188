#pragma once
#include "ir/library_product.h"

namespace scalide {

/// What a library computes in place of a kernel, on a target (`cuda`).
struct DispatchRow {
    std::string target;
    LibraryProduct product;
};

/// The rows of dispatch.yaml for a target.
std::vector<LibraryProduct> library_products(const std::string &target);
/// Reads a table in the words of dispatch.yaml, a row for each pair of operands. UserError with file and line: where it is none, and where
/// no product can come to a row.
std::vector<DispatchRow> parse_dispatch(const std::string &table, const std::string &file);

} // namespace scalide

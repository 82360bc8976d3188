#pragma once
#include "ir/library_product.h"

namespace scalide {

/// A matmul that a library computes on a target (`cuda`) instead of a kernel.
struct DispatchRow {
    std::string target;
    LibraryProduct product;
};

/// Returns the rows of dispatch.yaml for a target.
std::vector<LibraryProduct> library_products(const std::string &target);
/// Parses a table in the format of dispatch.yaml. Returns one row for each pair of operands. Throws UserError with file and line if the
/// table is invalid, or if earlier rows cover a row completely.
std::vector<DispatchRow> parse_dispatch(const std::string &table, const std::string &file);

} // namespace scalide

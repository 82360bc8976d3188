#include "kinds/kernel_view.h"
#include <algorithm>

// Kinds with reductions: row (trailing axes), column (leading axes), full (all axes).
namespace scalide {

namespace {

std::string why_no_walk(const KernelView &kernel, const Node &node) {
    const bool is_known = !KernelView::is_walk_of_its_own(node) || KernelView::walk(node) == Shape::reduce;
    return is_known ? "" : say(kernel, node, "must be a reduction, elementwise, movement or a source", node.op);
}

/// Checks that results of reductions are read at the same index.
std::string why_moved(const KernelView &kernel, const Node &node) {
    if (KernelView::is_walk_of_its_own(node) || kernel.reads_after_in_place(node)) return "";
    return say(kernel, node, "must read the result of a reduction at the same index", node.op);
}

/// By value: whether it depends on a reduction of a whole array.
std::vector<bool> find_totals(const KernelView &kernel) {
    const Program &program = kernel.program();
    std::vector<bool> is_total(program.values.size());
    for (const Node &node : kernel.nodes()) {
        const bool folds = KernelView::walk(node) == Shape::reduce && program.type(node.results[0]).is_scalar();
        is_total[node.results[0]] = folds || std::ranges::any_of(node.operands, [&](ValueId operand) { return is_total[operand]; });
    }
    return is_total;
}

/// Checks that a result of a row reduction is read at the same row, perhaps broadcast along it. A reduction of all rows is not complete at
/// that time.
std::string why_moved_in_rows(const KernelView &kernel, const Node &node, const std::vector<bool> &is_total) {
    if (KernelView::is_walk_of_its_own(node)) return "";
    const bool is_of_rank_0 = kernel.program().type(node.results[0]).is_scalar();
    for (const ValueId operand : node.operands) {
        if (!kernel.is_after(operand)) continue;
        const Access access = access_of(kernel.program(), node, operand);
        if ((is_total[operand] && !is_of_rank_0) || access == Access::columns || access == Access::moved)
            return say(kernel, node, "must read the result of a row reduction at the same row", node.op);
    }
    return "";
}

std::string why_no_result(const KernelView &kernel, const Result &result, const std::vector<Extents> &shapes) {
    if (std::ranges::find(shapes, kernel.shape(result.value)) != shapes.end()) return "";
    std::string allowed;
    for (const Extents &shape : shapes) allowed += (allowed.empty() ? "" : " or ") + say_shape(shape);
    return kernel.program().name + "." + result.name + ": must have the shape " + allowed + ", got " +
           say_shape(kernel.shape(result.value));
}

/// The shapes of a row kernel with rows R and columns C.
struct RowShapes {
    Extents elements, rows, columns; ///< R x C, R, C
    bool is_one_row() const { return rows.empty(); }
};

bool is_of_rows(const KernelView &kernel, const Node &node) {
    if (KernelView::walk(node) != Shape::reduce || !reduces_trailing(kernel.program(), node)) return false;
    // A reduction of all elements has rank 0. A reduction of a single row keeps an axis of extent 1.
    if (kernel.program().type(node.results[0]).is_scalar()) return false;
    const int64_t folded = std::ssize(kernel.shape(node.operands[0])) - std::ssize(kernel.shape(node));
    const auto axes = kernel.program().attributes.find("row_axes");
    return folded == (axes == kernel.program().attributes.end() ? 1 : axes->second.integer.value());
}

std::string why_no_row_reduction(const KernelView &kernel, const Node &node, const RowShapes &row) {
    const Extents &read = kernel.shape(node.operands[0]);
    const bool is_of_elements = read == row.elements, is_total = kernel.folds_all(node) && (is_of_elements || read == row.rows);
    const bool is_row = is_of_elements && kernel.shape(node) == row.rows && reduces_trailing(kernel.program(), node);
    const bool is_sum_over_rows = is_of_elements && kernel.shape(node) == row.columns && reduces_leading(kernel.program(), node);
    if (is_row || is_total || is_sum_over_rows) return "";
    return say(kernel, node,
               "must reduce the columns, the rows or all of " + say_shape(row.elements) + ", or all of " + say_shape(row.rows),
               say_shape(read) + " to " + say_shape(kernel.shape(node)));
}

} // namespace

std::string why_no_row(const KernelView &kernel) {
    const Program &program = kernel.program();
    const auto first = std::ranges::find_if(kernel.nodes(), [&](const Node &node) { return is_of_rows(kernel, node); });
    if (first == kernel.nodes().end()) return program.name + ": a row kernel must have a reduction over its trailing axes";
    RowShapes row{kernel.shape(first->operands[0]), kernel.shape(*first), {}};
    row.columns.assign(row.elements.begin() + std::ssize(row.rows), row.elements.end());
    const std::vector<bool> is_total = find_totals(kernel);
    for (const Node &node : kernel.nodes()) {
        if (const std::string why = why_no_walk(kernel, node); !why.empty()) return why;
        if (KernelView::walk(node) == Shape::reduce) {
            if (const std::string why = why_no_row_reduction(kernel, node, row); !why.empty()) return why;
        } else if (const std::string why = why_moved_in_rows(kernel, node, is_total); !why.empty()) {
            return why;
        }
    }
    for (const Result &result : program.results)
        if (const std::string why = why_no_result(kernel, result, {row.elements, row.rows, row.columns, {}}); !why.empty()) return why;
    return "";
}

std::string why_no_column(const KernelView &kernel) {
    for (const Node &node : kernel.nodes()) {
        if (const std::string why = why_no_walk(kernel, node); !why.empty()) return why;
        if (const std::string why = why_moved(kernel, node); !why.empty()) return why;
        if (KernelView::walk(node) != Shape::reduce) continue;
        const bool is_total = kernel.folds_all(node) && kernel.reads_after(node);
        const bool is_of_columns = !kernel.reads_after(node) && reduces_leading(kernel.program(), node) && !kernel.shape(node).empty();
        if (!is_total && !is_of_columns)
            return say(kernel, node, "must reduce leading axes, or all remaining axes",
                       say_shape(kernel.shape(node.operands[0])) + " to " + say_shape(kernel.shape(node)));
    }
    return "";
}

std::string why_no_full(const KernelView &kernel) {
    for (const Node &node : kernel.nodes()) {
        if (const std::string why = why_no_walk(kernel, node); !why.empty()) return why;
        if (KernelView::walk(node) == Shape::reduce && (!kernel.folds_all(node) || kernel.reads_after(node)))
            return say(kernel, node, "must reduce all elements of an array that no reduction computed", say_shape(kernel.shape(node)));
    }
    for (const Result &result : kernel.program().results)
        if (const std::string why = why_no_result(kernel, result, {{}}); !why.empty()) return why;
    return "";
}

} // namespace scalide

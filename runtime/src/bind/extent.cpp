#include "bind/extent.h"

namespace scalide {

namespace {

constexpr int64_t limit = int64_t(1) << 31;

bool evaluate_term(const scalide_term &term, SymbolValues symbols, int64_t *value) {
    *value = term.coefficient;
    for (int32_t symbol : term.symbol) {
        if (symbol >= 0 && __builtin_mul_overflow(*value, int64_t(symbols[symbol]), value)) return false;
    }
    return true;
}

int32_t symbol_count(const scalide_term &term) {
    int32_t count = 0;
    for (int32_t symbol : term.symbol) count += symbol >= 0;
    return count;
}

} // namespace

bool evaluate(const scalide_extent &extent, SymbolValues symbols, int64_t *value) {
    *value = 0;
    for (int32_t i = 0; i < extent.count; ++i) {
        int64_t term;
        if (!evaluate_term(extent.terms[i], symbols, &term) || __builtin_add_overflow(*value, term, value)) return false;
    }
    return *value >= 0 && *value < limit;
}

int32_t sole_symbol(const scalide_extent &extent) {
    if (extent.count != 1 || extent.terms[0].coefficient <= 0 || symbol_count(extent.terms[0]) != 1) return -1;
    for (int32_t symbol : extent.terms[0].symbol) {
        if (symbol >= 0) return symbol;
    }
    return -1;
}

int64_t multiply_extent(int64_t product, int64_t extent) {
    return extent != 0 && product > SCALIDE_MAX_ELEMENTS ? product : product * extent;
}

bool has_allowed_size(const scalide_array &array) {
    if (array.rank < 0 || array.rank > SCALIDE_MAX_RANK) return false;
    int64_t elements = 1;
    for (int32_t axis = 0; axis < array.rank; ++axis) {
        if (array.extent[axis] < 0 || array.extent[axis] >= limit) return false;
        elements = multiply_extent(elements, array.extent[axis]);
    }
    return elements <= SCALIDE_MAX_ELEMENTS;
}

bool count_elements(const scalide_extent *shape, int32_t rank, SymbolValues symbols, int64_t *count) {
    *count = 1;
    for (int32_t axis = 0; axis < rank; ++axis) {
        int64_t extent;
        if (!evaluate(shape[axis], symbols, &extent)) return false;
        *count = multiply_extent(*count, extent);
    }
    return *count <= SCALIDE_MAX_ELEMENTS;
}

scalide_array describe(const scalide_buffer &buffer, SymbolValues symbols, void *data) {
    int64_t extents[SCALIDE_MAX_RANK] = {};
    for (int32_t axis = 0; axis < buffer.rank; ++axis) evaluate(buffer.shape[axis], symbols, &extents[axis]);
    return scalide_dense_array(data, nullptr, buffer.dtype, buffer.rank, extents);
}

Text &print(Text &text, const scalide_program &program, const scalide_extent &extent) {
    if (extent.count == 0) return text << '0';
    for (int32_t i = 0; i < extent.count; ++i) {
        const scalide_term &term = extent.terms[i];
        const char *separator = "";
        if (i > 0) text << " + ";
        if (term.coefficient != 1 || symbol_count(term) == 0) {
            text << term.coefficient;
            separator = "*";
        }
        for (int32_t symbol : term.symbol) {
            if (symbol < 0) continue;
            text << separator << program.symbols[symbol].name;
            separator = "*";
        }
    }
    return text;
}

Text &print_shape(Text &text, const scalide_program &program, const scalide_buffer &buffer) {
    text << '[';
    for (int32_t axis = 0; axis < buffer.rank; ++axis) {
        if (axis > 0) text << ", ";
        print(text, program, buffer.shape[axis]);
    }
    return text << ']';
}

} // namespace scalide

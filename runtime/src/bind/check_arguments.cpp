#include "bind/check.h"
#include "bind/extent.h"

namespace scalide {

namespace {

const scalide_buffer &data_buffer(const Call &call, int32_t argument) {
    return call.program.buffers[call.program.arguments[argument].data_buffer];
}

/// The extent that gives a symbol its value.
struct SymbolSource {
    int32_t argument, axis;
    int64_t coefficient;
};

bool find_source(const Call &call, int32_t symbol, SymbolSource *source) {
    for (int32_t i = 0; i < call.program.argument_count; ++i) {
        if (call.program.arguments[i].role == SCALIDE_OUTPUT) continue;
        const scalide_buffer &buffer = data_buffer(call, i);
        for (int32_t axis = 0; axis < buffer.rank; ++axis) {
            if (sole_symbol(buffer.shape[axis]) != symbol) continue;
            *source = {i, axis, buffer.shape[axis].terms[0].coefficient};
            return true;
        }
    }
    return false;
}

bool has_symbol(const scalide_buffer &buffer, int32_t symbol) {
    for (int32_t axis = 0; axis < buffer.rank; ++axis) {
        for (int32_t i = 0; i < buffer.shape[axis].count; ++i) {
            for (int32_t other : buffer.shape[axis].terms[i].symbol)
                if (other == symbol) return true;
        }
    }
    return false;
}

/// Writes `. Pass an array of shape [b, 64]`, followed by ` with b = 32 from x` if the values of the symbols are known.
void advise_shape(Text &text, const Call &call, int32_t argument, const int32_t *symbols) {
    const scalide_buffer &buffer = data_buffer(call, argument);
    print_shape(text << ". Pass an array of shape ", call.program, buffer);
    const char *separator = " with ";
    for (int32_t i = 0; symbols && i < call.program.symbol_count; ++i) {
        if (!has_symbol(buffer, i)) continue;
        text << separator << call.program.symbols[i].name << " = " << symbols[i];
        if (call.program.symbols[i].source == SCALIDE_RANKS) text << " (the number of ranks)";
        separator = ", ";
        SymbolSource source;
        const bool has_source = is_from_arguments(call.program.symbols[i]) && find_source(call, i, &source);
        if (has_source && source.argument != argument) text << " from " << call.program.arguments[source.argument].name;
    }
    text << '.';
}

bool solve_symbol(const Call &call, const SymbolSource &source, const scalide_symbol &symbol, int32_t *value) {
    const int64_t extent = call.array(source.argument).extent[source.axis];
    const int64_t solution = extent / source.coefficient;
    *value = static_cast<int32_t>(solution);
    if (extent % source.coefficient != 0) {
        Text text = complain(call, source.argument)
                    << "extent " << source.axis << " must be a multiple of " << source.coefficient << ", got " << extent;
        advise_shape(text, call, source.argument, nullptr);
        return false;
    }
    if (allows(symbol, solution)) return true;
    Text text = complain(call, source.argument) << "extent " << source.axis << " gives " << symbol.name << " = " << solution << ", but ";
    print_allowed(text, symbol) << ". Pass an array with another extent, or declare another range in the program.";
    return false;
}

} // namespace

bool allows(const scalide_symbol &symbol, int64_t value) {
    return value >= symbol.minimum && value <= symbol.maximum && (symbol.multiple <= 1 || value % symbol.multiple == 0);
}

Text &print_allowed(Text &text, const scalide_symbol &symbol) {
    text << symbol.name << " must be ";
    if (symbol.multiple > 1) text << "a multiple of " << symbol.multiple << ' ';
    return text << "in [" << symbol.minimum << ", " << symbol.maximum << ']';
}

Text &print_values(Text &text, const scalide_program &program, const int32_t *symbols) {
    for (int32_t i = 0; i < program.symbol_count; ++i) text << (i == 0 ? " " : ", ") << program.symbols[i].name << " = " << symbols[i];
    return text;
}

Text complain(const Call &call, int32_t argument) {
    return start_message(call.context) << call.program.name << '.' << call.program.arguments[argument].name << ": ";
}

bool check_count(const Call &call, size_t count) {
    if (count == static_cast<size_t>(call.program.argument_count)) return true;
    Text text = start_message(call.context) << call.program.name << ": the number of arrays must be " << call.program.argument_count
                                            << ", got " << uint64_t(count) << ". Pass in this order:";
    for (int32_t i = 0; i < call.program.argument_count; ++i) text << (i == 0 ? " " : ", ") << call.program.arguments[i].name;
    text << '.';
    const auto is_state = [&](int32_t i) { return call.program.arguments[i].role == SCALIDE_STATE; };
    for (int32_t i = 0; i < call.program.argument_count; ++i)
        if (is_state(i))
            text << ' ' << call.program.arguments[i].name << " is a state of policy " << call.program.numerics
                 << ": initialize it with scalide_initial_state and pass it to every run.";
    return false;
}

bool check_type(const Call &call, int32_t argument) {
    constexpr int64_t largest = INT32_MAX;
    const scalide_buffer &buffer = data_buffer(call, argument);
    const scalide_array &array = call.array(argument);
    if (array.dtype != buffer.dtype) {
        complain(call, argument) << "dtype must be " << scalide_dtype_name(buffer.dtype) << ", got " << scalide_dtype_name(array.dtype)
                                 << ". Convert the array, or build the program with another policy.";
        return false;
    }
    if (array.rank != buffer.rank) {
        Text text = complain(call, argument) << "rank must be " << buffer.rank << ", got " << array.rank;
        advise_shape(text, call, argument, nullptr);
        return false;
    }
    int64_t elements = 1;
    for (int32_t axis = 0; axis < array.rank; ++axis) {
        if (array.extent[axis] >= 0 && array.extent[axis] <= largest) {
            elements = multiply_extent(elements, array.extent[axis]);
            continue;
        }
        Text text = complain(call, argument) << "extent " << axis << " must be in [0, " << largest << "], got " << array.extent[axis];
        advise_shape(text, call, argument, nullptr);
        return false;
    }
    if (elements <= SCALIDE_MAX_ELEMENTS) return true;
    complain(call, argument) << "the number of elements must be at most " << SCALIDE_MAX_ELEMENTS << ". Split the array.";
    return false;
}

scalide_status solve_symbols(const Call &call, int32_t *symbols) {
    for (int32_t i = 0; i < call.program.symbol_count; ++i) {
        SymbolSource source;
        if (!is_from_arguments(call.program.symbols[i])) continue;
        if (!find_source(call, i, &source)) {
            start_message(call.context) << call.program.name << ": no input has the symbol " << call.program.symbols[i].name
                                        << " alone on an axis, so it has no value. Generate the library again.";
            return SCALIDE_INVALID_PROGRAM;
        }
        if (!solve_symbol(call, source, call.program.symbols[i], &symbols[i])) return SCALIDE_INVALID_ARGUMENT;
    }
    return solve_group_symbols(call.context, call.program, symbols);
}

bool check_requirements(const Call &call, const int32_t *symbols) {
    for (int32_t i = 0; i < call.program.requirement_count; ++i) {
        const scalide_requirement &requirement = call.program.requirements[i];
        int64_t surplus;
        if (evaluate(*requirement.surplus, symbols, &surplus) || surplus >= 0) continue;
        Text text = start_message(call.context) << call.program.name << ": " << requirement.name << ": " << requirement.rule << ", got";
        print_values(text, call.program, symbols) << ". Pass arrays with other extents.";
        return false;
    }
    return true;
}

bool check_shape(const Call &call, int32_t argument, const int32_t *symbols) {
    const scalide_buffer &buffer = data_buffer(call, argument);
    const scalide_array &array = call.array(argument);
    for (int32_t axis = 0; axis < buffer.rank; ++axis) {
        int64_t extent;
        const bool fits = evaluate(buffer.shape[axis], symbols, &extent);
        if (fits && array.extent[axis] == extent) continue;
        Text text = complain(call, argument) << "extent " << axis << " must be " << extent;
        const int32_t symbol = sole_symbol(buffer.shape[axis]);
        if (symbol >= 0 && call.program.symbols[symbol].source == SCALIDE_RANKS && extent == symbols[symbol])
            text << ", the number of ranks of group " << call.program.symbols[symbol].name;
        text << ", got " << array.extent[axis];
        advise_shape(text, call, argument, symbols);
        return false;
    }
    return true;
}

bool check_like(const Call &call, const int32_t *symbols) {
    for (int32_t i = 0; i < call.program.argument_count; ++i) {
        if (!is_used_by_runs(call.program.arguments[i].role)) continue;
        if (!check_type(call, i) || !check_shape(call, i, symbols) || !check_memory(call, i)) return false;
    }
    return check_overlap(call);
}

} // namespace scalide

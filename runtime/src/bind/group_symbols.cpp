// Symbols that get their values from the groups of the context.
#include "bind/check.h"
#include "bind/extent.h"
#include <initializer_list>

namespace scalide {

namespace {

const Group *group_of(const scalide_context &context, const scalide_program &program, const scalide_symbol &symbol) {
    return find_group(context.groups, symbol.source == SCALIDE_RANKS ? symbol.name : program.symbols[symbol.group].name);
}

/// Computes the value of a symbol that is not from arguments. The values of all symbols but chunks must be there before those of chunks.
/// Returns false if the extent that is divided has no value.
bool find_value(const Group &group, const scalide_symbol &symbol, const int32_t *symbols, int64_t *value) {
    const int64_t ranks = group.transport.ranks;
    if (symbol.source == SCALIDE_CHUNK) {
        int64_t whole = 0;
        const bool is_there = evaluate(*symbol.divided, symbols, &whole);
        *value = (whole + ranks - 1) / ranks;
        return is_there;
    }
    *value = symbol.source == SCALIDE_RANKS ? ranks : group.transport.rank;
    return true;
}

/// Calls visit(index) for the symbols that are not from arguments, chunks last. Ends when `visit` returns false, and returns that.
template<typename Visit>
bool for_each_group_symbol(const scalide_program &program, Visit visit) {
    for (const bool wants_chunks : {false, true})
        for (int32_t i = 0; i < program.symbol_count; ++i)
            if (!is_from_arguments(program.symbols[i]) && (program.symbols[i].source == SCALIDE_CHUNK) == wants_chunks && !visit(i))
                return false;
    return true;
}

bool complain_about_group(scalide_context *context, const scalide_program &program, const char *group) {
    Text text = start_message(context) << program.name << ": the program exchanges arrays in group ";
    text.name(group) << ", but the context is no rank of it. Call scalide_join_mpi, scalide_join_threads, or scalide_join_alone for one "
                        "rank.";
    return false;
}

bool complain_about_value(scalide_context *context, const scalide_program &program, const scalide_symbol &symbol, int64_t value) {
    Text text = start_message(context) << program.name << ": ";
    if (symbol.source == SCALIDE_RANKS) {
        text << "group " << symbol.name << " has " << value << (value == 1 ? " rank" : " ranks");
    } else {
        text << "group " << program.symbols[symbol.group].name << " gives " << symbol.name << " = " << value;
    }
    print_allowed(text << ", but ", symbol) << ". Run the program with another number of ranks.";
    return false;
}

} // namespace

scalide_status solve_group_symbols(scalide_context *context, const scalide_program &program, int32_t *symbols) {
    const bool good = for_each_group_symbol(program, [&](int32_t i) {
        const scalide_symbol &symbol = program.symbols[i];
        const Group *group = group_of(*context, program, symbol);
        if (!group) {
            const char *name = symbol.source == SCALIDE_RANKS ? symbol.name : program.symbols[symbol.group].name;
            return complain_about_group(context, program, name);
        }
        int64_t value = 0;
        if (!find_value(*group, symbol, symbols, &value)) {
            start_message(context) << program.name << ": " << symbol.name << " would be more than 2147483647. Bind smaller arrays.";
            return false;
        }
        symbols[i] = static_cast<int32_t>(value);
        return allows(symbol, value) || complain_about_value(context, program, symbol, value);
    });
    return good ? SCALIDE_OK : SCALIDE_INVALID_ARGUMENT;
}

bool has_group_values(const scalide_context &context, const scalide_program &program, const int32_t *symbols) {
    return for_each_group_symbol(program, [&](int32_t i) {
        const Group *group = group_of(context, program, program.symbols[i]);
        int64_t value = 0;
        return group && find_value(*group, program.symbols[i], symbols, &value) && symbols[i] == value;
    });
}

} // namespace scalide

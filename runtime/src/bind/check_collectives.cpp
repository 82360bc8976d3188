#include "bind/check_collectives.h"
#include "bind/check_blocks.h"

namespace scalide {

namespace {

/// True if the symbol is the number of ranks of a group.
bool is_group(const scalide_program &program, int32_t symbol) {
    return symbol >= 0 && symbol < program.symbol_count && program.symbols[symbol].source == SCALIDE_RANKS;
}

/// Chunks are computed last, so no chunk can be divided.
bool has_chunks(const scalide_program &program, const scalide_extent &extent) {
    for (int32_t i = 0; i < extent.count; ++i)
        for (int32_t symbol : extent.terms[i].symbol)
            if (symbol >= 0 && program.symbols[symbol].source == SCALIDE_CHUNK) return true;
    return false;
}

bool good_moved(const scalide_program &program, const scalide_moved &moved) {
    return moved.from != moved.to && is_used_by_steps(program, moved.from) && is_writable(program, moved.to) &&
           program.buffers[moved.from].dtype == program.buffers[moved.to].dtype;
}

/// No other array of the collective may be where one is written, because the order of the copies is not fixed.
bool is_alone(const scalide_collective &collective, int32_t index) {
    const int32_t to = collective.arrays[index].to;
    for (int32_t i = 0; i < collective.count; ++i)
        if (i != index && (collective.arrays[i].from == to || collective.arrays[i].to == to)) return false;
    return true;
}

} // namespace

bool good_symbol(const scalide_program &program, const scalide_symbol &symbol) {
    switch (symbol.source) {
    case SCALIDE_FROM_ARGUMENTS: return true;
    case SCALIDE_RANKS: return symbol.name && *symbol.name;
    case SCALIDE_RANK: return is_group(program, symbol.group);
    case SCALIDE_CHUNK:
        return is_group(program, symbol.group) && symbol.divided && good_extent(program, *symbol.divided) &&
               !has_chunks(program, *symbol.divided);
    default: return false;
    }
}

bool good_collective(const scalide_program &program, const scalide_collective &collective) {
    const bool has_kind = collective.kind == SCALIDE_EXCHANGE || collective.kind == SCALIDE_COLLECT;
    if (!has_kind || !is_group(program, collective.group) || collective.count < 1 || !collective.arrays) return false;
    for (int32_t i = 0; i < collective.count; ++i)
        if (!good_moved(program, collective.arrays[i]) || !is_alone(collective, i)) return false;
    return true;
}

} // namespace scalide

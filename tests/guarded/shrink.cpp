#include "guarded/shrink.h"
#include "ir/rewrite.h"
#include <algorithm>

namespace scalide {

namespace {

/// Without what no result needs. Where results overwrite arguments their numbers stay, so all arguments do.
Program trimmed(Program program) {
    program = remove_dead_nodes(program);
    const auto overwrites = [](const Result &result) { return result.argument >= 0; };
    if (std::ranges::none_of(program.results, overwrites)) {
        const std::vector<int> uses = count_uses(program);
        std::erase_if(program.arguments, [&](const Argument &argument) { return uses[argument.value] == 0; });
    }
    return program;
}

std::vector<Program> smaller_programs(const Program &program) {
    std::vector<Program> smaller;
    const std::vector<int> makers = producers(program);
    for (size_t r = 0; r < program.results.size(); r++) {
        Program candidate = program;
        candidate.results.erase(candidate.results.begin() + std::ptrdiff_t(r));
        if (!candidate.results.empty()) smaller.push_back(trimmed(candidate));
        const int maker = makers[program.results[r].value];
        if (maker < 0 || program.results[r].argument >= 0) continue;
        for (const ValueId operand : program.nodes[size_t(maker)].operands) {
            if (makers[operand] < 0) continue;
            candidate = program;
            candidate.results[r].value = operand;
            smaller.push_back(trimmed(candidate));
        }
    }
    return smaller;
}

std::vector<Extent::Bindings> smaller_sizes(const Program &program, const Extent::Bindings &sizes) {
    std::vector<Extent::Bindings> smaller;
    for (const Symbol &symbol : program.symbols) {
        const auto size = sizes.find(symbol.name);
        if (size == sizes.end()) continue;
        for (const int64_t value : {int64_t(0), int64_t(1), int64_t(2), size->second / 2, size->second - 1}) {
            if (value >= size->second || value < symbol.minimum || value % symbol.multiple != 0) continue;
            smaller.push_back(sizes);
            smaller.back()[symbol.name] = value;
        }
    }
    return smaller;
}

std::vector<BoundProgram> candidates(const BoundProgram &failing) {
    std::vector<BoundProgram> found;
    for (Program &program : smaller_programs(failing.program)) found.push_back({std::move(program), failing.sizes});
    for (Extent::Bindings &sizes : smaller_sizes(failing.program, failing.sizes)) found.push_back({failing.program, std::move(sizes)});
    return found;
}

} // namespace

BoundProgram shrink(BoundProgram failing, const std::function<bool(const BoundProgram &)> &fails) {
    for (bool is_smaller = true; is_smaller;) {
        const std::vector<BoundProgram> smaller = candidates(failing);
        const auto next = std::ranges::find_if(smaller, fails);
        is_smaller = next != smaller.end();
        if (is_smaller) failing = *next;
    }
    return failing;
}

} // namespace scalide

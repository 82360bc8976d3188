#include "transforms/spec/invariants.h"
#include "expr/base_operators.h"
#include "kinds/kernel_kinds.h"
#include "transforms/calls/calls.h"
#include <algorithm>

namespace scalide {

namespace {

std::string say(const std::string &subject, const std::string &requirement, const std::string &got) {
    return subject + ": " + requirement + ", got " + got;
}

std::string why_calls(const Program &program) {
    if (!program.programs.empty()) return say(program.name + ".programs", "must be empty", program.programs[0].name);
    const auto call = std::ranges::find_if(program.nodes, [](const Node &node) { return find_call_kind(node.op) != nullptr; });
    if (call != program.nodes.end()) return say(call->op + ".program", "must be inlined", "a call");
    return "";
}

std::string why_scaled(const Program &program) {
    for (const Argument &argument : program.arguments)
        if (argument.scaled)
            return say(program.name + "." + program.value_name(argument.value), "must be a plain array or a part", "scaled");
    for (const Result &result : program.results)
        if (result.scaled) return say(program.name + "." + result.name, "must be a plain array or a part", "scaled");
    return "";
}

std::string why_no_kernels(const Program &program) {
    for (const Node &node : program.nodes) {
        if (node.op != "call" && node.regions.empty() && !is_collective(node.op))
            return say(node.op + ".op", "must be a call of a kernel", node.op);
        for (const Region &region : node.regions)
            if (const std::string why = why_no_kernels(*region); !why.empty()) return why;
    }
    for (const Program &kernel : program.programs)
        if (const std::string why = why_illegal(kernel); !why.empty()) return kernel.name + ": " + why;
    return "";
}

template<typename Why>
std::string first_of(const Program &program, const Why &why_not) {
    for (const Node &node : program.nodes) {
        for (const Region &region : node.regions)
            if (const std::string why = first_of(*region, why_not); !why.empty()) return why;
        if (const std::string why = node.regions.empty() ? why_not(program, node) : ""; !why.empty()) return why;
    }
    return "";
}

std::string why_broken(Invariant invariant, const Program &program, const Rulebook &rulebook) {
    switch (invariant) {
    case Invariant::typed:
        return first_of(program, [&](const Program &owner, const Node &node) { return why_not_typed(owner, node, rulebook); });
    case Invariant::no_calls: return why_calls(program);
    case Invariant::wide: return first_of(program, why_not_wide);
    case Invariant::no_scaled: return why_scaled(program);
    case Invariant::base: return first_of(program, why_not_base);
    case Invariant::kernels: return why_no_kernels(program);
    }
    return "";
}

} // namespace

void check_invariant(Invariant invariant, const Program &program, const Rulebook &rulebook, const std::string &after) {
    const std::string why = why_broken(invariant, program, rulebook);
    internal_check(why.empty(), "after " + after + ": " + why);
}

} // namespace scalide

#include "transforms/fusion/copied_arguments.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "transforms/analysis/costs.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr double least_bytes = 1 << 20; ///< a copy of fewer bytes costs little

bool is_scatter(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && op->shape == Shape::scatter;
}

/// True if the node changes some elements of its first operand, but not all.
bool is_partial(const Program &program, const Node &node) {
    if (!is_scatter(node) && node.op != "dynamic_update_slice") return false;
    const Extents &update = program.type(node.operands[is_scatter(node) ? 2 : 1]).shape;
    return element_count(update) != element_count(program.type(node.operands[0]).shape);
}

/// True if a scatter kernel makes the value in the buffer of the argument, or if a chain of such kernels does.
bool is_in_place(const Program &fused, const std::vector<int> &makers, ValueId argument, ValueId value) {
    while (value != argument) {
        if (makers[value] < 0) return false;
        const Node &call = fused.nodes[makers[value]];
        if (call.op != "call") return call.op == "straight"; // a straight region overwrites arguments where its own kernels do
        const Program &kernel = fused.program(call.attributes.at("program").word);
        const Result &result = kernel.results[std::ranges::find(call.results, value) - call.results.begin()];
        if (kernel.attributes.at("kind").word != "scatter" || result.argument < 0) return false;
        value = call.operands[result.argument];
    }
    return true;
}

/// Returns why kernels write the whole argument, as the end of a sentence with "because".
std::string reason_of(const Program &fused, const Argument &argument) {
    const Type &type = fused.type(argument.value);
    if (argument.part.kind == ArrayPart::Kind::data) return "the policy stores it with a scale, and a new scale changes all elements";
    const auto scatters_in_format = [&](const Program &kernel) {
        return kernel.attributes.at("kind").word == "scatter" && kernel.type(kernel.results[0].value) == type;
    };
    if (std::ranges::any_of(fused.programs, scatters_in_format))
        return "the program also reads the old array, or the array between two updates";
    return is_float(type.dtype) && size_of(type.dtype) == 2
               ? "its 16-bit elements are rounded once after all updates (see donate_argnums of trace)"
               : "the updates are combined with other operators";
}

} // namespace

std::vector<PartialUpdate> partial_updates(const Program &program) {
    const std::vector<int> makers = producers(program);
    std::vector<PartialUpdate> found;
    for (const Result &result : program.results) {
        if (result.argument < 0) continue;
        const Argument &argument = program.arguments[result.argument];
        const Node *last = nullptr;
        ValueId value = result.value;
        while (value != argument.value && makers[value] >= 0) {
            const Node &node = program.nodes[makers[value]];
            if (node.op != "convert_element_type" && !is_partial(program, node)) break;
            if (last == nullptr && node.op != "convert_element_type") last = &node;
            value = node.operands[0];
        }
        if (value == argument.value && last != nullptr) found.push_back({program.value_name(value), last->location});
    }
    return found;
}

std::vector<CopiedArgument> copied_arguments(const Program &fused, const std::vector<PartialUpdate> &updates) {
    const NominalSizes sizes(fused);
    const std::vector<int> makers = producers(fused);
    std::vector<CopiedArgument> copied;
    for (const Result &result : fused.results) {
        if (result.argument < 0 || result.part.is_scale()) continue;
        const Argument &argument = fused.arguments[result.argument];
        const std::string &name = argument.part.array(fused.value_name(argument.value));
        const auto update = std::ranges::find(updates, name, &PartialUpdate::argument);
        if (update == updates.end() || sizes.bytes(fused.type(argument.value)) < least_bytes) continue;
        if (!is_in_place(fused, makers, argument.value, result.value)) copied.push_back({*update, reason_of(fused, argument)});
    }
    return copied;
}

} // namespace scalide

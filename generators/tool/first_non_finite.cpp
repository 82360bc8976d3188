#include "tool/first_non_finite.h"
#include "interpret/operation.h"
#include "ir/words.h"
#include "tool/tables.h"
#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <map>

namespace scalide {

namespace {

bool is_finite(const HostArray &array) {
    return std::ranges::all_of(to_tensor(array).data, [](double element) { return std::isfinite(element); }) && std::isfinite(array.scale);
}

/// Returns the arguments that a step reads and that are not finite before the run.
std::vector<std::string> culprits(const PlanStep &step, const Plan &plan, const std::function<HostArray(const std::string &)> &find) {
    std::vector<std::string> names;
    for (const PlanArgument &argument : plan.arguments) {
        const bool is_read = std::ranges::any_of(step.operands, [&](const PlanOperand &operand) {
            return !operand.is_symbol && (operand.index == argument.data_buffer || operand.index == argument.scale_buffer);
        });
        if (is_read && argument.role != ArgumentRole::output && !is_finite(find(argument.name)))
            names.push_back(name_to_string(argument.name));
    }
    return names;
}

/// Returns the number of the first element that an operator made infinite or NaN although no operand is, or -1.
int64_t made_non_finite(const Operation &operation, const Array &result) {
    if (!is_float(result.dtype)) return -1;
    const auto is_nan = [](double number) { return std::isnan(number); };
    const auto is_bad = [](double number) { return !std::isfinite(number); };
    const auto has = [&](const auto &test) {
        return std::ranges::any_of(operation.operands, [&](const Array *operand) { return std::ranges::any_of(operand->data, test); });
    };
    const auto number = [&](const auto &found) { return found == result.data.end() ? -1 : found - result.data.begin(); };
    if (const int64_t first = number(std::ranges::find_if(result.data, is_bad)); first < 0 || !has(is_bad)) return first;
    const int64_t first = number(std::ranges::find_if(result.data, is_nan));
    return first < 0 || has(is_nan) ? -1 : first;
}

/// Returns the index of an element, `[b 3, 7]`. An axis whose extent is a symbol has the name of the symbol.
std::string index_of(int64_t number, const std::vector<int64_t> &shape, const Extents &extents) {
    std::vector<std::string> index(shape.size());
    for (size_t axis = shape.size(); axis-- > 0; number /= shape[axis]) {
        const bool is_named = axis < extents.size() && !extents[axis].is_static();
        index[axis] = fmt::format("{}{}", is_named ? to_string(extents[axis]) + " " : "", number % shape[axis]);
    }
    return fmt::format("[{}]", fmt::join(index, ", "));
}

/// Returns ` in block1/scores, forward (model.py:12)`, or what of it is known.
std::string place_of(const Origin &origin, bool has_gradient) {
    std::string text = origin.scope.empty() ? "" : " in " + origin.scope;
    if (has_gradient && origin.direction != Direction::none) text += fmt::format(", {}", to_string(origin.direction));
    return origin.location.line == 0 ? text : text + " (" + short_place(origin.location, "") + ")";
}

bool has_gradient(const Program &program) {
    return std::ranges::any_of(program.nodes, [](const Node &node) {
        return node.role == Role::cotangent ||
               std::ranges::any_of(node.regions, [](const Region &region) { return has_gradient(*region); });
    });
}

} // namespace

std::vector<Array> interpret_until_non_finite(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                              std::string &text) {
    std::map<const Program *, Origins> origins_of; // of the program and of its regions
    const Directions directions(program);
    text = "first non-finite: none (no operator produces an infinity or a NaN)";
    bool is_found = false;
    return interpret(program, inputs, rulebook, Mode::stored, [&](Operation &operation) {
        find_run(operation.op)(operation);
        if (is_found || operation.operands.empty()) return;
        for (size_t i = 0; i < operation.results.size() && !is_found; i++) {
            const Array &result = operation.results[i];
            const int64_t element = made_non_finite(operation, result);
            if (element < 0) continue;
            is_found = true;
            const Node &node = *operation.node;
            const Origins &origins = origins_of.try_emplace(operation.program, *operation.program, directions).first->second;
            const Origin own{"", node.location, node.op, node.scope, directions.of(node)};
            text = fmt::format("first non-finite: {}, operator {}{}, element {} is {}", name_to_string(origins.of(node.results[i]).tensor),
                               node.op, place_of(own, has_gradient(program)),
                               index_of(element, result.shape, operation.program->type(node.results[i]).shape), result.data[element]);
            if (operation.step >= 0) text += fmt::format(", in step {} of its loop", operation.step);
        }
    });
}

std::string to_text(const NonFinite &first, const Plan &plan, const std::function<HostArray(const std::string &)> &find) {
    if (first.buffer.empty()) return "first non-finite: none (all results are finite)";
    std::string text = "first non-finite: " + name_to_string(first.buffer);
    const auto buffer = std::ranges::find(plan.buffers, first.buffer, &PlanBuffer::name);
    if (buffer != plan.buffers.end()) {
        const Origin &origin = buffer->origin;
        const bool has_backward =
            std::ranges::any_of(plan.buffers, [](const PlanBuffer &each) { return each.origin.direction == Direction::backward; });
        if (!origin.tensor.empty() && origin.tensor != first.buffer) text += " of " + name_to_string(origin.tensor);
        Origin place = origin;
        if (origin.is_unnamed()) place.scope.clear(); // the tensor's name has the scope
        text += place_of(place, has_backward);
    }
    text += fmt::format(", step {} ({})", first.step, first.kernel);
    if (!first.loops.empty()) text += ", in " + first.loops;
    if (first.step >= plan.steps.size() || plan.steps[first.step].kernel != first.kernel) return text; // the step is from a variant
    const std::vector<std::string> names = culprits(plan.steps[first.step], plan, find);
    if (names.empty()) return text;
    return text + fmt::format("; it reads {}, which {} not finite", fmt::join(names, ", "), names.size() == 1 ? "is" : "are");
}

} // namespace scalide

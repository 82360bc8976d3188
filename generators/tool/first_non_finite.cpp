#include "tool/first_non_finite.h"
#include "interpret/bind.h"
#include "interpret/operation.h"
#include "ir/words.h"
#include "tool/tables.h"
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

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

/// Returns the value that has the elements of the node's result in the shape that the user knows. Passes compute a dot product of several
/// batch axes with one, and reshape the result after it, in the same scope and line. A value with a name of the user is known itself.
ValueId known_value(const Program &program, const Origins &origins, const Node &made, ValueId value) {
    for (const Node &node : program.nodes) {
        if (!origins.of(value).is_unnamed()) break;
        const bool belongs = node.scope == made.scope && node.location.line == made.location.line;
        if (belongs && node.op == "reshape" && node.operands[0] == value) value = node.results[0];
    }
    return value;
}

/// Returns a word for each axis of a value: the symbol that is its extent, or its letter if the innermost scope is an einsum, as JAX names
/// it.
std::vector<std::string> axis_words(const Extents &shape, const std::string &scope) {
    std::string letters = scope.substr(scope.rfind('/') + 1);
    const size_t arrow = letters.find("->");
    letters = arrow == std::string::npos ? "" : letters.substr(arrow + 2);
    const auto is_letter = [](char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0; };
    if (letters.size() != shape.size() || !std::ranges::all_of(letters, is_letter)) letters.clear();
    std::vector<std::string> words;
    for (size_t axis = 0; axis < shape.size(); axis++)
        words.push_back(!shape[axis].is_static() ? to_string(shape[axis]) : letters.empty() ? "" : std::string(1, letters[axis]));
    return words;
}

std::vector<int64_t> index_of(int64_t number, const std::vector<int64_t> &shape) {
    std::vector<int64_t> index(shape.size());
    for (size_t axis = shape.size(); axis-- > 0; number /= shape[axis]) index[axis] = number % shape[axis];
    return index;
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

std::vector<Array> interpret_until_non_finite(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                                              std::optional<NonFiniteElement> &found) {
    std::map<const Program *, Origins> origins_of; // of the program and of its regions
    const Directions directions(program);
    const Extent::Bindings bindings = bind_extents(program, inputs);
    const auto describe = [&](const Operation &operation, size_t result, int64_t element) {
        const Node &node = *operation.user_node;
        const bool is_inside = operation.user_node != operation.node;
        const Program &owner = *operation.user_program;
        const Origins &origins = origins_of.try_emplace(&owner, owner, directions).first->second;
        const ValueId value = is_inside ? node.results[0] : known_value(owner, origins, node, node.results[result]);
        const Origin named = origins.of(value); // the operands are finite, so a tensor of another node is finite
        const bool is_computed_here = named.op == node.op || value != node.results[result];
        const bool is_own =
            named.is_unnamed() || (is_computed_here && named.scope == node.scope && named.location.line == node.location.line);
        NonFiniteElement made{.origin = {named.tensor, node.location, node.op, node.scope, directions.of(node)},
                              .relation = is_inside ? "inside of"
                                          : is_own  ? ""
                                                    : "derived from",
                              .inner = is_inside ? std::string(operation.op) : "",
                              .index = index_of(element, operation.results[result].shape),
                              .axes = std::vector<std::string>(operation.results[result].shape.size()),
                              .value = operation.results[result].data[static_cast<size_t>(element)],
                              .step = operation.step};
        if (is_inside) return made;
        made.index = index_of(element, evaluate(owner.type(value).shape, bindings));
        made.axes = axis_words(owner.type(value).shape, node.scope);
        return made;
    };
    return interpret(program, inputs, rulebook, mode, [&](Operation &operation) {
        find_run(operation.op)(operation);
        if (found || operation.operands.empty()) return;
        for (size_t i = 0; i < operation.results.size() && !found; i++)
            if (const int64_t element = made_non_finite(operation, operation.results[i]); element >= 0)
                found = describe(operation, i, element);
    });
}

std::string to_text(const std::optional<NonFiniteElement> &found, const Program &program) {
    if (!found) return "first non-finite: none (no operator produces an infinity or a NaN)";
    const auto &[origin, relation, inner, index, axes, value, step] = *found;
    std::vector<std::string> words;
    for (size_t axis = 0; axis < index.size(); axis++)
        words.push_back(fmt::format("{}{}", axes[axis].empty() ? "" : axes[axis] + " ", index[axis]));
    return fmt::format("first non-finite: {}{}, operator {}{}{}, element [{}] is {}{}", relation.empty() ? "" : relation + " ",
                       name_to_string(origin.tensor), origin.op, inner.empty() ? "" : " (its " + inner + ")",
                       place_of(origin, has_gradient(program)), fmt::join(words, ", "), value,
                       step < 0 ? "" : fmt::format(", in step {} of its loop", step));
}

std::string to_json(const std::optional<NonFiniteElement> &found) {
    using Json = nlohmann::ordered_json;
    if (!found) return "null\n";
    const Json made{{"tensor", found->origin.tensor},
                    {"relation", found->relation},
                    {"operator", found->origin.op},
                    {"inner", found->inner},
                    {"direction", direction_json(found->origin.direction)},
                    {"scope", found->origin.scope},
                    {"source", place_json(found->origin.location)},
                    {"index", found->index},
                    {"axes", found->axes},
                    {"value", fmt::format("{}", found->value)}, // JSON has no infinity
                    {"step", found->step}};
    return made.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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

#include "tool/first_non_finite.h"
#include "ir/words.h"
#include "tool/tables.h"
#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

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

} // namespace

std::string to_text(const NonFinite &first, const Plan &plan, const std::function<HostArray(const std::string &)> &find) {
    if (first.buffer.empty()) return "first non-finite: none (all results are finite)";
    std::string text = "first non-finite: " + name_to_string(first.buffer);
    const auto buffer = std::ranges::find(plan.buffers, first.buffer, &PlanBuffer::name);
    if (buffer != plan.buffers.end()) {
        const Origin &origin = buffer->origin;
        if (!origin.tensor.empty() && origin.tensor != first.buffer) text += " of " + name_to_string(origin.tensor);
        if (origin.location.line > 0) text += " (" + short_place(origin.location, "") + ")";
    }
    text += fmt::format(", step {} ({})", first.step, first.kernel);
    if (first.step >= plan.steps.size() || plan.steps[first.step].kernel != first.kernel) return text; // the step is from a variant
    const std::vector<std::string> names = culprits(plan.steps[first.step], plan, find);
    if (names.empty()) return text;
    return text + fmt::format("; it reads {}, which {} not finite", fmt::join(names, ", "), names.size() == 1 ? "is" : "are");
}

} // namespace scalide

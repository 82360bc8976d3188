#include "interpret/interpret.h"
#include "expr/base_operators.h"
#include "interpret/bind.h"
#include "interpret/composite.h"
#include "interpret/operation.h"
#include "interpret/regions.h"
#include "kinds/kernel_kinds.h"
#include <algorithm>
#include <deque>

namespace scalide {

namespace {

using Arrays = std::vector<const Array *>;
using RunOperation = std::function<void(Operation &)>;

class Interpreter {
public:
    Interpreter(const Program &whole, const Rulebook &rulebook, Mode mode, const RunOperation &run_operation, const Observe &observe)
        : whole_(whole), rulebook_(rulebook), mode_(mode), run_operation_(run_operation), observe_(observe) {}

    std::vector<Array> run(const Program &program, const Arrays &inputs, const Extent::Bindings &bindings);

private:
    std::vector<Array> run_node(const Node &node, Operation operation, const Extent::Bindings &bindings);
    const Program &composite(const Node &node, const Operation &operation);

    const Program &whole_; ///< contains the sub-programs that calls name
    const Rulebook &rulebook_;
    Mode mode_;
    const RunOperation &run_operation_;
    const Observe &observe_;               ///< may be empty
    int64_t step_ = -1;                    ///< of the innermost loop that runs
    const Node *composite_node_ = nullptr; ///< the outermost composite operator that runs; NULL: none
    const Program *composite_program_ = nullptr;
    std::map<std::string, Program> composites_; ///< by operator, operand types and attributes
};

std::vector<Array> Interpreter::run(const Program &program, const Arrays &inputs, const Extent::Bindings &bindings) {
    Arrays values(program.values.size());
    std::deque<Array> made;
    for (size_t i = 0; i < inputs.size(); i++) values[program.arguments[i].value] = inputs[i];
    for (const Node &node : program.nodes) {
        Operation operation{node.op, evaluate(node.attributes, bindings), {}, {}, mode_, &node, &program, &node, &program, step_};
        if (composite_node_ != nullptr)
            std::tie(operation.user_node, operation.user_program) = std::pair(composite_node_, composite_program_);
        for (ValueId operand : node.operands) operation.operands.push_back(values[operand]);
        for (ValueId result : node.results) {
            const Type &type = program.type(result);
            operation.results.push_back({type.dtype, evaluate(type.shape, bindings), {}});
        }
        std::vector<Array> results = run_node(node, std::move(operation), bindings);
        if (observe_) observe_(program, node, results);
        for (size_t i = 0; i < results.size(); i++) values[node.results[i]] = &made.emplace_back(std::move(results[i]));
    }
    std::vector<Array> outputs;
    for (const Result &result : program.results) outputs.push_back(*values[result.value]);
    return outputs;
}

std::vector<Array> Interpreter::run_node(const Node &node, Operation operation, const Extent::Bindings &bindings) {
    // The types of a call are exactly the types of its program, so symbols have the same meaning in both.
    if (node.op == "call") return run(whole_.program(node.attributes.at("program").word), operation.operands, bindings);
    if (find_region_kind(node.op) != nullptr)
        return run_regions(node, operation, [&](const Program &region, const Arrays &inputs, int64_t step) {
            const int64_t outer = step_;
            if (step >= 0) step_ = step;
            std::vector<Array> results = run(region, inputs, bindings);
            step_ = outer;
            return results;
        });
    if (find_base_operator(node.op) == nullptr) {
        const bool is_outermost = composite_node_ == nullptr;
        if (is_outermost) std::tie(composite_node_, composite_program_) = std::pair(operation.node, operation.program);
        std::vector<Array> results = run(composite(node, operation), operation.operands, {});
        if (is_outermost) composite_node_ = nullptr;
        return results;
    }
    run_operation_(operation);
    return std::move(operation.results);
}

const Program &Interpreter::composite(const Node &node, const Operation &operation) {
    std::vector<Type> types;
    std::string key = node.op + to_string(operation.attributes);
    for (const Array *operand : operation.operands) {
        types.push_back({operand->dtype, {operand->shape.begin(), operand->shape.end()}});
        key += " " + to_string(types.back());
    }
    const auto found = composites_.find(key);
    if (found != composites_.end()) return found->second;
    const Rule &rule = rulebook_.rule(node.op, node.location);
    return composites_.emplace(key, program_of_value(rulebook_, rule, types, operation.attributes)).first->second;
}

} // namespace

namespace {

void check_kernel(const Program &program) {
    if (!program.attributes.contains("kind")) return;
    const std::string why = why_illegal(program);
    if (!why.empty()) throw UserError(failed_action("run kernel '" + program.name + "'", why));
}

} // namespace

std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                             const RunOperation &run) {
    return interpret(program, inputs, rulebook, mode, run, {});
}

std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                             const RunOperation &run, const Observe &observe) {
    check_kernel(program);
    std::ranges::for_each(program.programs, check_kernel);
    const Extent::Bindings bindings = bind_extents(program, inputs);
    std::vector<Array> rounded = inputs;
    Arrays arguments;
    for (Array &input : rounded) {
        // Numbers that a dtype can represent do not change, including infinities.
        if (mode == Mode::stored && is_float(input.dtype))
            for (double &value : input.data) value = round_to(input.dtype, value, Overflow::format);
        arguments.push_back(&input);
    }
    return Interpreter(program, rulebook, mode, run, observe).run(program, arguments, bindings);
}

std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode) {
    return interpret(program, inputs, rulebook, mode, [](Operation &operation) { find_run(operation.op)(operation); });
}

} // namespace scalide

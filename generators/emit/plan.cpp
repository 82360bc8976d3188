#include "emit/plan.h"
#include "transforms/library/kernel_call.h"
#include <algorithm>

namespace scalide {

namespace {

class Planner {
public:
    Planner(const Program &program, const CallOrders &call_orders)
        : program_(program), call_orders_(call_orders), buffer_of_(program.values.size(), -1) {}

    Plan run() {
        plan_.name = program_.name;
        plan_.symbols = program_.symbols;
        add_arguments();
        add_outputs();
        add_state();
        add_prepared();
        place_overwriting();
        for (const Node &node : program_.nodes) add_step(node);
        for (const Result &result : program_.results) {
            const int wanted = result.argument >= 0 ? buffer_of_[program_.arguments[result.argument].value] : -1;
            internal_check(buffer_of_[result.value] >= 0 && (wanted < 0 || buffer_of_[result.value] == wanted),
                           "plan: result " + result.name + " is where its argument is");
        }
        return std::move(plan_);
    }

private:
    /// Merges leading axes until the rank fits the runtime. Only kernels read values between kernels, and kernels merge axes, too.
    static Type with_few_axes(Type type) {
        while (type.rank() > SCALIDE_MAX_RANK) {
            type.shape[1] = type.shape[0] * type.shape[1];
            type.shape.erase(type.shape.begin());
        }
        return type;
    }

    int add_buffer(ValueId value, Storage storage, int index) {
        const Value &row = program_.values[value];
        plan_.buffers.push_back({row.name, with_few_axes(row.type), storage, index, -1, -1, {row.part.kind, row.part.array(row.name)}});
        return buffer_of_[value] = static_cast<int>(plan_.buffers.size()) - 1;
    }

    // A scale belongs to the data argument before it.
    void add_argument(ValueId value, const std::string &name, const ArrayPart &part, ArgumentRole role) {
        const int count = static_cast<int>(plan_.arguments.size());
        if (part.is_scale()) {
            plan_.arguments.back().scale_buffer = add_buffer(value, Storage::scale, count - 1);
        } else {
            plan_.arguments.push_back({part.array(name), role, add_buffer(value, Storage::data, count), -1});
        }
        plan_.buffers.back().name = name;
        plan_.buffers.back().part = {part.kind, part.array(name)};
    }

    void add_arguments() {
        for (const Argument &argument : program_.arguments) {
            if (argument.initial || argument.supply == Supply::prepared) continue;
            const ArgumentRole read = argument.supply == Supply::constant ? ArgumentRole::constant : ArgumentRole::input;
            const ArgumentRole role = argument.inout ? ArgumentRole::inout : read;
            add_argument(argument.value, program_.value_name(argument.value), argument.part, role);
        }
    }

    void add_state() {
        for (const Argument &argument : program_.arguments) {
            if (!argument.initial) continue;
            add_argument(argument.value, program_.value_name(argument.value), argument.part, ArgumentRole::state);
            plan_.arguments.back().initial = *argument.initial;
        }
    }

    void add_prepared() {
        int count = 0;
        for (const Argument &argument : program_.arguments)
            if (argument.supply == Supply::prepared) add_buffer(argument.value, Storage::prepared, count++);
    }

    void add_outputs() {
        for (const Result &result : program_.results) {
            if (result.argument >= 0) continue;
            internal_check(buffer_of_[result.value] < 0, "plan: result " + result.name + " is a value of its own");
            add_argument(result.value, result.name, result.part, ArgumentRole::output);
        }
    }

    void place_overwriting() {
        for (const Result &result : program_.results) {
            if (result.argument < 0) continue;
            const ValueId argument = program_.arguments[result.argument].value;
            internal_check(buffer_of_[result.value] < 0 || result.value == argument,
                           "plan: " + result.name + " is made for one argument only");
            buffer_of_[result.value] = buffer_of_[argument];
        }
    }

    void touch(int buffer, int step) { plan_.buffers[buffer].last_step = std::max(plan_.buffers[buffer].last_step, step); }

    void write(int buffer, int step) {
        if (plan_.buffers[buffer].first_step < 0) plan_.buffers[buffer].first_step = step;
        touch(buffer, step);
    }

    // Chooses the buffers of a call's results: in place, already chosen for a result of the program, or new.
    void place_results(const Node &node, const Program &kernel, int step) {
        for (size_t r = 0; r < node.results.size(); r++) {
            const ValueId value = node.results[r];
            const int in_place = kernel.results[r].argument;
            if (in_place >= 0) {
                const int buffer = buffer_of_[node.operands[in_place]];
                internal_check(buffer_of_[value] < 0 || buffer_of_[value] == buffer, "plan: in-place result " + program_.value_name(value));
                buffer_of_[value] = buffer;
            } else if (buffer_of_[value] < 0) {
                const bool rank0 = program_.type(value).is_scalar();
                add_buffer(value, rank0 ? Storage::scalar : Storage::arena, rank0 ? plan_.scalar_count++ : -1);
            }
            write(buffer_of_[value], step);
        }
    }

    void add_step(const Node &node) {
        internal_check(node.op == "call", "plan: a fused program has calls only, got " + node.op);
        const std::string &name = node.attributes.at("program").word;
        const int index = static_cast<int>(plan_.steps.size());
        for (ValueId operand : node.operands) {
            internal_check(buffer_of_[operand] >= 0, "plan: operand " + program_.value_name(operand) + " is there");
            touch(buffer_of_[operand], index);
        }
        place_results(node, program_.program(name), index);
        PlanStep step{name, {}};
        for (const KernelOperand &operand : call_orders_.at(name)) step.operands.push_back(to_operand(node, operand));
        if (program_.program(name).attributes.contains("library")) step.matmul = matmul_of(node, program_.program(name));
        plan_.steps.push_back(std::move(step));
    }

    // Describes a kernel that is a single library call on its arguments.
    PlanMatmul matmul_of(const Node &call, const Program &kernel) const {
        const auto [whole, scales] = kernel_call(kernel.attributes.at("call"));
        const auto argument = [&](int number) { return number < 0 ? -1 : buffer_of_[call.operands.at(number)]; };
        const auto result = [&](int number) { return number < 0 ? -1 : buffer_of_[call.results.at(number)]; };
        return {.form = whole.form,
                .lhs = argument(whole.form.lhs.value),
                .rhs = argument(whole.form.rhs.value),
                .result = result(whole.result),
                .lhs_scales = argument(whole.form.lhs.scales.value),
                .rhs_scales = argument(whole.form.rhs.scales.value),
                .scales = scales,
                .factor = argument(whole.factor),
                .bias = argument(whole.bias),
                .addend = argument(whole.addend),
                .addend_factor = argument(whole.addend_factor),
                .result_factor = argument(whole.result_factor),
                .amax = result(whole.amax),
                .fast_accumulation = whole.fast_accumulation,
                .tf32 = whole.tf32};
    }

    PlanOperand to_operand(const Node &node, const KernelOperand &operand) {
        if (operand.kind == KernelOperand::Kind::symbol) {
            const auto found = std::ranges::find(plan_.symbols, operand.symbol, &Symbol::name);
            internal_check(found != plan_.symbols.end(), "plan: symbol " + operand.symbol);
            return {true, static_cast<int>(found - plan_.symbols.begin()), {}, false};
        }
        const bool argument = operand.kind == KernelOperand::Kind::argument;
        const ValueId value = argument ? node.operands.at(operand.index) : node.results.at(operand.index);
        return {false, buffer_of_[value], operand.type, operand.strided};
    }

    const Program &program_;
    const CallOrders &call_orders_;
    std::vector<int> buffer_of_; // by value
    Plan plan_;
};

} // namespace

Plan make_plan(const Program &fused, const CallOrders &call_orders) { return Planner(fused, call_orders).run(); }

} // namespace scalide

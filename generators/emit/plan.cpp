#include "emit/plan.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "transforms/fusion/split_regions.h"
#include "transforms/library/kernel_call.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

/// A program of calls, or a region, and the buffers of its values.
struct Scope {
    explicit Scope(const Program &of) : program(of), buffers(of.values.size(), -1) {}

    int &operator[](ValueId value) { return buffers[static_cast<size_t>(value)]; }

    const Program &program;
    std::vector<int> buffers; ///< by value; -1: none yet
};

class Planner {
public:
    Planner(const Program &program, const CallOrders &call_orders) : program_(program), call_orders_(call_orders), main_(program) {}

    Plan run() {
        plan_.name = program_.name;
        plan_.symbols = program_.symbols;
        add_arguments();
        add_outputs();
        add_state();
        add_prepared();
        add_nodes(main_);
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

    int add_buffer(Scope &scope, ValueId value, Storage storage, int index) {
        const Value &row = scope.program.values[static_cast<size_t>(value)];
        std::string name = row.name;
        for (int number = 1; !names_.insert(name).second; number++) name = row.name + "." + std::to_string(number);
        plan_.buffers.push_back({name, with_few_axes(row.type), storage, index, -1, -1, {row.part.kind, row.part.array(row.name)}});
        return scope[value] = static_cast<int>(plan_.buffers.size()) - 1;
    }

    /// Adds a buffer that only kernels see.
    int add_buffer(Scope &scope, ValueId value) {
        const bool is_scalar = scope.program.type(value).is_scalar();
        return add_buffer(scope, value, is_scalar ? Storage::scalar : Storage::arena, is_scalar ? plan_.scalar_count++ : -1);
    }

    // A scale belongs to the data argument before it.
    void add_argument(ValueId value, const std::string &name, const ArrayPart &part, ArgumentRole role) {
        const int count = static_cast<int>(plan_.arguments.size());
        if (part.is_scale()) {
            plan_.arguments.back().scale_buffer = add_buffer(main_, value, Storage::scale, count - 1);
        } else {
            plan_.arguments.push_back({part.array(name), role, add_buffer(main_, value, Storage::data, count), -1});
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
            if (argument.supply == Supply::prepared) add_buffer(main_, argument.value, Storage::prepared, count++);
    }

    void add_outputs() {
        for (const Result &result : program_.results) {
            if (result.argument >= 0) continue;
            internal_check(main_[result.value] < 0, "plan: result " + result.name + " is a value of its own");
            add_argument(result.value, result.name, result.part, ArgumentRole::output);
        }
    }

    /// Gives the new values of inout arguments the buffers of the arguments.
    static void place_overwriting(Scope &scope) {
        for (const Result &result : scope.program.results) {
            if (result.argument < 0) continue;
            const ValueId argument = scope.program.arguments[static_cast<size_t>(result.argument)].value;
            internal_check(scope[result.value] < 0 || result.value == argument, "plan: " + result.name + " is made for one argument only");
            scope[result.value] = scope[argument];
        }
    }

    /// Adds the steps of a program or of a straight region, whose arguments and chosen results have buffers.
    void add_nodes(Scope &scope) {
        place_overwriting(scope);
        add_nodes_of(scope);
        for (const Result &result : scope.program.results) {
            const int wanted = result.argument >= 0 ? scope[scope.program.arguments[static_cast<size_t>(result.argument)].value] : -1;
            internal_check(scope[result.value] >= 0 && (wanted < 0 || scope[result.value] == wanted),
                           "plan: result " + result.name + " is where its argument is");
        }
    }

    void add_nodes_of(Scope &scope) {
        for (const Node &node : scope.program.nodes) {
            if (is_collective(node.op))
                add_collective(scope, node);
            else if (node.regions.empty())
                add_step(scope, node);
            else if (node.op == "straight")
                add_straight(scope, node);
            else
                add_block(scope, node);
        }
    }

    void add_straight(Scope &scope, const Node &node) {
        Scope inner(*node.regions[0]);
        const Program &region = inner.program;
        for (size_t i = 0; i < node.operands.size(); i++) inner[region.arguments[i].value] = buffer(scope, node.operands[i]);
        for (size_t r = 0; r < node.results.size(); r++)
            if (region.results[r].argument < 0) inner[region.results[r].value] = scope[node.results[r]];
        add_nodes(inner);
        for (size_t r = 0; r < node.results.size(); r++) scope[node.results[r]] = inner[region.results[r].value];
    }

    static int buffer(Scope &scope, ValueId value) {
        internal_check(scope[value] >= 0, "plan: operand " + scope.program.value_name(value) + " is there");
        return scope[value];
    }

    int next_step() const { return static_cast<int>(plan_.steps.size()); }

    /// Gives each result of a loop or branch its buffer, which is in use from the first step of the block on.
    void place_block_results(Scope &scope, const Node &node, PlanBlock &block) {
        for (const ValueId result : node.results) {
            if (scope[result] < 0) add_buffer(scope, result);
            write(scope[result], block.first_step);
            block.results.push_back(scope[result]);
        }
    }

    void add_block(Scope &scope, const Node &node) {
        const size_t index = plan_.blocks.size(), known = plan_.buffers.size();
        plan_.blocks.push_back({.name = node.op + " " + scope.program.value_name(node.results[0]), .location = node.location});
        PlanBlock block = plan_.blocks.back();
        block.parent = block_;
        block_ = static_cast<int>(index);
        block.first_step = next_step();
        std::vector<int> read; // buffers that the block itself reads
        for (const ValueId operand : node.operands) read.push_back(buffer(scope, operand));
        place_block_results(scope, node, block);
        if (find_region_kind(node.op)->is_loop)
            add_loop(scope, node, block);
        else
            add_branches(scope, node, block);
        block.end_step = next_step();
        end_lives(block, known, read);
        block_ = block.parent;
        plan_.blocks[index] = std::move(block);
    }

    /// Arrays from outside, and arrays that the block moves, are in use up to the end of the block.
    void end_lives(const PlanBlock &block, size_t known, const std::vector<int> &read) {
        const int last = std::max(block.end_step - 1, block.first_step);
        for (const int each : read) touch(each, last);
        for (const int each : block.results) touch(each, last);
        for (size_t i = 0; i < known; i++)
            if (plan_.buffers[i].last_step >= block.first_step) touch(static_cast<int>(i), last);
        const auto live = [&](int each) {
            if (each < 0) return;
            plan_.buffers[static_cast<size_t>(each)].first_step = block.first_step;
            touch(each, last);
        };
        for (const PlanRow &row : block.rows) live(row.buffer);
        for (const PlanCarry &carry : block.carries)
            if (carry.before != carry.after) live(carry.before);
        live(block.step);
    }

    void add_loop(Scope &scope, const Node &node, PlanBlock &block) {
        const LoopView view(node);
        Scope inner(*node.regions.back());
        const Program &body = inner.program;
        for (size_t i = 0; i < body.arguments.size(); i++) {
            const ValueId argument = body.arguments[i].value;
            const int operand = view.operands[i] < 0 ? -1 : buffer(scope, node.operands[static_cast<size_t>(view.operands[i])]);
            if (body.arguments[i].supply == Supply::step) {
                if (block.step < 0) block.step = add_buffer(inner, argument);
                inner[argument] = block.step;
            } else if (body.arguments[i].supply == Supply::each) {
                block.rows.push_back({add_buffer(inner, argument), operand, false});
            } else if (view.carries[i] < 0) {
                inner[argument] = operand;
            } else {
                const Result &result = body.results[static_cast<size_t>(view.carries[i])];
                const int after = scope[node.results[static_cast<size_t>(view.carries[i])]];
                inner[argument] = is_updated_in_place(body, result) ? after : add_buffer(inner, argument);
                inner[result.value] = after;
                block.carries.push_back({operand, inner[argument], after});
            }
        }
        for (size_t r = static_cast<size_t>(view.carry_count); r < body.results.size(); r++)
            block.rows.push_back({add_buffer(inner, body.results[r].value), scope[node.results[r]], true});
        if (node.op == "while")
            add_test(node, inner, block);
        else
            add_steps(scope, node, block);
        add_nodes_of(inner);
    }

    void add_steps(Scope &scope, const Node &node, PlanBlock &block) {
        if (const auto length = node.attributes.find("length"); length != node.attributes.end()) block.length = length->second.integer;
        if (has_flag(node, "count")) block.condition = buffer(scope, node.operands[0]);
        block.reverse = has_flag(node, "reverse");
    }

    /// The test of a `while` has the operands of the body.
    void add_test(const Node &node, Scope &body, PlanBlock &block) {
        block.kind = BlockKind::while_loop;
        const auto most = node.attributes.find("max_steps");
        if (most != node.attributes.end()) block.most_steps = most->second.integer.value();
        Scope test(*node.regions[0]);
        for (size_t i = 0; i < test.program.arguments.size(); i++)
            test[test.program.arguments[i].value] = buffer(body, body.program.arguments[i].value);
        add_nodes_of(test);
        block.condition = buffer(test, test.program.results[0].value);
        block.test_end = next_step();
    }

    void add_branches(Scope &scope, const Node &node, PlanBlock &block) {
        block.kind = BlockKind::switch_branch;
        block.condition = buffer(scope, node.operands[0]);
        for (const Region &region : node.regions) {
            Scope branch(*region);
            for (size_t i = 0; i < region->arguments.size(); i++) branch[region->arguments[i].value] = buffer(scope, node.operands[i + 1]);
            for (size_t r = 0; r < node.results.size(); r++) branch[region->results[r].value] = scope[node.results[r]];
            add_nodes_of(branch);
            block.branch_ends.push_back(next_step());
        }
    }

    void touch(int buffer, int step) { plan_.buffers[buffer].last_step = std::max(plan_.buffers[buffer].last_step, step); }

    void write(int buffer, int step) {
        if (plan_.buffers[buffer].first_step < 0) plan_.buffers[buffer].first_step = step;
        touch(buffer, step);
    }

    // Chooses the buffers of a call's results: in place, already chosen for a result of the program, or new.
    void place_results(Scope &scope, const Node &node, const Program &kernel, int step) {
        for (size_t r = 0; r < node.results.size(); r++) {
            const ValueId value = node.results[r];
            const int in_place = kernel.results[r].argument;
            if (in_place >= 0) {
                const int buffer = scope[node.operands[in_place]];
                internal_check(scope[value] < 0 || scope[value] == buffer, "plan: in-place result " + scope.program.value_name(value));
                scope[value] = buffer;
            } else if (scope[value] < 0) {
                add_buffer(scope, value);
            }
            write(scope[value], step);
        }
    }

    void add_step(Scope &scope, const Node &node) {
        internal_check(node.op == "call", "plan: a fused program has calls only, got " + node.op);
        const std::string &name = node.attributes.at("program").word;
        const int index = next_step();
        for (const ValueId operand : node.operands) touch(buffer(scope, operand), index);
        place_results(scope, node, program_.program(name), index);
        PlanStep step{name, {}};
        for (const ValueId result : node.results) step.writes.push_back({scope.program.value_name(result), node.location});
        for (const KernelOperand &operand : call_orders_.at(name)) step.operands.push_back(to_operand(scope, node, operand));
        if (program_.program(name).attributes.contains("library")) step.matmul = matmul_of(scope, node, program_.program(name));
        plan_.steps.push_back(std::move(step));
    }

    void add_collective(Scope &scope, const Node &node) {
        const int index = next_step();
        PlanCollective collective{.kind = node.op == "exchange" ? CollectiveKind::exchange : CollectiveKind::collect,
                                  .group = symbol_index(to_string(node.attributes.at("group").integer)),
                                  .arrays = {},
                                  .location = node.location};
        for (size_t i = 0; i < node.results.size(); i++) {
            const ValueId from = node.operands[i], to = node.results[i];
            touch(buffer(scope, from), index);
            if (scope[to] < 0) add_buffer(scope, to);
            write(scope[to], index);
            collective.arrays.emplace_back(scope[from], scope[to]);
        }
        plan_.steps.push_back({node.op + " " + scope.program.value_name(node.results[0]), {}, {}, std::move(collective)});
    }

    int symbol_index(const std::string &name) const {
        const auto found = std::ranges::find(plan_.symbols, name, &Symbol::name);
        internal_check(found != plan_.symbols.end(), "plan: symbol " + name);
        return static_cast<int>(found - plan_.symbols.begin());
    }

    // Describes a kernel that is a single library call on its arguments.
    PlanMatmul matmul_of(Scope &scope, const Node &call, const Program &kernel) const {
        const auto [whole, scales] = kernel_call(kernel.attributes.at("call"));
        const auto argument = [&](int number) { return number < 0 ? -1 : scope[call.operands.at(number)]; };
        const auto result = [&](int number) { return number < 0 ? -1 : scope[call.results.at(number)]; };
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

    PlanOperand to_operand(Scope &scope, const Node &node, const KernelOperand &operand) {
        if (operand.kind == KernelOperand::Kind::symbol) {
            return {true, symbol_index(operand.symbol), {}, false};
        }
        const bool argument = operand.kind == KernelOperand::Kind::argument;
        const ValueId value = argument ? node.operands.at(operand.index) : node.results.at(operand.index);
        return {false, scope[value], operand.type, operand.strided};
    }

    const Program &program_;
    const CallOrders &call_orders_;
    Scope main_;
    std::set<std::string> names_; ///< of the buffers
    int block_ = -1;              ///< the block whose steps are added; -1: none
    Plan plan_;
};

} // namespace

Plan make_plan(const Program &fused, const CallOrders &call_orders) { return Planner(fused, call_orders).run(); }

} // namespace scalide

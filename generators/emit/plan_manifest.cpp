#include "emit/plan_text.h"
#include "ir/text.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

namespace scalide {

namespace {

using Json = nlohmann::ordered_json;

std::string name_of(Storage storage) {
    switch (storage) {
    case Storage::data: return "data";
    case Storage::scale: return "scale";
    case Storage::arena: return "arena";
    case Storage::scalar: return "scalar";
    case Storage::prepared: return "prepared";
    }
    throw InternalError("internal error: a storage of unknown kind");
}

std::string name_of(ArgumentRole role) {
    switch (role) {
    case ArgumentRole::input: return "input";
    case ArgumentRole::output: return "output";
    case ArgumentRole::inout: return "inout";
    case ArgumentRole::state: return "state";
    case ArgumentRole::constant: return "constant";
    }
    throw InternalError("internal error: a role of unknown kind");
}

Json to_json(const Extent &extent) { return extent.is_static() ? Json(extent.value()) : Json(to_string(extent)); }

Json shape_of(const Type &type) {
    Json shape = Json::array();
    for (const Extent &extent : type.shape) shape.push_back(to_json(extent));
    return shape;
}

/// Adds what is known of the node that computes a tensor, and the line of the program. `source` is the line of the user.
void add_origin(Json &row, const Origin &origin) {
    if (!origin.op.empty()) row["operator"] = origin.op;
    if (!origin.scope.empty()) row["scope"] = origin.scope;
    if (origin.direction != Direction::none) row["direction"] = to_string(origin.direction);
    if (origin.location.line == 0) return;
    row["line"] = origin.location.line;
    row["source"] = short_location(origin.location);
}

Json buffers_of(const Plan &plan) {
    Json rows = Json::array();
    for (const PlanBuffer &buffer : plan.buffers) {
        rows.push_back({{"name", buffer.name},
                        {"dtype", to_string(buffer.type.dtype)},
                        {"shape", shape_of(buffer.type)},
                        {"storage", name_of(buffer.storage)},
                        {"index", buffer.index},
                        {"first_step", buffer.first_step},
                        {"last_step", buffer.last_step}});
        if (!buffer.origin.tensor.empty() && buffer.origin.tensor != buffer.name) rows.back()["of"] = buffer.origin.tensor;
        add_origin(rows.back(), buffer.origin);
    }
    return rows;
}

Json matmul_of(const Plan &plan, const PlanMatmul &matmul) {
    const MatmulForm &form = matmul.form;
    const auto name = [&](int buffer) { return plan.buffers[buffer].name; };
    Json row{{"lhs", name(matmul.lhs)}, {"rhs", name(matmul.rhs)}, {"result", name(matmul.result)}, {"batch", to_string(form.batch)},
             {"m", to_string(form.m)},  {"n", to_string(form.n)},  {"k", to_string(form.k)}};
    const std::pair<const char *, int> optional[] = {{"lhs_scales", matmul.lhs_scales},
                                                     {"rhs_scales", matmul.rhs_scales},
                                                     {"factor", matmul.factor},
                                                     {"bias", matmul.bias},
                                                     {"addend", matmul.addend},
                                                     {"addend_factor", matmul.addend_factor},
                                                     {"result_factor", matmul.result_factor},
                                                     {"amax", matmul.amax}};
    for (const auto &[word, buffer] : optional)
        if (buffer >= 0) row[word] = name(buffer);
    if (matmul.scales != ScaleLayouts()) row["scales"] = {to_string(matmul.scales.lhs), to_string(matmul.scales.rhs)};
    if (matmul.fast_accumulation) row["accumulation"] = "fast";
    if (matmul.tf32) row["precision"] = "tf32";
    return row;
}

Json steps_of(const Plan &plan) {
    Json rows = Json::array();
    for (const PlanStep &step : plan.steps) {
        Json buffers = Json::array(), symbols = Json::array();
        for (const PlanOperand &operand : step.operands) {
            if (operand.is_symbol) {
                symbols.push_back(plan.symbols[operand.index].name);
            } else {
                buffers.push_back(plan.buffers[operand.index].name);
            }
        }
        rows.push_back({{"kernel", step.kernel}, {"buffers", buffers}, {"symbols", symbols}});
        if (step.collective)
            for (const auto &[from, to] : step.collective->arrays)
                rows.back()["collective"].push_back({{"from", plan.buffers[from].name}, {"to", plan.buffers[to].name}});
        for (const Origin &origin : step.writes) {
            rows.back()["writes"].push_back({{"tensor", origin.tensor}});
            add_origin(rows.back()["writes"].back(), origin);
        }
        if (step.matmul) rows.back()["matmul"] = matmul_of(plan, *step.matmul);
    }
    return rows;
}

std::string name_of(BlockKind kind) {
    switch (kind) {
    case BlockKind::loop: return "loop";
    case BlockKind::while_loop: return "while";
    case BlockKind::switch_branch: return "switch";
    }
    throw InternalError("internal error: a block of unknown kind");
}

/// Adds the members of a block that its kind has.
void add_control(Json &row, const Plan &plan, const PlanBlock &block) {
    if (block.length) row["length"] = to_json(*block.length);
    if (block.condition >= 0) row["condition"] = plan.buffers[block.condition].name;
    if (block.step >= 0) row["step"] = plan.buffers[block.step].name;
    if (block.reverse) row["reverse"] = true;
    if (block.most_steps > 0) row["most_steps"] = block.most_steps;
    if (block.kind == BlockKind::while_loop) row["test_end"] = block.test_end;
    if (block.kind == BlockKind::switch_branch) row["branch_ends"] = block.branch_ends;
}

Json block_of(const Plan &plan, const PlanBlock &block) {
    const auto name = [&](int buffer) { return plan.buffers[buffer].name; };
    Json row{{"name", block.name},
             {"kind", name_of(block.kind)},
             {"parent", block.parent},
             {"first_step", block.first_step},
             {"end_step", block.end_step}};
    if (block.location.line > 0) row["line"] = block.location.line;
    add_control(row, plan, block);
    for (const PlanRow &moved : block.rows)
        row["rows"].push_back({{"buffer", name(moved.buffer)}, {"of", name(moved.of)}, {"is_written", moved.is_written}});
    for (const PlanCarry &carry : block.carries)
        row["carries"].push_back({{"init", name(carry.init)}, {"before", name(carry.before)}, {"after", name(carry.after)}});
    for (const int result : block.results) row["results"].push_back(name(result));
    return row;
}

using Uses = std::map<std::string, std::vector<CardUse>>;

Json program_of(const BuiltForm &built, const Uses &uses) {
    const Plan &plan = built.plan;
    Json manifest{{"name", plan.name},
                  {"device", device_name(plan.device)},
                  {"target", plan.target},
                  {"numerics", plan.numerics},
                  {"hash", plan.hash}};
    if (!plan.doc.empty()) manifest["doc"] = plan.doc;
    for (const Symbol &symbol : plan.symbols) {
        manifest["symbols"].push_back(
            {{"name", symbol.name}, {"minimum", symbol.minimum}, {"maximum", symbol.maximum}, {"multiple", symbol.multiple}});
    }
    for (const Requirement &requirement : plan.requirements)
        manifest["requirements"].push_back({{"name", requirement.name}, {"rule", to_string(requirement)}});
    for (const PlanArgument &argument : plan.arguments) {
        const Type &type = plan.buffers[argument.data_buffer].type;
        manifest["arguments"].push_back({{"name", argument.name},
                                         {"role", name_of(argument.role)},
                                         {"dtype", to_string(type.dtype)},
                                         {"shape", shape_of(type)},
                                         {"scaled", argument.scale_buffer >= 0}});
        if (argument.role == ArgumentRole::state) manifest["arguments"].back()["initial"] = argument.initial;
    }
    manifest["buffers"] = buffers_of(plan);
    manifest["steps"] = steps_of(plan);
    for (const PlanBlock &block : plan.blocks) manifest["blocks"].push_back(block_of(plan, block));
    for (const auto &[name, kernel] : built.kernels) {
        const Program &text = built.kernel(name);
        manifest["kernels"].push_back(
            {{"name", name}, {"kind", text.attributes.at("kind").word}, {"symbol", kernel.symbol}, {"text", to_string(canonical(text))}});
        const auto used = uses.find(kernel.symbol);
        if (used != uses.end() && !used->second.empty()) manifest["kernels"].back()["launches"] = to_json(used->second);
    }
    return manifest;
}

/// Returns the entry of a form of a machine, with its condition.
Json form_of(const MachineForms<BuiltForm> &machine, const BuiltForm &built, const Uses &uses) {
    Json row = program_of(built, uses);
    if (!built.form.when.cards.empty()) row["cards"] = built.form.when.cards;
    if (!built.form.when.values.empty()) row["values"] = built.form.when.values;
    if (!machine.cpu.empty()) row["cpu"] = machine.cpu;
    return row;
}

void add_variants(Json &program, const MachineForms<BuiltForm> &machine, const Uses &uses) {
    for (const BuiltForm &variant : machine.variants) program["variants"].push_back(form_of(machine, variant, uses));
}

void add_prepare(Json &main, const MachineForms<BuiltForm> &machine, const Uses &uses) {
    if (machine.prepare) main["prepare"] = form_of(machine, *machine.prepare, uses);
}

/// Returns the entry of a program. Its variants are for some GPUs or values of symbols, and for other CPUs.
Json machines_of(const ProgramForms<BuiltForm> &machines, const Uses &uses) {
    Json program = form_of(machines[0], machines[0].main, uses);
    add_variants(program, machines[0], uses);
    add_prepare(program, machines[0], uses);
    for (const MachineForms<BuiltForm> &machine : machines | std::views::drop(1)) {
        Json main = form_of(machine, machine.main, uses);
        add_prepare(main, machine, uses);
        program["variants"].push_back(std::move(main));
        add_variants(program, machine, uses);
    }
    return program;
}

} // namespace

std::string plan_manifest(const std::string &library, const BuiltPrograms &programs, const Uses &uses) {
    Json manifest{{"format", 1}, {"name", library}, {"programs", Json::array()}};
    for (const ProgramForms<BuiltForm> &machines : programs) {
        Json &list = manifest["programs"];
        (machines[0].main.plan.statistics.empty() ? list.emplace_back() : list.back()["statistics"]) = machines_of(machines, uses);
    }
    return manifest.dump(1) + "\n";
}

} // namespace scalide

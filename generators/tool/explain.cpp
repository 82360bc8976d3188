#include "ir/words.h"
#include "tool/common.h"
#include "tool/tables.h"
#include "transforms/numerics/numerics_report.h"
#include "transforms/pipeline.h"
#include <array>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

constexpr std::array kinds = {"none", "values", "bound", "state", "static", "argument", "propagated", "blocks"};
constexpr std::array places = {"argument", "operand", "node result", "result", "node"};

using Row = std::vector<std::string>;

std::string words(const ScaleOrigin &scale) {
    switch (scale.kind) {
    case ScaleOrigin::Kind::none: return "none";
    case ScaleOrigin::Kind::values: return "current (from its data, " + scale.op + ")";
    case ScaleOrigin::Kind::bound: return "current (from a bound of its data, " + scale.op + ")";
    case ScaleOrigin::Kind::state: return "delayed (from earlier runs, state " + scale.op + ")";
    case ScaleOrigin::Kind::fixed: return "static (from the calibration)";
    case ScaleOrigin::Kind::argument: return "given by the caller";
    case ScaleOrigin::Kind::propagated: return "propagated";
    case ScaleOrigin::Kind::blocks: return "one per " + described_block(scale.block) + " (" + std::string(to_string(scale.format)) + ")";
    }
    return "";
}

/// Roles of the arguments by name.
using Roles = std::map<std::string, std::string>;

Roles roles_of(const Program &program) {
    Roles roles;
    for (const Argument &argument : program.arguments)
        roles[program.value_name(argument.value)] = argument.inout ? "inout" : argument.supply == Supply::constant ? "constant" : "input";
    return roles;
}

/// Returns the role of an argument. A state of the policy is no argument of the source program.
std::string role_of(const NumericsDecision &decision, const Roles &roles) {
    if (decision.place != PolicyRule::Place::argument) return "";
    const auto role = roles.find(decision.tensor);
    return role == roles.end() ? "state" : role->second;
}

std::string use_of(const NumericsDecision &decision, const Roles &roles) {
    if (!decision.use.empty()) return decision.use;
    const std::string role = role_of(decision, roles), place = places[static_cast<size_t>(decision.place)];
    return role.empty() || role == "input" ? place : role + " " + place;
}

Row row_of(const NumericsDecision &decision, const Roles &roles) {
    return {name_to_string(decision.tensor),         use_of(decision, roles),
            std::string(to_string(decision.stored)), words(decision.scale),
            short_place(decision.row, "default"),    short_place(decision.source, "-")};
}

void print_table(const std::vector<NumericsDecision> &decisions, const Roles &roles) {
    std::vector<Row> rows{{"tensor", "use", "format", "scale", "policy", "source"}};
    for (const NumericsDecision &decision : decisions) rows.push_back(row_of(decision, roles));
    fmt::print("{}", in_columns(rows));
    for (const NumericsDecision &decision : decisions) {
        if (!decision.is_unsafe()) continue;
        const auto words = decision.is_policys()
                               ? std::pair("warning", "without a scale, so small values become zero. Add 'scale: {by: max}' to the rule")
                               : std::pair("note", "by the program itself without a scale, so small values become zero");
        fmt::print("{}: {} ({}) is converted to {} {}\n", words.first, name_to_string(decision.tensor), use_of(decision, roles),
                   to_string(decision.stored), words.second);
    }
}

void print_json(const std::vector<NumericsDecision> &decisions, const Roles &roles) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const NumericsDecision &decision : decisions) {
        const std::string role = role_of(decision, roles);
        const bool is_state = decision.scale.kind == ScaleOrigin::Kind::state;
        const bool has_operator = !is_state && !decision.scale.op.empty(), has_blocks = !decision.scale.block.empty();
        list.push_back({{"tensor", decision.tensor},
                        {"place", places[static_cast<size_t>(decision.place)]},
                        {"use", decision.use},
                        {"role", role.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(role)},
                        {"scope", decision.scope},
                        {"format", to_string(decision.stored)},
                        {"scale", kinds[static_cast<size_t>(decision.scale.kind)]},
                        {"scale_operator", has_operator ? nlohmann::ordered_json(decision.scale.op) : nullptr},
                        {"scale_state", is_state ? nlohmann::ordered_json(decision.scale.op) : nullptr},
                        {"scale_block", has_blocks ? nlohmann::ordered_json(decision.scale.block) : nullptr},
                        {"scale_format", has_blocks ? nlohmann::ordered_json(to_string(decision.scale.format)) : nullptr},
                        {"policy", place_json(decision.row)},
                        {"source", place_json(decision.source)},
                        {"safe", !decision.is_unsafe()}});
    }
    // A file name may be invalid UTF-8.
    fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

} // namespace

void add_explain(CLI::App &app) {
    struct ExplainCommand {
        ProgramOptions program;
        bool json = false;
    };
    const auto command = std::make_shared<ExplainCommand>();
    CLI::App *explain = app.add_subcommand(
        "explain", "Print the decisions of a policy: the format of each tensor, the origin of its scale, and the rule that decides.");
    command->program.add_to(*explain)->required();
    explain->add_flag("--json", command->json, "Print a JSON list of objects, with full paths.");
    explain->callback([command] {
        const Rulebook rulebook = command->program.load_rulebook();
        const Program program = command->program.load_program(rulebook);
        std::vector<NumericsDecision> decisions;
        to_formats(program, rulebook, command->program.load_numerics(), &decisions);
        (command->json ? print_json : print_table)(decisions, roles_of(program));
    });
}

} // namespace scalide

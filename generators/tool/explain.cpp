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

Row row_of(const NumericsDecision &decision) {
    const std::string use = decision.use.empty() ? places[static_cast<size_t>(decision.place)] : decision.use;
    return {name_to_string(decision.tensor),         use,
            std::string(to_string(decision.stored)), words(decision.scale),
            short_place(decision.row, "default"),    short_place(decision.source, "-")};
}

void print_table(const std::vector<NumericsDecision> &decisions) {
    std::vector<Row> rows{{"tensor", "use", "format", "scale", "policy", "source"}};
    for (const NumericsDecision &decision : decisions) rows.push_back(row_of(decision));
    fmt::print("{}", in_columns(rows));
    for (const NumericsDecision &decision : decisions) {
        if (!decision.is_unsafe()) continue;
        const auto words = decision.is_policys()
                               ? std::pair("warning", "without a scale, so small values become zero. Add 'scale: {by: max}' to the rule")
                               : std::pair("note", "by the program itself without a scale, so small values become zero");
        fmt::print("{}: {} ({}) is converted to {} {}\n", words.first, row_of(decision)[0], row_of(decision)[1], to_string(decision.stored),
                   words.second);
    }
}

void print_json(const std::vector<NumericsDecision> &decisions) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const NumericsDecision &decision : decisions) {
        const bool is_state = decision.scale.kind == ScaleOrigin::Kind::state;
        const bool has_operator = !is_state && !decision.scale.op.empty(), has_blocks = !decision.scale.block.empty();
        list.push_back({{"tensor", decision.tensor},
                        {"place", places[static_cast<size_t>(decision.place)]},
                        {"use", decision.use},
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
        (command->json ? print_json : print_table)(decisions);
    });
}

} // namespace scalide

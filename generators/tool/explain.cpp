#include "ir/words.h"
#include "rulebook/nearest.h"
#include "tool/common.h"
#include "tool/scale_words.h"
#include "tool/table_filter.h"
#include "tool/tables.h"
#include "transforms/numerics/numerics_report.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <set>

namespace scalide {

namespace {

constexpr std::array kinds = {"none", "values", "bound", "state", "static", "argument", "propagated", "blocks"};
constexpr std::array places = {"argument", "operand", "node result", "result", "node"};

using Row = std::vector<std::string>;

} // namespace

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

namespace {

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
            short_place(decision.row, "default"),    std::string(to_string(decision.direction)),
            scope_or_dash(decision.scope),           short_place(decision.source, "-")};
}

void print_rows(std::vector<Row> rows) {
    drop_unused_columns(rows);
    fmt::print("{}", in_columns(rows));
}

/// Returns one warning for all rules with `compute`: they round most arrays of a program.
std::string unsafe_arithmetic(const std::vector<NumericsDecision> &decisions, Dtype dtype) {
    std::set<std::string> tensors;
    for (const NumericsDecision &decision : decisions)
        if (decision.computes && decision.is_unsafe()) tensors.insert(decision.tensor);
    return fmt::format("warning: {} arrays are computed in {} without a scale, so small values become zero, and large values overflow. "
                       "Train with a loss scaler",
                       tensors.size(), to_string(dtype));
}

std::string unsafe_conversion(const NumericsDecision &decision, const Roles &roles) {
    const auto words = decision.is_policys() ? std::pair("warning", "without a scale, so small values become zero, and large values "
                                                                    "overflow or saturate. Add 'scale: {by: max}' to the rule")
                                             : std::pair("note", "by the program itself without a scale, so small values become zero");
    return fmt::format("{}: {} ({}) is converted to {} {}", words.first, name_to_string(decision.tensor), use_of(decision, roles),
                       to_string(decision.stored), words.second);
}

/// Returns for each decision the line that follows the table, or an empty text. The first decision of a rule with `compute` has the line of
/// all of them.
std::vector<std::string> notes_of(const std::vector<NumericsDecision> &decisions, const Roles &roles) {
    std::vector<std::string> notes;
    bool has_arithmetic = false;
    for (const NumericsDecision &decision : decisions) {
        notes.emplace_back();
        if (!decision.is_unsafe()) continue;
        if (decision.computes) {
            if (!has_arithmetic) notes.back() = unsafe_arithmetic(decisions, decision.stored);
            has_arithmetic = true;
        } else if (decision.is_policys() || size_of(decision.stored) == 1) { // a program in f16 rounds most of its arrays
            notes.back() = unsafe_conversion(decision, roles);
        }
    }
    return notes;
}

void print_table(const std::vector<NumericsDecision> &decisions, const Roles &roles) {
    std::vector<Row> rows{{"tensor", "use", "format", "scale", "policy", "direction", "scope", "source"}};
    for (const NumericsDecision &decision : decisions) rows.push_back(row_of(decision, roles));
    print_rows(std::move(rows));
    for (const std::string &note : notes_of(decisions, roles))
        if (!note.empty()) fmt::print("{}\n", note);
}

/// Joins the texts of the operands of a matmul. Equal texts occur once if `merges`.
template<class Text>
std::string joined_texts(const MatmulDecision &matmul, const char *separator, bool merges, const Text &text) {
    Row texts;
    for (const OperandDecision &operand : matmul.operands)
        if (const std::string each = text(operand); !merges || !std::ranges::count(texts, each)) texts.push_back(each);
    return joined(texts, separator);
}

/// The sign between the operands of a matmul, as in Python, or of a convolution.
const char *sign_of(const MatmulDecision &matmul) { return matmul.op.starts_with("conv_") ? " * " : " @ "; }

Row row_of(const MatmulDecision &matmul) {
    return {
        name_to_string(matmul.tensor),
        joined_texts(matmul, sign_of(matmul), false, [](const OperandDecision &operand) { return name_to_string(operand.tensor); }),
        joined_texts(matmul, sign_of(matmul), false, [](const OperandDecision &operand) { return std::string(to_string(operand.stored)); }),
        joined_texts(matmul, "; ", true, [](const OperandDecision &operand) { return words(operand.scale); }),
        joined_texts(matmul, "; ", true, [](const OperandDecision &operand) { return short_place(operand.row, "default"); }),
        joined_texts(matmul, "; ", true, [](const OperandDecision &operand) { return operand.why; }),
        std::string(to_string(matmul.direction)),
        scope_or_dash(matmul.scope),
        short_place(matmul.source, "-")};
}

void print_matmuls(const std::vector<MatmulDecision> &matmuls) {
    std::vector<Row> rows{{"tensor", "operands", "formats", "scale", "policy", "because of", "direction", "scope", "source"}};
    for (const MatmulDecision &matmul : matmuls) rows.push_back(row_of(matmul));
    print_rows(std::move(rows));
}

nlohmann::ordered_json scale_json(const ScaleOrigin &scale) {
    const bool is_state = scale.kind == ScaleOrigin::Kind::state;
    const bool has_operator = !is_state && !scale.op.empty(), has_blocks = !scale.block.empty();
    return {{"scale", kinds[static_cast<size_t>(scale.kind)]},
            {"scale_operator", has_operator ? nlohmann::ordered_json(scale.op) : nullptr},
            {"scale_state", is_state ? nlohmann::ordered_json(scale.op) : nullptr},
            {"scale_block", has_blocks ? nlohmann::ordered_json(scale.block) : nullptr},
            {"scale_format", has_blocks ? nlohmann::ordered_json(to_string(scale.format)) : nullptr},
            {"scale_text", words(scale)}};
}

/// A file name may be invalid UTF-8.
void print(const nlohmann::ordered_json &list) {
    fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_json(const std::vector<MatmulDecision> &matmuls) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const MatmulDecision &matmul : matmuls) {
        nlohmann::ordered_json operands = nlohmann::ordered_json::array();
        for (const OperandDecision &operand : matmul.operands) {
            operands.push_back({{"tensor", operand.tensor}, {"format", to_string(operand.stored)}});
            operands.back().update(scale_json(operand.scale));
            operands.back().update({{"policy", place_json(operand.row)}, {"because_of", operand.why}});
        }
        list.push_back({{"tensor", matmul.tensor},
                        {"operator", matmul.op},
                        {"direction", direction_json(matmul.direction)},
                        {"scope", matmul.scope},
                        {"operands", operands},
                        {"source", place_json(matmul.source)}});
    }
    print(list);
}

void print_json(const std::vector<NumericsDecision> &decisions, const Roles &roles) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const std::vector<std::string> notes = notes_of(decisions, roles);
    for (const NumericsDecision &decision : decisions) {
        const std::string role = role_of(decision, roles), &note = notes[list.size()];
        list.push_back({{"tensor", decision.tensor},
                        {"place", places[static_cast<size_t>(decision.place)]},
                        {"use", decision.use},
                        {"role", role.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(role)},
                        {"direction", direction_json(decision.direction)},
                        {"scope", decision.scope},
                        {"format", to_string(decision.stored)}});
        list.back().update(scale_json(decision.scale));
        list.back().update({{"policy", place_json(decision.row)},
                            {"source", place_json(decision.source)},
                            {"safe", !decision.is_unsafe()},
                            {"note", note.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(note)}});
    }
    print(list);
}

} // namespace

void add_explain(CLI::App &app) {
    struct ExplainCommand {
        ProgramOptions program;
        TableFilter filter;
        bool json = false, matmuls = false;
    };
    const auto command = std::make_shared<ExplainCommand>();
    CLI::App *explain = app.add_subcommand(
        "explain", "Print the decisions of a policy: the format of each tensor, the origin of its scale, and the rule that decides.");
    command->program.add_to(*explain)->required();
    explain->add_flag("--json", command->json, "Print a JSON list of objects, with full paths.");
    explain->add_flag(
        "--matmuls", command->matmuls,
        "Print one row per matmul and convolution instead: the formats of its operands, and the conditions of the rule that decides.");
    command->filter.add_to(*explain);
    explain->callback([command] {
        const Rulebook rulebook = command->program.load_rulebook();
        const Program program = command->program.load_program(rulebook);
        const CompileOptions options{.policy = command->program.load_numerics(), .checks_types = false, .takes_notes = true};
        const PolicyDecisions decisions = run_passes(program, rulebook, options, Stage::formats).notes.decisions;
        if (command->matmuls) {
            std::vector<MatmulDecision> matmuls = decisions.all_matmuls();
            command->filter.apply(matmuls);
            command->json ? print_json(matmuls) : print_matmuls(matmuls);
        } else {
            std::vector<NumericsDecision> sites = decisions.all_sites();
            command->filter.apply(sites);
            command->json ? print_json(sites, roles_of(program)) : print_table(sites, roles_of(program));
        }
    });
}

} // namespace scalide

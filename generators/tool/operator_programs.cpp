#include "tool/operator_programs.h"
#include "rulebook/check_operands.h"
#include "rulebook/nearest.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace scalide {

namespace {

bool is_plain_only(const Rule &rule) { return rule.is_base && !rule.has_scale() && !rule.is_plain(); }

/// Returns true if the operator has array operands and no sub-program.
bool is_callable(const Rule &rule) {
    const auto is_program = [](const OperandSpec &spec) { return spec.operand_class == OperandClass::program; };
    const auto is_program_attribute = [](const AttributeSpec &spec) { return spec.type == "program"; };
    return !rule.operands.empty() && !rule.check.cases.empty() && std::ranges::none_of(rule.operands, is_program) &&
           std::ranges::none_of(rule.attributes, is_program_attribute);
}

std::vector<const Rule *> selected_rules(const Rulebook &rulebook, const std::vector<std::string> &operators) {
    std::vector<const Rule *> rules;
    std::vector<std::string> names;
    for (const Rule *rule : rulebook.rules())
        if (is_callable(*rule)) names.push_back(rule->op);
    for (const std::string &op : operators) {
        if (op == "all") {
            for (const std::string &name : names) rules.push_back(rulebook.find(name));
        } else if (std::ranges::find(names, op) != names.end()) {
            rules.push_back(rulebook.find(op));
        } else {
            const char *const which = "'scalide rules' lists the operators; --operators takes those that have array operands";
            throw UserError(unknown_name({}, "operator for --operators", op, suggestion(op, names, which)));
        }
    }
    return rules;
}

std::string doc_of(const Rule &rule, const Program &program) {
    std::string doc = rule.doc;
    for (const Expression &value : rule.value) doc += "\nValue: " + to_string(value);
    for (const auto &[name, attribute] : program.nodes[0].attributes) doc += fmt::format("\n{}: {}", name, to_string(attribute));
    return doc;
}

} // namespace

std::vector<LibraryProgram> operator_programs(const Rulebook &rulebook, const OperatorSelection &selection) {
    std::vector<LibraryProgram> programs;
    std::set<std::string> names;
    const auto add = [&](const Rule &rule, Dtype dtype, const std::string &name, Scaled scaled) {
        if (!names.insert(name).second) return;
        Program program = check_program(rulebook, rule, rule.check.cases[0], dtype, scaled);
        program.name = selection.library + "_" + name;
        programs.push_back({program, doc_of(rule, program)});
    };
    for (const Rule *rule : selected_rules(rulebook, selection.operators)) {
        for (const Dtype dtype : selection.dtypes) {
            const std::vector<CheckOperand> operands = check_operands(*rule, rule->check.cases[0], dtype);
            const bool takes_floats = std::ranges::any_of(operands, [](const CheckOperand &o) { return is_float(o.type.dtype); });
            const std::string name = takes_floats ? fmt::format("{}_{}", rule->op, to_string(dtype)) : rule->op;
            add(*rule, dtype, name, Scaled::no);
            if (takes_floats && !is_plain_only(*rule)) add(*rule, dtype, name + "_scaled", Scaled::yes);
        }
    }
    return programs;
}

} // namespace scalide

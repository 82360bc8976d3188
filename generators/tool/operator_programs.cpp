#include "tool/operator_programs.h"
#include "ir/text.h"
#include "rulebook/check_operands.h"
#include "rulebook/nearest.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace scalide {

namespace {

bool is_plain_only(const Rule &rule) { return rule.is_base && !rule.has_scale() && !rule.is_plain(); }

/// Something to call: arrays in, no sub-program.
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
            throw UserError({{}, "build.operators", "must be operators that take arrays, or all", "'" + op + "'", suggestion(op, names)});
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

/// One node on arguments with the letters of the case as extents.
Program program_of(const Rulebook &rulebook, const Rule &rule, const std::vector<CheckOperand> &operands, bool scaled) {
    Program program;
    std::set<std::string> symbols;
    Builder builder(rulebook, program);
    std::vector<ValueId> values;
    for (const CheckOperand &operand : operands) {
        for (const Extent &extent : operand.type.shape)
            for (const std::string &symbol : extent.symbols()) symbols.insert(symbol);
        values.push_back(add_value(program, operand.name, operand.type));
        program.arguments.push_back({values.back(), scaled && is_float(operand.type.dtype)});
    }
    for (const std::string &symbol : symbols) program.symbols.push_back({symbol});
    const std::vector<ValueId> results = builder.add(rule.op, values, rule.check.cases[0].attributes);
    for (size_t i = 0; i < results.size(); i++) {
        const ResultSpec &spec = rule.results[i];
        program.results.push_back({spec.name, results[i], scaled && !spec.plain && is_float(program.type(results[i]).dtype)});
    }
    return program;
}

} // namespace

std::vector<LibraryProgram> operator_programs(const Rulebook &rulebook, const OperatorSelection &selection) {
    std::vector<LibraryProgram> programs;
    std::set<std::string> names;
    const auto add = [&](const Rule &rule, const std::vector<CheckOperand> &operands, const std::string &name, bool scaled) {
        if (!names.insert(name).second) return;
        Program program = program_of(rulebook, rule, operands, scaled);
        program.name = name;
        programs.push_back({program, doc_of(rule, program)});
    };
    for (const Rule *rule : selected_rules(rulebook, selection.operators)) {
        for (const Dtype dtype : selection.dtypes) {
            const std::vector<CheckOperand> operands = check_operands(*rule, rule->check.cases[0], dtype);
            const bool takes_floats = std::ranges::any_of(operands, [](const CheckOperand &o) { return is_float(o.type.dtype); });
            const std::string name = takes_floats ? fmt::format("{}_{}", rule->op, to_string(dtype)) : rule->op;
            add(*rule, operands, name, false);
            if (takes_floats && !is_plain_only(*rule)) add(*rule, operands, name + "_scaled", true);
        }
    }
    return programs;
}

} // namespace scalide

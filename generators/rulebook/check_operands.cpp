#include "rulebook/check_operands.h"
#include "ir/text.h"
#include "rulebook/builder.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns the dtypes to try for a class, the wanted dtype first. If an integer is wanted, a class of floats gets f32.
std::vector<Dtype> candidates(OperandClass operand_class, Dtype wanted) {
    static const std::map<OperandClass, std::vector<Dtype>> by_class{
        {OperandClass::floating, {}},
        {OperandClass::number, {Dtype::i32}},
        {OperandClass::any, {Dtype::i32, Dtype::boolean}},
        {OperandClass::integer, {Dtype::i32}},
        {OperandClass::index, {Dtype::i32}},
        {OperandClass::boolean, {Dtype::boolean}},
        {OperandClass::bits, {Dtype::u32}},
        {OperandClass::every, {Dtype::i32, Dtype::boolean}},
    };
    std::vector<Dtype> dtypes = by_class.at(operand_class);
    const bool takes_all = operand_class == OperandClass::any || operand_class == OperandClass::every;
    const bool takes_both = operand_class == OperandClass::number || takes_all;
    // An operator that does not accept i64 says so. It does not get another dtype.
    if (wanted == Dtype::i64 && (takes_both || operand_class == OperandClass::integer)) return {Dtype::i64};
    if (takes_both || operand_class == OperandClass::floating) dtypes.insert(dtypes.begin(), is_float(wanted) ? wanted : Dtype::f32);
    if (is_integer(wanted) && (takes_both || operand_class == OperandClass::integer)) dtypes.insert(dtypes.begin(), wanted);
    if (wanted == Dtype::boolean && takes_all) dtypes.insert(dtypes.begin(), wanted);
    return dtypes;
}

/// Operands with the same letter have the same dtype.
const std::string &tie_of(const CheckOperand &operand) { return operand.spec->letter.empty() ? operand.spec->name : operand.spec->letter; }

using Choice = std::map<std::string, Dtype>; // the chosen dtype, by tie_of()

std::vector<Choice> choices_of(const std::vector<CheckOperand> &operands, Dtype wanted) {
    std::vector<Choice> choices{{}};
    for (const CheckOperand &operand : operands) {
        if (choices[0].contains(tie_of(operand))) continue;
        std::vector<Choice> longer;
        for (const Choice &choice : choices)
            for (const Dtype dtype : candidates(operand.spec->operand_class, wanted)) {
                longer.push_back(choice);
                longer.back()[tie_of(operand)] = dtype;
            }
        choices = std::move(longer);
    }
    return choices;
}

bool fits(const Rule &rule, const std::vector<CheckOperand> &operands, Attributes attributes) {
    std::vector<Type> types;
    for (const CheckOperand &operand : operands) types.push_back(operand.type);
    try {
        infer_result_types(rule, types, attributes, rule.location);
        return true;
    } catch (const UserError &) {
        return false;
    }
}

/// Replaces words by extents over the symbols, in the form in which types print them.
Attribute with_extents(const Attribute &attribute) {
    Attribute result = attribute;
    for (Attribute &element : result.list) element = with_extents(element);
    return attribute.kind == Attribute::Kind::word ? Attribute(parse_extent(attribute.word, {})) : result;
}

void collect_symbols(const Attribute &attribute, std::set<std::string> &symbols) {
    for (const Attribute &element : attribute.list) collect_symbols(element, symbols);
    if (attribute.kind != Attribute::Kind::integer) return;
    for (const std::string &symbol : attribute.integer.symbols()) symbols.insert(symbol);
}

std::set<std::string> symbols_of(const std::vector<CheckOperand> &operands) {
    std::set<std::string> symbols;
    for (const CheckOperand &operand : operands)
        for (const Extent &extent : operand.type.shape)
            for (const std::string &symbol : extent.symbols()) symbols.insert(symbol);
    return symbols;
}

} // namespace

void choose_dtypes(const Rule &rule, std::vector<CheckOperand> &operands, const Attributes &attributes, Dtype wanted) {
    const std::vector<Choice> choices = choices_of(operands, wanted);
    const auto choose = [&](const Choice &choice) {
        for (CheckOperand &operand : operands) operand.type.dtype = choice.at(tie_of(operand));
    };
    for (const Choice &choice : choices) {
        choose(choice);
        if (fits(rule, operands, attributes)) return;
    }
    choose(choices[0]);
}

std::vector<CheckOperand> check_operands(const Rule &rule, const CheckCase &check_case, Dtype wanted) {
    std::vector<CheckOperand> operands;
    for (const OperandSpec &spec : rule.operands) {
        int number = 0;
        for (const std::vector<std::string> &shape : check_case.shapes.at(spec.name)) {
            operands.push_back({&spec, spec.variadic ? spec.name + "." + std::to_string(number++) : spec.name, {}});
            for (const std::string &extent : shape) operands.back().type.shape.push_back(parse_extent(extent, {}));
        }
    }
    choose_dtypes(rule, operands, check_attributes(rule, check_case), wanted);
    return operands;
}

Attributes check_attributes(const Rule &rule, const CheckCase &check_case) {
    Attributes attributes = check_case.attributes;
    for (const AttributeSpec &spec : rule.attributes)
        if (attributes.contains(spec.name) && (spec.type == "shape" || spec.type == "extent" || spec.type == "integers"))
            attributes[spec.name] = with_extents(attributes[spec.name]);
    return attributes;
}

bool is_bound(const Rule &rule, const CheckCase &check_case) {
    std::set<std::string> used;
    for (const auto &[name, attribute] : check_attributes(rule, check_case)) collect_symbols(attribute, used);
    return std::ranges::includes(symbols_of(check_operands(rule, check_case, Dtype::f32)), used);
}

void add_sub_programs(Program &program, const Rule &rule, const Attributes &attributes, const Type &type) {
    for (const AttributeSpec &spec : rule.attributes) {
        if (spec.type != "program") continue;
        Program identity;
        identity.name = attributes.at(spec.name).word;
        for (const Extent &extent : type.shape)
            for (const std::string &symbol : extent.symbols()) identity.symbols.push_back({symbol});
        const ValueId x = add_value(identity, "x", type);
        identity.arguments.push_back({x});
        identity.results.push_back({"y", x});
        program.programs.push_back(std::move(identity));
    }
}

Program check_program(const Rulebook &rulebook, const Rule &rule, const CheckCase &check_case, Dtype wanted, Scaled scaled) {
    Program program;
    program.name = rule.op;
    std::vector<ValueId> operands;
    const std::vector<CheckOperand> wanted_operands = check_operands(rule, check_case, wanted);
    for (const std::string &symbol : symbols_of(wanted_operands)) program.symbols.push_back({symbol});
    for (const CheckOperand &operand : wanted_operands) {
        operands.push_back(add_value(program, operand.name, operand.type));
        program.arguments.push_back({operands.back(), scaled == Scaled::yes && is_float(operand.type.dtype)});
    }
    const Attributes attributes = check_attributes(rule, check_case);
    if (rule.takes_program()) add_sub_programs(program, rule, attributes, wanted_operands[0].type);
    const std::vector<ValueId> results = Builder(rulebook, program).add(rule.op, operands, attributes);
    for (size_t i = 0; i < results.size(); i++) {
        const bool is_scaled = scaled == Scaled::yes && !rule.result(i).plain && is_float(program.type(results[i]).dtype);
        program.results.push_back({rule.result_name(i), results[i], is_scaled});
    }
    return program;
}

} // namespace scalide

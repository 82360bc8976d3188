#include "rulebook/check_operands.h"
#include "ir/text.h"
#include "rulebook/builder.h"

namespace scalide {

namespace {

/// The dtypes that a class may have, the wanted one first.
std::vector<Dtype> candidates(OperandClass operand_class, Dtype wanted) {
    static const std::map<OperandClass, std::vector<Dtype>> by_class{
        {OperandClass::floating, {}},          {OperandClass::number, {Dtype::i32}}, {OperandClass::any, {Dtype::i32, Dtype::boolean}},
        {OperandClass::integer, {Dtype::i32}}, {OperandClass::index, {Dtype::i32}},  {OperandClass::boolean, {Dtype::boolean}},
    };
    std::vector<Dtype> dtypes = by_class.at(operand_class);
    const bool takes_floats =
        operand_class == OperandClass::floating || operand_class == OperandClass::number || operand_class == OperandClass::any;
    if (takes_floats) dtypes.insert(dtypes.begin(), wanted);
    return dtypes;
}

/// Operands of one letter have one dtype.
const std::string &tie_of(const CheckOperand &operand) { return operand.spec->letter.empty() ? operand.spec->name : operand.spec->letter; }

using Choice = std::map<std::string, Dtype>; // by tie

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
    choose_dtypes(rule, operands, check_case.attributes, wanted);
    return operands;
}

} // namespace scalide

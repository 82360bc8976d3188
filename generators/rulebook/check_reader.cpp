#include "ir/dtype.h"
#include "rulebook/attribute_types.h"
#include "rulebook/check_rule.h"
#include "rulebook/nearest.h"
#include "rulebook/rule_reader.h"
#include <algorithm>

namespace scalide {

namespace {

[[noreturn]] void fail_unknown(const YamlValue &value, const Rule &rule, const std::string &noun, const std::string &name) {
    std::vector<std::string> known;
    for (const OperandSpec &operand : rule.operands) known.push_back(operand.name);
    for (const AttributeSpec &attribute : rule.attributes) known.push_back(attribute.name);
    value.fail_unknown(noun, name, suggestion(name, known));
}

void check_operand(const YamlValue &value, const Rule &rule, const std::string &name) {
    if (rule.operand_index(name) < 0) fail_unknown(value, rule, "operand", name);
}

CheckCase read_case(const YamlValue &value, const Rule &rule) {
    CheckCase check_case;
    for (const auto &[name, entry] : value.entries()) {
        if (const int operand = rule.operand_index(name); operand >= 0)
            check_case.shapes.emplace(name, read_shapes(entry, rule.operands[operand]));
        else if (const AttributeSpec *spec = find_attribute(rule, name))
            check_case.attributes.try_emplace(name, read_attribute_value(entry, *spec));
        else
            fail_unknown(entry, rule, "operand or attribute", name);
    }
    for (const OperandSpec &operand : rule.operands)
        if (!check_case.shapes.contains(operand.name))
            value.fail("must have a shape for every operand", "", "Add a shape for '" + operand.name + "'");
    return check_case;
}

void read_values(const YamlValue &value, const std::string &name, CheckVector &vector) {
    if (value.is_text()) vector.scalars.insert(name);
    vector.values.emplace(name, value.is_text() ? std::vector<double>{value.number()} : value.numbers());
}

CheckVector read_vector(const YamlValue &value, const Rule &rule) {
    CheckVector vector;
    int number = 0; // index of the array within the variadic operand
    for (const auto &[name, entry] : value.entries()) {
        const AttributeSpec *spec = find_attribute(rule, name);
        if (spec) {
            vector.attributes.try_emplace(name, read_attribute_value(entry, *spec));
            continue;
        }
        if (rule.operand_index(name) < 0 && rule.result_index(name) < 0) fail_unknown(entry, rule, "operand, result or attribute", name);
        const int operand = rule.operand_index(name);
        if (operand < 0 || !rule.operands[operand].variadic) {
            read_values(entry, name, vector);
            continue;
        }
        for (const YamlValue &element : entry.elements()) read_values(element, name + "." + std::to_string(number++), vector);
    }
    return vector;
}

std::pair<double, double> read_interval(const YamlValue &value) {
    const std::vector<double> ends = value.numbers();
    if (ends.size() != 2 || !(ends[0] <= ends[1])) value.fail("must be an interval [low, high] with low <= high");
    return {ends[0], ends[1]};
}

void read_by_operand(const YamlFields &fields, Rule const &rule, Check &check) {
    if (const YamlValue *domain = fields.find("domain"))
        for (const auto &[name, interval] : domain->entries()) {
            check_operand(interval, rule, name);
            check.domain.emplace(name, read_interval(interval));
        }
    if (const YamlValue *kinks = fields.find("kinks"))
        for (const auto &[name, points] : kinks->entries()) {
            check_operand(points, rule, name);
            check.kinks.emplace(name, points.numbers());
        }
}

} // namespace

Attribute read_attribute_value(const YamlValue &value, const AttributeSpec &spec) {
    Attribute attribute = value.attribute();
    const std::string problem = misfit(spec, attribute);
    if (!problem.empty()) value.fail(problem, to_string(attribute), spec.hint);
    return attribute;
}

std::vector<std::vector<std::string>> read_shapes(const YamlValue &value, const OperandSpec &operand) {
    const auto read = [](const YamlValue &shape) {
        if (!shape.is_list()) shape.fail("must be a shape, a list of letters and numbers", shape.description());
        return shape.texts();
    };
    if (!operand.variadic) return {read(value)};
    std::vector<std::vector<std::string>> shapes;
    for (const YamlValue &shape : value.elements()) shapes.push_back(read(shape));
    return shapes;
}

Check read_check(const YamlValue &value, const Rule &rule) {
    const YamlFields fields = value.fields({{"domain"}, {"kinks"}, {"tolerance"}, {"gradient"}, {"scaling"}, {"cases"}, {"vectors"}});
    Check check;
    read_by_operand(fields, rule, check);
    if (const YamlValue *tolerance = fields.find("tolerance"))
        for (const auto &[dtype, bound] : tolerance->entries()) {
            if (!parse_dtype(dtype)) bound.fail_unknown("dtype", dtype, "");
            check.tolerance.emplace(dtype, bound.number());
        }
    if (const YamlValue *gradient = fields.find("gradient")) check.gradient = gradient->word({"exact", "straight_through", "none"});
    if (const YamlValue *scaling = fields.find("scaling")) check.scaling = scaling->word({"exact", "rounded", "storage"});
    if (const YamlValue *cases = fields.find("cases"))
        for (const YamlValue &entry : cases->elements()) check.cases.push_back(read_case(entry, rule));
    if (const YamlValue *vectors = fields.find("vectors"))
        for (const YamlValue &entry : vectors->elements()) check.vectors.push_back(read_vector(entry, rule));
    return check;
}

} // namespace scalide

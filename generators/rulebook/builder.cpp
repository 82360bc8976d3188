#include "rulebook/builder.h"
#include "ir/evaluation.h"
#include "ir/text.h"
#include <cmath>

namespace scalide {

void Builder::stamp_like(const Node &node) {
    scope_ = node.scope;
    role_ = node.role;
    location_ = node.location;
}

std::vector<ValueId> Builder::add(const std::string &op, const std::vector<ValueId> &given, Attributes attributes,
                                  const std::string &name) {
    const Rule &rule = rulebook_.rule(op, location_);
    std::vector<std::string> names;
    for (const ValueId operand : given) names.push_back(program_.value_name(operand));
    const std::vector<ValueId> operands = narrowed(rule, given);
    std::vector<Type> types;
    for (const ValueId operand : operands) types.push_back(type(operand));
    const std::vector<Type> results = infer_result_types(rule, types, attributes, location_, names);
    return add_node(program_, {op, operands, std::move(attributes), {}, scope_, role_, location_}, results, name);
}

ValueId Builder::add_one(const std::string &op, const std::vector<ValueId> &operands, Attributes attributes, const std::string &name) {
    const std::vector<ValueId> results = add(op, operands, std::move(attributes), name);
    if (results.size() != 1) throw InternalError("internal error: operator " + op + " has " + std::to_string(results.size()) + " results");
    return results[0];
}

ValueId Builder::constant(double value, Dtype dtype) {
    return add_one("constant", {}, {{"value", constant_number(dtype, value)}, {"dtype", std::string(to_string(dtype))}});
}

ValueId Builder::size(const Extent &extent, Dtype dtype) {
    if (extent.is_static()) return constant(static_cast<double>(extent.value()), dtype);
    return add_one("size", {}, {{"extent", extent}, {"dtype", std::string(to_string(dtype))}});
}

ValueId Builder::broadcast(ValueId value, const Extents &shape) {
    const Extents &from = type(value).shape;
    if (from == shape) return value;
    if (from.size() > shape.size())
        throw UserError({location_, "broadcast_in_dim", "shapes must broadcast", to_string(from) + " to " + to_string(shape), ""});
    std::vector<int64_t> dims;
    for (size_t i = 0; i < from.size(); i++) dims.push_back(static_cast<int64_t>(shape.size() - from.size() + i));
    return add_one("broadcast_in_dim", {value}, {{"shape", to_attribute(shape)}, {"dims", to_attribute(dims)}});
}

std::vector<ValueId> Builder::broadcast_operands(const Rule &rule, std::vector<ValueId> operands) {
    if (rule.family != "elementwise") return operands;
    Extents common;
    for (const ValueId operand : operands) {
        const Extents &shape = type(operand).shape;
        if (shape.size() > common.size()) common.insert(common.begin(), shape.size() - common.size(), Extent(1));
        for (size_t i = 0; i < shape.size(); i++) {
            Extent &extent = common[common.size() - shape.size() + i];
            if (extent == Extent(1)) {
                extent = shape[i];
            } else if (!(shape[i] == extent) && !(shape[i] == Extent(1))) {
                throw UserError({location_, rule.op, "the shapes of the operands must broadcast",
                                 to_string(common) + " and " + to_string(shape), "Extents must be equal or 1, counted from the last axis"});
            }
        }
    }
    for (ValueId &operand : operands) operand = broadcast(operand, common);
    return operands;
}

std::vector<ValueId> Builder::narrowed(const Rule &rule, std::vector<ValueId> operands) {
    for (size_t i = 0; i < operands.size() && !rule.operands.empty(); i++) {
        const bool is_index = rule.operands[std::min(i, rule.operands.size() - 1)].operand_class == OperandClass::index;
        if (is_index && type(operands[i]).dtype == Dtype::i64) operands[i] = add_one("narrow_index", {operands[i]});
    }
    return operands;
}

ValueId Builder::convert(ValueId value, Dtype dtype) {
    if (type(value).dtype == dtype) return value;
    return add_one("convert_element_type", {value}, {{"dtype", std::string(to_string(dtype))}});
}

} // namespace scalide

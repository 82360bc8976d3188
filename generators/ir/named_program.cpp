#include "ir/named_program.h"

#include "expr/base_operators.h"
#include "ir/text.h"

namespace scalide {

namespace {

// Returns the type for operands that are literal numbers.
Type number_type(const Program &program, const Node &node, const std::vector<NamedOperand> &operands) {
    const BaseOperator *base = find_base_operator(node.op);
    const bool broadcasts = base != nullptr && base->shape == Shape::elementwise;
    std::optional<Dtype> dtype;
    Extents shape;
    for (const NamedOperand &operand : operands) {
        if (operand.value < 0) continue;
        const Type &type = program.type(operand.value);
        if (!dtype || *dtype == Dtype::boolean) dtype = type.dtype;
        if (broadcasts && shape.empty() && !is_unknown(type)) shape = type.shape;
    }
    return {dtype.value_or(Dtype::f32), shape};
}

} // namespace

ValueId NamedProgram::find(const std::string &name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? -1 : found->second;
}

ValueId NamedProgram::define(const std::string &name, Type type) {
    const auto id = static_cast<ValueId>(program.values.size());
    program.values.push_back({name, std::move(type)});
    names_[name] = id;
    return id;
}

void NamedProgram::add_operands(Node &node, const std::vector<NamedOperand> &operands, const std::string &name) {
    const Type type = number_type(program, node, operands);
    for (const NamedOperand &operand : operands) {
        node.operands.push_back(operand.value >= 0 ? operand.value : add_constant(node, operand.number, type, name));
    }
}

ValueId NamedProgram::add_constant(const Node &like, const Attribute &number, const Type &type, const std::string &name) {
    const Node base{"", {}, {}, {}, like.scope, like.role, like.location};
    Node constant = base;
    constant.op = "constant";
    constant.attributes["value"] = is_float(type.dtype) ? Attribute(to_number(number)) : number;
    const ValueId scalar = add_helper(std::move(constant), name, {type.dtype, {}});
    if (type.shape.empty()) return scalar;
    Node broadcast = base;
    broadcast.op = "broadcast_in_dim";
    broadcast.operands = {scalar};
    broadcast.attributes = {{"shape", to_attribute(type.shape)}, {"dims", to_attribute(std::vector<int64_t>())}};
    return add_helper(std::move(broadcast), name, type);
}

ValueId NamedProgram::add_helper(Node node, const std::string &name, Type type) {
    helpers_.push_back(static_cast<ValueId>(program.values.size()));
    program.values.push_back({name, std::move(type)});
    node.results = {helpers_.back()};
    program.nodes.push_back(std::move(node));
    return helpers_.back();
}

void NamedProgram::name_constants() {
    int number = 0;
    for (const ValueId helper : helpers_) {
        std::string fresh;
        do {
            fresh = program.values[helper].name + "$" + std::to_string(number++);
        } while (names_.contains(fresh));
        program.values[helper].name = fresh;
    }
}

} // namespace scalide

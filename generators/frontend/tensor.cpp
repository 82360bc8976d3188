#include "frontend/tracer.h"
#include "ir/words.h"
#include "transforms/analysis/splice.h"
#include "transforms/calls/einsum.h"
#include <algorithm>
#include <numeric>

namespace scalide {

Dtype Tensor::dtype(const std::source_location &where) const {
    return at(where, [&] { return Tracer::current().builder().type(value()).dtype; });
}

const Extents &Tensor::shape(const std::source_location &where) const {
    return *at(where, [&] { return &Tracer::current().builder().type(value()).shape; });
}

RankGroup::RankGroup(const std::string &name, const std::source_location &where) {
    try {
        extent = Tracer::current().declare_group(name);
    } catch (const UserError &error) {
        rethrow_at(error, location_of(where));
    }
}

Attribute to_attribute(const std::vector<RankGroup> &groups) {
    Extents symbols;
    for (const RankGroup &group : groups) symbols.push_back(group.extent);
    return to_attribute(symbols);
}

Tensor::Tensor(ValueId value) : value_(value), program_(Tracer::current().number()) {}

ValueId Tensor::value() const {
    if (value_ < 0) {
        throw UserError(statement({}, "this tensor is used before it is assigned", "Assign it, or pass an Input"));
    }
    Tracer &tracer = Tracer::current();
    if (program_ != tracer.number()) {
        if (const std::optional<ValueId> captured = tracer.capture(program_, value_)) return *captured;
        throw UserError(statement({}, "this tensor belongs to another program",
                                  "Use tensors only in the generator that declares them, and pass them to another generator with call(). "
                                  "Inside the function of a reduction, use only its arguments and numbers. A value of a body or a branch "
                                  "leaves it as a result"));
    }
    return value_;
}

Tensor Tensor::named(const std::string &name, const std::source_location &where) const {
    return at(where, [&] {
        Program &program = Tracer::current().program();
        const ValueId named = value();
        if (name.empty()) throw UserError(statement({}, "the name of a tensor must not be empty"));
        for (const Argument &argument : program.arguments) {
            if (argument.value != named) continue;
            const std::string &declared = program.value_name(named);
            throw UserError(statement({}, "cannot name the argument " + subject_of(program.name, declared) + " '" + name + "'",
                                      "Change its name where it is declared"));
        }
        std::string free = name;
        for (int i = 1; program.value_name(named) != free && !rename_value(program, named, free); i++) free = name + std::to_string(i);
        return *this;
    });
}

Numerics Tensor::numerics() { return Numerics(*this); }

Numerics &Numerics::rescale(const std::string &norm, double to, const std::source_location &where) {
    tensor_ = apply("dynamic_rescale", {tensor_}, {{"norm", norm}, {"to", to}}, where);
    return *this;
}

Numerics &Numerics::store(Dtype dtype, const std::source_location &where) {
    tensor_ = apply("cast_on_forward", {tensor_}, {{"dtype", std::string(to_string(dtype))}}, where);
    return *this;
}

namespace {

// Returns the dtype that a number gets as operand number `place`, next to tensors of `dtype`.
Dtype number_dtype(const Rule &rule, size_t place, Dtype dtype) {
    const OperandSpec &spec = rule.operands[std::min(place, rule.operands.size() - 1)];
    return spec.operand_class == OperandClass::floating && !is_float(dtype) ? Dtype::f32 : dtype;
}

std::vector<ValueId> to_values(const Rule &rule, const std::vector<Operand> &operands) {
    Builder &builder = Tracer::current().builder();
    Dtype dtype = Dtype::f32;
    for (const Operand &operand : operands) {
        if (operand.is_number) continue;
        dtype = operand.tensor.dtype();
        if (is_float(dtype)) break;
    }
    std::vector<ValueId> values;
    for (const Operand &operand : operands) {
        if (operand.is_number && !operand.is_exact && dtype == Dtype::i64)
            throw UserError({{}, rule.op, "an integer next to i64 must be a number that f64 represents exactly", "a larger integer", ""});
        values.push_back(operand.is_number ? builder.constant(operand.number, number_dtype(rule, values.size(), dtype))
                                           : operand.tensor.value());
    }
    return builder.broadcast_operands(rule, std::move(values));
}

// Writes all axes for `all_axes`. Axes that a program must contain are optional here, as in rules. The default is all axes.
void add_left_out_axes(const Rule &rule, const std::vector<ValueId> &operands, Attributes &attributes) {
    for (const AttributeSpec &spec : rule.attributes) {
        if (spec.type != "axes" || operands.empty()) continue;
        std::vector<int64_t> all(Tracer::current().builder().type(operands[0]).shape.size());
        std::iota(all.begin(), all.end(), 0);
        const auto given = attributes.find(spec.name);
        if (given != attributes.end() ? given->second == to_attribute(all_axes) : spec.is_required())
            attributes[spec.name] = to_attribute(all);
    }
}

} // namespace

WindowPadding::WindowPadding(std::initializer_list<std::pair<int64_t, int64_t>> pairs)
    : WindowPadding(std::vector<std::pair<int64_t, int64_t>>(pairs)) {}

WindowPadding::WindowPadding(const std::vector<std::pair<int64_t, int64_t>> &pairs) : attribute(std::vector<Attribute>()) {
    for (const auto &[low, high] : pairs) attribute.list.push_back(to_attribute(std::vector<int64_t>{low, high}));
}

Attribute to_attribute(const AxisPairs &pairs) { return std::vector<Attribute>{to_attribute(pairs.first), to_attribute(pairs.second)}; }

std::vector<Tensor> apply_all(const std::string &op, std::vector<Operand> operands, Attributes attributes,
                              const std::source_location &where) {
    return at(where, [&] {
        Builder &builder = Tracer::current().builder();
        const Rule &rule = builder.rulebook().rule(op, {});
        const std::vector<ValueId> values = to_values(rule, operands);
        add_left_out_axes(rule, values, attributes);
        std::vector<Tensor> results;
        for (ValueId value : builder.add(op, values, std::move(attributes))) results.emplace_back(value);
        return results;
    });
}

Tensor apply(const std::string &op, std::vector<Operand> operands, Attributes attributes, const std::source_location &where) {
    return apply_all(op, std::move(operands), std::move(attributes), where).at(0);
}

Tensor operator+(const Operand &a, const Operand &b) { return apply("add", {a, b}, {}, a.where); }
Tensor operator-(const Operand &a, const Operand &b) { return apply("sub", {a, b}, {}, a.where); }
Tensor operator*(const Operand &a, const Operand &b) { return apply("mul", {a, b}, {}, a.where); }
Tensor operator/(const Operand &a, const Operand &b) { return apply("div", {a, b}, {}, a.where); }
Tensor operator-(const TensorUse &a) { return apply("neg", {a.tensor}, {}, a.where); }

Tensor operator<(const TensorUse &a, const TensorUse &b) { return apply("lt", {a.tensor, b.tensor}, {}, a.where); }
Tensor operator<(const TensorUse &a, const Number &b) { return apply("lt", {a.tensor, b.operand}, {}, a.where); }
Tensor operator<(const Number &a, const TensorUse &b) { return apply("lt", {a.operand, b.tensor}, {}, a.operand.where); }
Tensor operator<=(const TensorUse &a, const TensorUse &b) { return apply("le", {a.tensor, b.tensor}, {}, a.where); }
Tensor operator<=(const TensorUse &a, const Number &b) { return apply("le", {a.tensor, b.operand}, {}, a.where); }
Tensor operator<=(const Number &a, const TensorUse &b) { return apply("le", {a.operand, b.tensor}, {}, a.operand.where); }
Tensor operator>(const TensorUse &a, const TensorUse &b) { return apply("gt", {a.tensor, b.tensor}, {}, a.where); }
Tensor operator>(const TensorUse &a, const Number &b) { return apply("gt", {a.tensor, b.operand}, {}, a.where); }
Tensor operator>(const Number &a, const TensorUse &b) { return apply("gt", {a.operand, b.tensor}, {}, a.operand.where); }
Tensor operator>=(const TensorUse &a, const TensorUse &b) { return apply("ge", {a.tensor, b.tensor}, {}, a.where); }
Tensor operator>=(const TensorUse &a, const Number &b) { return apply("ge", {a.tensor, b.operand}, {}, a.where); }
Tensor operator>=(const Number &a, const TensorUse &b) { return apply("ge", {a.operand, b.tensor}, {}, a.operand.where); }

Tensor dot(const Tensor &a, const Tensor &b, const std::source_location &where) {
    const int64_t rank = a.rank(where), other = b.rank(where), batch = std::max<int64_t>(0, std::min(rank, other) - 2);
    std::vector<int64_t> axes(batch);
    std::iota(axes.begin(), axes.end(), 0);
    const AxisPairs contract({rank - 1}, {std::max<int64_t>(0, other - 2)});
    return apply("dot_general", {a, b}, {{"contract", to_attribute(contract)}, {"batch", to_attribute(AxisPairs(axes, axes))}}, where);
}

Tensor einsum(const std::string &subscripts, const std::vector<Tensor> &operands, const std::source_location &where) {
    return at(where, [&] {
        Tracer &tracer = Tracer::current();
        Node call = tracer.stamped("einsum", {{"subscripts", subscripts}});
        std::vector<Type> types;
        for (const Tensor &operand : operands) {
            call.operands.push_back(operand.value());
            types.push_back(tracer.builder().type(operand.value()));
        }
        return Tensor(append_body(tracer.program(), einsum_program(call, types, tracer.builder().rulebook()), call)[0]);
    });
}

Tensor map_on_forward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x, const std::source_location &where) {
    return apply("straight_through", {x, function(x)}, {}, where);
}

Tensor map_on_backward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x, const std::source_location &where) {
    const Type type{x.dtype(where), x.shape(where)};
    Program &program = Tracer::current().program();
    const std::string name = program.name + "_backward_" + std::to_string(program.programs.size());
    const auto one = [&](const std::vector<Tensor> &cotangents) { return std::vector<Tensor>{function(cotangents[0])}; };
    program.programs.push_back(trace_program(name, {{"ct", type}}, one));
    return apply("map_on_backward", {x}, {{"program", name}}, where);
}

Scope::Scope(const std::string &name) : outer_(Tracer::current().scope()) {
    Tracer::current().set_scope(outer_.empty() ? name : outer_ + "/" + name);
}

Scope::~Scope() { Tracer::current().set_scope(outer_); }

} // namespace scalide

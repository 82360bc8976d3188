#include "expr/base_operators.h"
#include "rulebook/attribute_types.h"
#include "rulebook/builder.h"
#include "rulebook/check_rule.h"
#include "rulebook/complete_attributes.h"
#include "rulebook/static_value.h"
#include "rulebook/unplaced.h"
#include <algorithm>

namespace scalide {

namespace {

struct ClassName {
    OperandClass operand_class;
    const char *words;
    bool (*fits)(Dtype);
};

constexpr ClassName classes[] = {
    {OperandClass::floating, "a float", is_float},
    {OperandClass::integer, "an integer", is_integer},
    {OperandClass::boolean, "a bool", [](Dtype dtype) { return dtype == Dtype::boolean; }},
    {OperandClass::number, "a number", [](Dtype dtype) { return dtype != Dtype::boolean; }},
    {OperandClass::any, "an array", [](Dtype) { return true; }},
    {OperandClass::index, "an i32", [](Dtype dtype) { return dtype == Dtype::i32; }},
    {OperandClass::bits, "a u32", [](Dtype dtype) { return dtype == Dtype::u32; }},
    {OperandClass::program, "a program", [](Dtype) { return false; }},
};

std::string list_of(const std::vector<Type> &types) {
    std::string text;
    for (const Type &type : types) text += (text.empty() ? "" : ", ") + to_string(type);
    return text.empty() ? "nothing" : text;
}

/// Checks operands against one rule. Every message starts with the location `where`.
class Inference {
public:
    Inference(const Rule &rule, const std::vector<Type> &operands, const Attributes &attributes, const Location &where)
        : rule_(rule), operands_(operands), attributes_(attributes), where_(where) {}

    void check_operands() const {
        const bool is_variadic = !rule_.operands.empty() && rule_.operands.back().variadic;
        const size_t expected = rule_.operands.size();
        if (is_variadic ? operands_.size() < expected : operands_.size() != expected)
            fail("operands", "the number of operands must be " + std::string(is_variadic ? "at least " : "") + std::to_string(expected),
                 std::to_string(operands_.size()));
        std::map<std::string, Type> tied;
        for (size_t i = 0; i < operands_.size(); i++) check_operand(rule_.operands[std::min(i, expected - 1)], operands_[i], tied);
        check_shapes();
    }

    void check_constraints() const {
        for (const Constraint &constraint : rule_.constraints)
            placed("where." + constraint.id, [&] {
                if (!is_true(evaluate_static(constraint.require, scope({}))))
                    fail("where." + constraint.id, constraint.say, difference(constraint.require));
                return 0;
            });
    }

    std::vector<Type> results() const {
        if (rule_.results[0].each) return operand_types(rule_, rule_.operand_index(rule_.results[0].like), operands_);
        std::vector<Type> types;
        for (const ResultSpec &spec : rule_.results) {
            Type type;
            if (!spec.like.empty()) type = operand_types(rule_, rule_.operand_index(spec.like), operands_).at(0);
            if (spec.dtype)
                type.dtype = placed("results." + spec.name + ".dtype", [&] { return dtype_of(evaluate_static(spec.dtype, scope(types))); });
            if (spec.shape)
                type.shape =
                    placed("results." + spec.name + ".shape", [&] { return extents_of(evaluate_static(spec.shape, scope(types))); });
            types.push_back(type);
        }
        return types;
    }

private:
    [[noreturn]] void fail(const std::string &field, const std::string &requirement, const std::string &got) const {
        throw UserError({where_, rule_.op + "." + field, requirement, got, ""});
    }

    /// Runs `body` and adds this location to errors that have none.
    template<typename Body>
    auto placed(const std::string &field, const Body &body) const -> decltype(body()) {
        try {
            return body();
        } catch (const UserError &error) {
            rethrow_placed(error, where_, rule_.op + "." + field);
        }
    }

    StaticScope scope(const std::vector<Type> &results) const { return {rule_, operands_, attributes_, results}; }

    void check_operand(const OperandSpec &spec, const Type &type, std::map<std::string, Type> &tied) const {
        const auto &words = *std::ranges::find(classes, spec.operand_class, &ClassName::operand_class);
        if (!words.fits(type.dtype)) fail("operands." + spec.name, std::string("must be ") + words.words, to_string(type));
        if (spec.letter.empty()) return;
        const auto [first, is_new] = tied.emplace(spec.letter, type);
        if (!is_new && first->second.dtype != type.dtype)
            fail("operands." + spec.name, "must have the dtype of the previous operands, " + std::string(to_string(first->second.dtype)),
                 to_string(type));
    }

    /// Operands of elementwise base operators must have one shape. Only the `which` of select_n may have rank 0.
    void check_shapes() const {
        const BaseOperator *base = rule_.is_base ? find_base_operator(rule_.op) : nullptr;
        if (!base || base->shape != Shape::elementwise || operands_.empty()) return;
        const bool is_single = base->arity < 0 && operands_[0].is_scalar();
        const auto differs = [&](const Type &type) { return type.shape != operands_.back().shape; };
        if (std::ranges::any_of(operands_.begin() + is_single, operands_.end(), differs))
            fail("where.shapes", "operands must have the same shape", list_of(operands_));
    }

    /// For `a == b`, returns the two values; for other requirements, the operands.
    std::string difference(const Expression &require) const {
        if (require->kind != ExpressionNode::Kind::call || require->text != "eq") return list_of(operands_);
        return to_string(evaluate_static(require->operands[0], scope({}))) + " and " +
               to_string(evaluate_static(require->operands[1], scope({})));
    }

    static Dtype dtype_of(const Attribute &value) {
        const auto dtype = parse_dtype(value.word);
        if (!dtype) fail_unplaced("must be a dtype", to_string(value));
        return *dtype;
    }

    static Extents extents_of(const Attribute &value) {
        if (value.kind != Attribute::Kind::list) fail_unplaced("must be a list of extents", to_string(value));
        Extents extents;
        for (const Attribute &element : value.list) extents.push_back(to_extent(element));
        return extents;
    }

    const Rule &rule_;
    const std::vector<Type> &operands_;
    const Attributes &attributes_;
    const Location &where_;
};

} // namespace

std::vector<Type> infer_result_types(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where) {
    const Inference inference(rule, operands, attributes, where);
    inference.check_operands();
    complete_attributes(rule, operands, attributes, where);
    inference.check_constraints();
    return inference.results();
}

} // namespace scalide

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

/// i64 holds indices. Arithmetic has at most 32 bits.
bool is_wide_integer(Dtype dtype) { return dtype == Dtype::i64; }

constexpr ClassName classes[] = {
    {OperandClass::floating, "a float", is_float},
    {OperandClass::integer, "an integer", [](Dtype dtype) { return is_integer(dtype) && !is_wide_integer(dtype); }},
    {OperandClass::boolean, "a bool", [](Dtype dtype) { return dtype == Dtype::boolean; }},
    {OperandClass::number, "a number", [](Dtype dtype) { return dtype != Dtype::boolean && !is_wide_integer(dtype); }},
    {OperandClass::any, "an array", [](Dtype dtype) { return !is_wide_integer(dtype); }},
    {OperandClass::every, "an array", [](Dtype) { return true; }},
    {OperandClass::index, "an i32 or i64", [](Dtype dtype) { return dtype == Dtype::i32; }},
    {OperandClass::bits, "a u32", [](Dtype dtype) { return dtype == Dtype::u32; }},
    {OperandClass::program, "a program", [](Dtype) { return false; }},
};

/// Returns `x: f32[b, 3], w: f32[4]`, or the types alone if there are no names.
std::string list_of(const std::vector<Type> &types, const std::vector<std::string> &names) {
    std::string text;
    for (size_t i = 0; i < types.size(); i++) text += (i ? ", " : "") + (i < names.size() ? names[i] + ": " : "") + to_string(types[i]);
    return text.empty() ? "nothing" : text;
}

/// Two lists of extents that must be equal, and differ in a symbol: returns what to do.
std::string advice_on_symbols(const Attribute &a, const Attribute &b) {
    for (size_t i = 0; i < std::min(a.list.size(), b.list.size()); i++) {
        const Extent &first = a.list[i].integer, &second = b.list[i].integer;
        if (first == second || (first.is_static() && second.is_static())) continue;
        const std::string both = to_string(first) + " and " + to_string(second);
        return first.is_static() || second.is_static() ? "If " + both + " are one size, write the number for both"
                                                       : "If " + both + " are one size, use one name for both";
    }
    return "";
}

/// Checks operands against one rule. Every message starts with the location `where`.
class Inference {
public:
    Inference(const Rule &rule, const std::vector<Type> &operands, const Attributes &attributes, const Location &where,
              const std::vector<std::string> &names)
        : rule_(rule), operands_(operands), attributes_(attributes), where_(where), names_(names) {}

    void check_operands() const {
        const bool is_variadic = !rule_.operands.empty() && rule_.operands.back().variadic;
        const size_t expected = rule_.operands.size();
        if (is_variadic ? operands_.size() < expected : operands_.size() != expected)
            fail("operands", "the number of operands must be " + std::string(is_variadic ? "at least " : "") + std::to_string(expected),
                 std::to_string(operands_.size()));
        std::map<std::string, Type> tied;
        for (size_t i = 0; i < operands_.size(); i++) check_operand(i, tied);
        check_shapes();
    }

    void check_constraints() const {
        for (const Constraint &constraint : rule_.constraints)
            placed("", [&] {
                if (!holds(constraint)) refuse(constraint);
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
            check_width(spec, type);
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
            rethrow_placed(error, where_, rule_.op + (field.empty() ? "" : "." + field));
        }
    }

    StaticScope scope(const std::vector<Type> &results) const { return {rule_, operands_, attributes_, results}; }

    void check_operand(size_t number, std::map<std::string, Type> &tied) const {
        const OperandSpec &spec = rule_.operands[std::min(number, rule_.operands.size() - 1)];
        const Type &type = operands_[number];
        const auto refuse = [&](const std::string &requirement) {
            const std::string name = number < names_.size() ? names_[number] + ": " : "";
            throw UserError(
                {where_, rule_.op + ".operands." + spec.name, requirement, name + to_string(type),
                 is_wide_integer(type.dtype) ? "Convert it to i32 with convert_element_type" : "convert_element_type converts an array"});
        };
        const auto &words = *std::ranges::find(classes, spec.operand_class, &ClassName::operand_class);
        const bool is_too_wide = is_wide_integer(type.dtype) && words.fits(Dtype::i32);
        if (!words.fits(type.dtype)) refuse(std::string("must be ") + words.words + (is_too_wide ? " of at most 32 bits" : ""));
        if (spec.letter.empty()) return;
        const auto [first, is_new] = tied.emplace(spec.letter, type);
        if (!is_new && first->second.dtype != type.dtype)
            refuse("must have the dtype of the previous operands, " + std::string(to_string(first->second.dtype)));
    }

    /// A dtype attribute makes no i64: only operators that take i64, and sources, return it.
    void check_width(const ResultSpec &spec, const Type &type) const {
        const auto takes_it = [](const OperandSpec &operand) { return operand.operand_class == OperandClass::every; };
        if (!is_wide_integer(type.dtype) || rule_.family == "source" || std::ranges::any_of(rule_.operands, takes_it)) return;
        throw UserError({where_, rule_.op + "." + spec.name, "must have at most 32 bits", to_string(type),
                         "convert_element_type converts a result to i64"});
    }

    /// Operands of elementwise base operators must have one shape. Only the `which` of select_n may have rank 0.
    void check_shapes() const {
        const BaseOperator *base = rule_.is_base ? find_base_operator(rule_.op) : nullptr;
        if (!base || base->shape != Shape::elementwise || operands_.empty()) return;
        const bool is_single = base->arity < 0 && operands_[0].is_scalar();
        const auto differs = [&](const Type &type) { return type.shape != operands_.back().shape; };
        if (std::ranges::any_of(operands_.begin() + is_single, operands_.end(), differs))
            throw UserError({where_, rule_.op, "operands must have the same shape", list_of(operands_, names_), ""});
    }

    /// A shape function fails if it has no value for these operands, so the constraint does not hold. If it says what to do, that is the
    /// message.
    bool holds(const Constraint &constraint) const {
        try {
            return is_true(evaluate_static(constraint.require, scope({})));
        } catch (const UserError &error) {
            const Message &message = error.message();
            if (!message.way_out.empty() || !message.subject.empty() || !to_string(message.location).empty()) throw;
            return false;
        }
    }

    /// Returns the values of a and b for `a == b`; nothing for another condition, or if a value does not exist.
    std::optional<std::pair<Attribute, Attribute>> sides_of(const Expression &require) const {
        if (require->kind != ExpressionNode::Kind::call || require->text != "eq") return {};
        try {
            return std::pair(evaluate_static(require->operands[0], scope({})), evaluate_static(require->operands[1], scope({})));
        } catch (const UserError &) {
            return {};
        }
    }

    /// Reports a constraint that does not hold. For `a == b` the message has the two values. It has the operands and the attributes that
    /// the constraint reads. The name of the constraint in the rule file means nothing to the author of a program.
    [[noreturn]] void refuse(const Constraint &constraint) const {
        const Expression &require = constraint.require;
        const std::string operands = list_of(operands_, names_);
        std::string got = operands, advice;
        if (const auto sides = sides_of(require)) {
            got = to_string(sides->first) + " and " + to_string(sides->second) + (names_.empty() ? "" : " (" + operands + ")");
            advice = advice_on_symbols(sides->first, sides->second);
        } else {
            const std::vector<std::string> names = free_names(require);
            for (const auto &[name, value] : attributes_)
                if (std::ranges::find(names, name) != names.end()) got += ", " + name + ": " + to_string(value);
        }
        throw UserError({where_, rule_.op, constraint.say, got, advice.empty() ? constraint.hint : advice});
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
    const std::vector<std::string> &names_;
};

} // namespace

std::vector<Type> infer_result_types(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where,
                                     const std::vector<std::string> &names) {
    const Inference inference(rule, operands, attributes, where, names);
    inference.check_operands();
    complete_attributes(rule, operands, attributes, where);
    inference.check_constraints();
    return inference.results();
}

} // namespace scalide

#include "support/programs/program_of_operators.h"
#include "rulebook/builder.h"
#include "rulebook/check_operands.h"
#include "support/programs/random_program.h"
#include "support/programs/rules.h"
#include "transforms/calls/bind_symbols.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>

namespace scalide {

namespace {

/// A case of a rule that can be called, for operands of some dtype.
struct Callable {
    const Rule *rule;
    const CheckCase *check_case;
    Dtype wanted;
};

constexpr Dtype dtypes[] = {Dtype::f32, Dtype::f32, Dtype::f32, Dtype::i32, Dtype::u8, Dtype::i16, Dtype::u32, Dtype::boolean};
constexpr int64_t extents[] = {0, 1, 2, 3, 4, 5, 7, 18};
constexpr int64_t most_elements = 4000;
constexpr int most_depth = 2; ///< of arithmetic on arithmetic: Halide compiles longer chains of functions in minutes

/// Whose result is no function of values: how an operand is stored, the winner among none.
bool has_no_value(const Rule &rule) { return rule.check.scaling == "storage" || rule.op == "argmax" || rule.op == "argmin"; }

/// By operator, so that each is as likely as the others, whatever the number of its cases.
std::vector<std::vector<Callable>> find_callables() {
    std::vector<std::vector<Callable>> all;
    for (const Rule *rule : rules().rules()) {
        std::vector<Callable> callables;
        if (rule->operands.empty() || rule->takes_program() || has_no_value(*rule)) continue;
        for (const CheckCase &check_case : rule->check.cases)
            for (const Dtype dtype : dtypes)
                if (is_bound(*rule, check_case)) callables.push_back({rule, &check_case, dtype});
        if (!callables.empty()) all.push_back(callables);
    }
    return all;
}

std::set<std::string> words(const std::string &text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

/// Operators that are discontinuous or unbounded near some operand, in addition to those without a gradient.
const std::set<std::string> jumping =
    words("floor ceil round round_away sign rem sort sort_key_val top_k approx_max_k approx_min_k nextafter "
          "select_and_scatter_add select_and_gather_add pow2_down pow2_up pow2_nearest reduce_precision "
          "convert_element_type");

/// Operators and families whose results are equal to the bit when their operands are.
const std::set<std::string> exact =
    words("add sub mul div neg abs max min square sqrt floor ceil round sign rem clamp select_n relu not gather "
          "take take_along_axis dynamic_slice dynamic_update_slice scatter reduce_max reduce_min cummax "
          "cummin reduce_window_max reduce_window_min convert_element_type");
const std::set<std::string> exact_families = words("movement sort");

bool needs_exact(const Rule &rule) {
    return rule.is_plain() || rule.gradient_kind == GradientKind::none || jumping.contains(rule.op) || rule.family == "scaling";
}

bool keeps_exact(const Rule &rule) { return exact.contains(rule.op) || exact_families.contains(rule.family); }

using Letters = std::map<std::string, Extent>;

class Draft {
    template<typename List>
    const auto &pick(const List &list) {
        return list[std::uniform_int_distribution<size_t>(0, std::size(list) - 1)(random_)];
    }
    bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }

public:
    explicit Draft(std::mt19937 &random) : random_(random) {
        program_.name = "fuzz";
        program_.symbols.push_back({"b", 1, 64, 1});
    }

    Program take(int count) {
        static const std::vector<std::vector<Callable>> callables = find_callables();
        for (int made = 0, tries = 0; made < count && tries < 20 * count; tries++) made += add(pick(pick(callables)));
        add_results();
        drop_symbol();
        return std::move(program_);
    }

private:
    /// If the rule rejects the drawn case, returns false. The program is then unchanged except for unused nodes.
    bool add(const Callable &callable) {
        try {
            return add_node(callable);
        } catch (const UserError &) {
            return false;
        }
    }

    bool add_node(const Callable &callable) {
        const Rule &rule = *callable.rule;
        const Program callee = check_program(rules(), rule, *callable.check_case, callable.wanted, Scaled::no);
        Letters letters;
        bool is_exact = true;
        int depth = 0;
        Node call;
        std::vector<Type> types;
        for (size_t i = 0; i < callee.arguments.size(); i++) {
            const Type &type = callee.type(callee.arguments[i].value);
            const OperandSpec &spec = rule.operands[std::min(i, rule.operands.size() - 1)];
            const ValueId value = choose(type, needs_exact(rule), letters);
            is_exact = is_exact && exact_[value];
            depth = std::max(depth, depth_[value]);
            call.operands.push_back(within_domain(value, rule, spec));
            types.push_back(program_.type(call.operands.back()));
        }
        const Program bound = bind_symbols(call, callee, types, program_.symbols);
        if (std::ranges::any_of(bound.results, [&](const Result &result) { return is_too_large(bound.type(result.value)); })) return false;
        for (const ValueId result : builder_.add(rule.op, call.operands, bound.nodes.back().attributes))
            if (program_.type(result).dtype != Dtype::f64) {
                keep(result, is_exact && keeps_exact(rule));
                depth_[result] = depth_of(rule, depth);
            }
        return true;
    }

    static bool is_too_large(const Type &type) { return element_count(type.shape).evaluate({{"b", 7}}) > most_elements; }

    /// Bools and integers come from exact operands alone.
    void keep(ValueId value, bool is_exact) {
        pool_.push_back(value);
        exact_[value] = is_exact || !is_float(program_.type(value).dtype);
    }

    /// Arithmetic is inlined, also through movement; other operators store what they make.
    static int depth_of(const Rule &rule, int operands) {
        if (rule.family == "movement" || rule.family == "index") return operands;
        return rule.family == "elementwise" || rule.family == "composite" ? operands + 1 : 0;
    }

    /// A value whose type unifies with `wanted`, or a new argument.
    ValueId choose(const Type &wanted, bool must_be_exact, Letters &letters) {
        std::vector<ValueId> fitting;
        for (const ValueId value : pool_) {
            Letters tried = letters;
            const Type &type = program_.type(value);
            if (type.dtype == wanted.dtype && depth_[value] < most_depth && (exact_[value] || !must_be_exact) &&
                unify(wanted.shape, type.shape, tried))
                fitting.push_back(value);
        }
        const bool takes_argument = fitting.empty() || chance(0.1);
        const ValueId value = takes_argument ? add_argument(wanted, letters) : pick(fitting);
        unify(wanted.shape, program_.type(value).shape, letters);
        return value;
    }

    static bool unify(const Extents &wanted, const Extents &got, Letters &letters) {
        if (wanted.size() != got.size()) return false;
        for (size_t axis = 0; axis < wanted.size(); axis++) {
            const std::vector<std::string> symbols = wanted[axis].symbols();
            const bool is_letter = symbols.size() == 1 && wanted[axis] == Extent::symbol(symbols[0]);
            const Extent right = is_letter ? letters.try_emplace(symbols[0], got[axis]).first->second : wanted[axis];
            if (!(right == got[axis])) return false;
        }
        return true;
    }

    ValueId add_argument(const Type &wanted, const Letters &letters) {
        Type type{wanted.dtype, {}};
        Letters known = letters;
        for (const Extent &extent : wanted.shape) {
            Extent sum;
            for (const auto &[monomial, coefficient] : extent.terms()) {
                Extent product = coefficient;
                for (const std::string &letter : monomial) {
                    if (!known.contains(letter)) known[letter] = chance(0.3) ? Extent::symbol("b") : Extent(pick(extents));
                    product = product * known.at(letter);
                }
                sum = sum + product;
            }
            type.shape.push_back(sum);
        }
        const ValueId value = add_value(program_, "x" + std::to_string(program_.arguments.size()), type);
        program_.arguments.push_back({value, type.dtype == Dtype::f32 && chance(0.3)});
        keep(value, true);
        return value;
    }

    /// Floats, indices and what has a domain are held in it.
    ValueId within_domain(ValueId value, const Rule &rule, const OperandSpec &spec) {
        const Type type = program_.type(value);
        const auto found = rule.check.domain.find(spec.name);
        const bool is_bounded = is_float(type.dtype) || spec.operand_class == OperandClass::index || found != rule.check.domain.end();
        if (!is_bounded || type.dtype == Dtype::boolean) return value;
        const auto [low, high] = found == rule.check.domain.end() ? std::pair(-2.0, 2.0) : found->second;
        const auto bound = [&](double number) {
            const double held = is_integer(type.dtype) ? saturate_integer(type.dtype, number) : number;
            return builder_.broadcast(builder_.constant(held, type.dtype), type.shape);
        };
        const ValueId lo = bound(low), hi = bound(high);
        return builder_.add_one("clamp", {lo, value, hi});
    }

    /// A symbol that no argument has would have no value.
    void drop_symbol() {
        const auto has_symbol = [&](const Argument &argument) {
            return std::ranges::any_of(program_.type(argument.value).shape, [](const Extent &extent) { return !extent.is_static(); });
        };
        if (std::ranges::none_of(program_.arguments, has_symbol)) program_.symbols.clear();
    }

    void add_results() {
        const std::vector<int> uses = count_uses(program_);
        for (const ValueId value : pool_) {
            const auto is_argument = [&](const Argument &argument) { return argument.value == value; };
            if (uses[value] > 0 || std::ranges::any_of(program_.arguments, is_argument)) continue;
            program_.results.push_back({"r" + std::to_string(program_.results.size()), value});
        }
    }

    std::mt19937 &random_;
    Program program_;
    Builder builder_{rules(), program_};
    std::vector<ValueId> pool_;
    std::map<ValueId, bool> exact_;
    std::map<ValueId, int> depth_; ///< 0 of arguments
};

double draw_element(Dtype dtype, std::mt19937 &random) {
    if (is_integer(dtype)) return random() % 4 == 0 ? double(random() % 5) : wrap_integer(dtype, double(random()));
    if (dtype == Dtype::boolean) return double(random() % 2);
    return random() % 16 == 0 ? 0 : double(std::uniform_real_distribution<float>(-2, 2)(random));
}

} // namespace

Program program_of_operators(std::mt19937 &random, int count) { return Draft(random).take(count); }

std::vector<Array> draw_inputs(const Program &program, std::mt19937 &random) {
    return draw_inputs(program, {{"b", 1 + int64_t(random() % 7)}}, random);
}

std::vector<Array> draw_inputs(const Program &program, const Extent::Bindings &sizes, std::mt19937 &random) {
    std::vector<Array> inputs = zero_inputs(program, sizes);
    for (size_t i = 0; i < inputs.size(); i++) {
        const bool is_scale = program.arguments[i].part.is_scale();
        for (double &element : inputs[i].data)
            element = is_scale ? (random() % 16 == 0 ? 0 : std::ldexp(1.0, int(random() % 5) - 2)) : draw_element(inputs[i].dtype, random);
    }
    return inputs;
}

} // namespace scalide

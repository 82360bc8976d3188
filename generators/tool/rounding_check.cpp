#include "tool/rounding_check.h"
#include "interpret/operation.h"
#include "transforms/analysis/origins.h"
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <set>

namespace scalide {

namespace {

using Numbers = std::vector<double>;

/// Returns true for a conversion to a low-precision format. The format of block scales is excluded because it has only powers of two.
bool narrows(const Operation &operation) {
    if (operation.op != "convert_element_type") return false;
    const Dtype to = operation.results[0].dtype, from = operation.operand(0).dtype;
    return is_narrow(to) && is_float(from) && from != to && format_of(to).mantissa_bits > 0;
}

/// Returns true if the operator rounds. The conversion after it is then exact.
bool rounds_before(const Operation &operation) { return operation.op == "round_by_bits"; }

/// A relative update below this limit counts as none, because it may be an error of f64.
constexpr double least_update = 0x1p-40;

/// Matrices next to each other, such as the weights of a layer, whose magnitudes differ by more than this are reported.
constexpr double unusual_ratio = 256;

/// Checks the nodes of a program, or of one of its regions.
class Checker {
public:
    Checker(const Program &program, const Directions &directions, const std::vector<Array> &inputs, RoundingCheck &check)
        : program_(program), directions_(directions), inputs_(inputs), check_(check), origins_(program, directions),
          producers_(producers(program)) {
        check_arguments();
        for (const Result &result : program.results)
            if (result.argument >= 0 && !result.part.is_scale() && is_float(program.type(result.value).dtype)) add_exact(result.value);
    }

    /// Returns the result of a node before rounding, in f64; nullptr if it is not known.
    const Array *exact_value(ValueId value) const {
        const auto exact = exact_.find(value);
        return exact == exact_.end() ? nullptr : &exact->second;
    }

    /// Returns the number of the argument of which the value is a copy; -1 if it is none.
    int copied_argument(ValueId value) const {
        if (producers_[value] < 0 || program_.nodes[producers_[value]].op != "reshape") return -1;
        const auto found = std::ranges::find(program_.arguments, program_.nodes[producers_[value]].operands[0], &Argument::value);
        return found == program_.arguments.end() ? -1 : static_cast<int>(found - program_.arguments.begin());
    }

    /// Returns the node with regions that makes the value; nullptr if there is none.
    const Node *owner_of(ValueId value) const {
        const Node *node = producers_[value] < 0 ? nullptr : &program_.nodes[producers_[value]];
        return node == nullptr || node->regions.empty() ? nullptr : node;
    }

    void run(Operation &operation) {
        find_run(operation.op)(operation);
        if (narrows(operation)) count(operation);
        if (rounds_before(operation)) rounded_.insert_or_assign(operation.node->results[0], Before{operation.operand(0).data});
        if (const auto limited = limited_operand(program_, producers_, *operation.node)) add_limited(operation, *limited);
        if (exact_nodes_.contains(operation.node)) exact_.insert_or_assign(operation.node->results[0], exact(operation));
    }

    /// Must be called after the whole program has run. `find_exact` returns the exact value of a result of the program, or nullptr.
    template<typename FindExact>
    void compare_states(const std::vector<Array> &outputs, const FindExact &find_exact) {
        for (size_t i = 0; i < program_.results.size(); i++) {
            const Result &result = program_.results[i];
            if (result.argument < 0 || result.part.is_scale() || !is_float(outputs[i].dtype)) continue;
            if (program_.arguments[result.argument].initial) continue; // a scale or an amax history, which is no trained array
            const bool has_scale = program_.arguments[result.argument].part != ArrayPart();
            const auto scale = [&](const std::vector<Array> &arrays, size_t data) { return has_scale ? arrays[data + 1].data[0] : 1.0; };
            const Scaled old{inputs_[result.argument].data, scale(inputs_, result.argument)}, made{outputs[i].data, scale(outputs, i)};
            const Origin origin = origins_.of(result.value);
            StateCount row{.tensor = result.part.array(result.name),
                           .format = outputs[i].dtype,
                           .scope = origin.scope,
                           .direction = origin.direction,
                           .elements = outputs[i].data.size(),
                           .source = origin.location};
            const Array *exact = find_exact(result.value); // an argument that is passed through has no exact value and did not change
            if (exact != nullptr) {
                count_unmoved(old, made, exact->data, row);
            } else if (owner_of(result.value) != nullptr) { // a loop or a branch
                check_.uncompared.push_back(row.tensor);
                continue;
            } else {
                row.zero_updates = row.elements;
            }
            check_.states.push_back(std::move(row));
        }
    }

private:
    struct Scaled {
        const Numbers &data;
        double scale;
    };

    /// The operator that computes a new state, and the operators that convert it to its stored form, also run in f64.
    void add_exact(ValueId value) {
        while (value >= 0 && producers_[value] >= 0) {
            const Node &node = program_.nodes[producers_[value]];
            exact_nodes_.insert(&node);
            value = formed_operand(program_, producers_, node);
        }
    }

    /// Computes the result in f64 without rounding. Operands are in f64 if their exact values are known.
    Array exact(const Operation &operation) const {
        Operation run{operation.op, operation.attributes, operation.operands, {}, Mode::real, operation.node};
        for (size_t i = 0; i < run.operands.size(); i++) {
            const auto known = exact_.find(operation.node->operands[i]);
            if (known != exact_.end()) run.operands[i] = &known->second;
        }
        run.results.push_back({operation.results[0].dtype, operation.results[0].shape, {}});
        if (rounds_before(operation)) {
            run.results[0].data = run.operand(0).data;
        } else {
            find_run(run.op)(run);
        }
        return std::move(run.results[0]);
    }

    /// Values before an operator that rounds or limits them for a conversion.
    struct Before {
        Numbers data;
        double largest = 0; ///< the limit; 0: none
    };

    /// Keeps the values before a limit. The second of two limits (min after max) keeps the values before both.
    void add_limited(const Operation &operation, const Limited &limited) {
        const auto found = rounded_.find(limited.operand);
        const bool is_second = found != rounded_.end() && found->second.largest == limited.largest;
        const size_t number = operation.node->operands[0] == limited.operand ? 0 : 1;
        rounded_.insert_or_assign(operation.node->results[0],
                                  is_second ? found->second : Before{operation.operand(number).data, limited.largest});
    }

    /// Returns the operand of a conversion before any rounding, and before a limit to the largest number of the format.
    const Numbers &before(const Operation &operation, double largest) const {
        const Numbers *data = &operation.operand(0).data;
        for (ValueId value = operation.node->operands[0]; value >= 0;) {
            const auto found = rounded_.find(value);
            if (found == rounded_.end() && (producers_[value] < 0 || !keeps_numbers(program_.nodes[producers_[value]]))) break;
            if (found != rounded_.end()) {
                if (found->second.largest != 0 && found->second.largest != largest) break;
                data = &found->second.data;
            }
            value = program_.nodes[producers_[value]].operands[0];
        }
        return *data;
    }

    /// True for the operators between a limit and the conversion. They keep the order of the elements, and round less than the conversion.
    bool keeps_numbers(const Node &node) const {
        return node.op == "reshape" || (node.op == "convert_element_type" && !is_narrow(program_.type(node.operands[0]).dtype));
    }

    void count(const Operation &operation) {
        const Dtype dtype = operation.results[0].dtype;
        const FormatSpec &format = format_of(dtype);
        const double largest = decode(format, format.max_code), smallest = std::ldexp(1.0, 1 - format.bias);
        RoundingCount row{.tensor = origins_.of(operation.node->operands[0]).tensor,
                          .format = dtype,
                          .scope = operation.node->scope,
                          .direction = directions_.of(*operation.node),
                          .elements = operation.results[0].data.size(),
                          .source = operation.node->location};
        const Numbers &given = before(operation, largest), &made = operation.results[0].data;
        check_scale(operation, given, largest);
        for (size_t i = 0; i < made.size(); i++) {
            row.zeros += made[i] == 0 && given[i] != 0;
            row.saturated += is_beyond(format, std::abs(given[i])) && (std::isfinite(given[i]) || std::isfinite(made[i]));
            row.subnormals += made[i] != 0 && std::abs(made[i]) < smallest;
        }
        if (operation.step >= 0) return add_step(operation, std::move(row));
        if (std::ranges::find(check_.roundings, row) == check_.roundings.end()) check_.roundings.push_back(std::move(row));
    }

    /// Adds the counts of a conversion in one step of a loop to those of the other steps.
    void add_step(const Operation &operation, RoundingCount row) {
        const auto [known, is_new] = rows_of_loops_.try_emplace(operation.node, check_.roundings.size());
        if (row.zeros + row.saturated > 0) row.first_step = operation.step;
        row.steps = 1;
        if (is_new) return check_.roundings.push_back(std::move(row));
        RoundingCount &sum = check_.roundings[known->second];
        sum.elements += row.elements;
        sum.zeros += row.zeros;
        sum.saturated += row.saturated;
        sum.subnormals += row.subnormals;
        sum.steps++;
        if (sum.first_step < 0) sum.first_step = row.first_step;
    }

    static void count_unmoved(const Scaled &old, const Scaled &made, const Numbers &exact, StateCount &row) {
        for (size_t i = 0; i < made.data.size(); i++) {
            const double before = old.data[i] * old.scale, after = made.data[i] * made.scale, wanted = exact[i] * made.scale;
            if (before != after) continue;
            ++(std::abs(wanted - before) > least_update * std::abs(before) ? row.unmoved : row.zero_updates);
        }
    }

    void add_misfit(const ScaleMisfit &misfit) {
        const auto is_same = [&](const ScaleMisfit &known) { return known.tensor == misfit.tensor && known.problem == misfit.problem; };
        if (std::ranges::none_of(check_.misfits, is_same)) check_.misfits.push_back(misfit);
    }

    /// Checks the scales of scaled arguments, and the amax histories of the policy.
    void check_arguments() {
        std::map<std::string, std::vector<double>> siblings; // amax of the matrices with one prefix, `params.block0`
        const auto prefix = [](const std::string &name) { return name.substr(0, name.rfind('.') + 1); };
        for (const bool is_second : {false, true}) {
            for (size_t i = 0; i + 1 < program_.arguments.size(); i++) {
                const Argument &argument = program_.arguments[i];
                if (argument.part.kind != ArrayPart::Kind::data) continue;
                const std::string &name = argument.part.array(program_.value_name(argument.value));
                const double scale = inputs_[i + 1].data[0], amax = amax_of(inputs_[i].data) * scale;
                std::vector<double> &group = siblings[prefix(name)];
                const bool counts = inputs_[i].shape.size() >= 2 && amax > 0 && std::isfinite(amax);
                if (!is_second) {
                    if (counts) group.push_back(amax);
                    if (scale == 0 && amax_of(inputs_[i].data) > 0) add_misfit({name, scale, amax, "is 0, but the data is not"});
                    if (!std::isfinite(scale)) add_misfit({name, scale, amax, "is not finite"});
                } else if (counts && group.size() >= 3) {
                    std::ranges::nth_element(group, group.begin() + group.size() / 2);
                    const double ratio = amax / group[group.size() / 2];
                    if (ratio > unusual_ratio || ratio * unusual_ratio < 1)
                        add_misfit({name, scale, amax, fmt::format("amax is {:.3g} times the median of '{}*'", ratio, prefix(name))});
                }
            }
        }
        for (size_t i = 0; i < program_.arguments.size(); i++) {
            const Argument &argument = program_.arguments[i];
            if (!argument.initial || inputs_[i].shape.size() != 1 || !is_float(inputs_[i].dtype)) continue;
            if (std::ranges::all_of(inputs_[i].data, [](double number) { return std::isfinite(number); })) continue;
            add_misfit({program_.value_name(argument.value), std::nan(""), std::nan(""),
                        "the history holds an infinity or a NaN, so a scale from its maximum does not change"});
        }
    }

    static double amax_of(const Numbers &numbers) {
        double amax = 0;
        for (const double number : numbers)
            if (std::isfinite(number)) amax = std::max(amax, std::abs(number));
        return amax;
    }

    /// A scale that the data of this run does not decide: state of the policy, or a constant.
    struct GivenScale {
        double scale = 0;
        bool is_first = false; ///< it has the value that the policy starts with
        bool is_state = false; ///< the policy computes it from the amaxes of earlier runs
    };

    std::optional<GivenScale> given_scale(ValueId factor) const {
        while (producers_[factor] >= 0) {
            const Node &node = program_.nodes[producers_[factor]];
            if (node.op == "constant") return GivenScale{to_number(node.attributes.at("value"))};
            if (node.op != "broadcast_in_dim" && node.op != "reshape") return {};
            factor = node.operands[0];
        }
        for (size_t i = 0; i < program_.arguments.size(); i++) {
            const Argument &argument = program_.arguments[i];
            if (argument.value == factor && argument.initial)
                return GivenScale{inputs_[i].data[0], inputs_[i].data[0] == *argument.initial, true};
        }
        return {};
    }

    /// Compares the scale by which data is divided before a conversion with the amax of the data. Only a scale of scaled_by counts, which
    /// limits the data: a program may divide by other numbers.
    void check_scale(const Operation &operation, const Numbers &given, double largest) {
        std::optional<GivenScale> scale;
        bool is_limited = false;
        for (ValueId value = operation.node->operands[0]; !scale && value >= 0 && producers_[value] >= 0;) {
            const Node &node = program_.nodes[producers_[value]];
            is_limited |= limited_operand(program_, producers_, node).has_value();
            if (node.op == "div") {
                scale = is_limited ? given_scale(node.operands[1]) : std::nullopt;
                if (!scale) return;
            }
            value = node.op == "mul" ? -1 : formed_operand(program_, producers_, node);
        }
        if (!scale) return;
        const double peak = amax_of(given), ratio = peak / largest;
        const std::string tensor = origins_.of(operation.node->operands[0]).tensor;
        if (scale->is_state && !std::ranges::all_of(given, [](double number) { return std::isfinite(number); }))
            add_misfit({tensor, scale->scale, peak * scale->scale,
                        "does not follow this run: the tensor has an infinity or a NaN, so its amax is not finite"});
        if (ratio > 2) add_misfit({tensor, scale->scale, peak * scale->scale, fmt::format("is {:.3g} times too small", ratio)});
        if (peak > 0 && ratio * 32 < 1 && !scale->is_first)
            add_misfit({tensor, scale->scale, peak * scale->scale, fmt::format("is {:.3g} times too large", 1 / ratio)});
    }

    const Program &program_;
    const Directions &directions_;
    const std::vector<Array> &inputs_;
    RoundingCheck &check_;
    const Origins origins_;
    const std::vector<int> producers_;
    std::map<ValueId, Before> rounded_; ///< results of operators that round or limit, with the values before
    std::set<const Node *> exact_nodes_;
    std::map<ValueId, Array> exact_;               ///< their results
    std::map<const Node *, size_t> rows_of_loops_; ///< by conversion in a loop: its row in RoundingCheck::roundings
};

/// The checkers of a program and of its regions.
class Checkers {
public:
    Checkers(const Program &program, const std::vector<Array> &inputs, RoundingCheck &check)
        : program_(program), directions_(program), check_(check), main_(program, directions_, inputs, check) {}

    void run(Operation &operation) { checker(*operation.program).run(operation); }

    void compare_states(const std::vector<Array> &outputs) {
        main_.compare_states(outputs, [this](ValueId value) { return exact_value(program_, value); });
    }

private:
    Checker &checker(const Program &owner) {
        if (&owner == &program_) return main_;
        std::unique_ptr<Checker> &found = regions_[&owner];
        if (!found) found = std::make_unique<Checker>(owner, directions_, nothing_, check_);
        return *found;
    }

    /// A straight region runs once, so the exact value of its result is that of the node.
    const Array *exact_value(const Program &owner, ValueId value) {
        const Node *node = checker(owner).owner_of(value);
        if (node == nullptr) return checker(owner).exact_value(value);
        if (node->op != "straight") return nullptr;
        const auto index = std::ranges::find(node->results, value) - node->results.begin();
        const Program &region = *node->regions[0];
        const ValueId made = region.results[static_cast<size_t>(index)].value;
        const int argument = checker(region).copied_argument(made);
        return argument < 0 ? exact_value(region, made) : exact_value(owner, node->operands[static_cast<size_t>(argument)]);
    }

    const Program &program_;
    const Directions directions_;
    RoundingCheck &check_;
    const std::vector<Array> nothing_;
    Checker main_;
    std::map<const Program *, std::unique_ptr<Checker>> regions_;
};

} // namespace

std::vector<Array> interpret_and_check(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                       RoundingCheck &check) {
    Checkers checkers(program, inputs, check);
    std::vector<Array> outputs = interpret(program, inputs, rulebook, Mode::stored, [&](Operation &operation) { checkers.run(operation); });
    checkers.compare_states(outputs);
    return outputs;
}

} // namespace scalide

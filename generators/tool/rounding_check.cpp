#include "tool/rounding_check.h"
#include "interpret/operation.h"
#include "transforms/origins.h"
#include <algorithm>
#include <cmath>
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

/// Returns true if rounding to nearest would need a number above the largest number of the format. A number that is only a rounding error
/// above the largest, such as an amax divided by its scale, is not beyond it.
bool is_beyond(const FormatSpec &format, double magnitude) {
    const double largest = decode(format, format.max_code);
    const double half_way = largest + std::ldexp(0.5, std::ilogb(largest) - format.mantissa_bits);
    return magnitude > half_way || (magnitude == half_way && format.max_code % 2 == 1); // a tie goes to the even bit pattern
}

/// A relative update below this limit counts as none, because it may be an error of f64.
constexpr double least_update = 0x1p-40;

class Checker {
public:
    Checker(const Program &program, RoundingCheck &check)
        : program_(program), check_(check), origins_(program), producers_(producers(program)) {
        for (const Result &result : program.results)
            if (result.argument >= 0 && !result.part.is_scale() && is_float(program.type(result.value).dtype)) add_exact(result.value);
    }

    void run(Operation &operation) {
        find_run(operation.op)(operation);
        if (narrows(operation)) count(operation);
        if (rounds_before(operation)) rounded_.insert_or_assign(operation.node->results[0], Before{operation.operand(0).data});
        if (const auto limited = limited_operand(program_, producers_, *operation.node)) add_limited(operation, *limited);
        if (exact_nodes_.contains(operation.node)) exact_.insert_or_assign(operation.node->results[0], exact(operation));
    }

    /// Must be called after the whole program has run.
    void compare_states(const std::vector<Array> &inputs, const std::vector<Array> &outputs) {
        for (size_t i = 0; i < program_.results.size(); i++) {
            const Result &result = program_.results[i];
            if (result.argument < 0 || result.part.is_scale() || !is_float(outputs[i].dtype)) continue;
            const bool has_scale = program_.arguments[result.argument].part != ArrayPart();
            const auto scale = [&](const std::vector<Array> &arrays, size_t data) { return has_scale ? arrays[data + 1].data[0] : 1.0; };
            const Scaled old{inputs[result.argument].data, scale(inputs, result.argument)}, made{outputs[i].data, scale(outputs, i)};
            StateCount row{result.part.array(result.name), outputs[i].dtype, outputs[i].data.size(), 0, origins_.of(result.value).location};
            const auto exact = exact_.find(result.value); // an argument that is passed through has no exact value and did not change
            if (exact != exact_.end()) row.unmoved = unmoved(old, made, exact->second.data);
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
        const Origin origin = origins_.of(operation.node->operands[0]);
        RoundingCount row{origin.tensor, dtype, operation.results[0].data.size(), 0, 0, 0, operation.node->location};
        const Numbers &given = before(operation, largest), &made = operation.results[0].data;
        for (size_t i = 0; i < made.size(); i++) {
            row.zeros += made[i] == 0 && given[i] != 0;
            row.saturated += is_beyond(format, std::abs(given[i])) && (std::isfinite(given[i]) || std::isfinite(made[i]));
            row.subnormals += made[i] != 0 && std::abs(made[i]) < smallest;
        }
        if (std::ranges::find(check_.roundings, row) == check_.roundings.end()) check_.roundings.push_back(std::move(row));
    }

    static size_t unmoved(const Scaled &old, const Scaled &made, const Numbers &exact) {
        size_t count = 0;
        for (size_t i = 0; i < made.data.size(); i++) {
            const double before = old.data[i] * old.scale, after = made.data[i] * made.scale, wanted = exact[i] * made.scale;
            count += before == after && std::abs(wanted - before) > least_update * std::abs(before);
        }
        return count;
    }

    const Program &program_;
    RoundingCheck &check_;
    const Origins origins_;
    const std::vector<int> producers_;
    std::map<ValueId, Before> rounded_; ///< results of operators that round or limit, with the values before
    std::set<const Node *> exact_nodes_;
    std::map<ValueId, Array> exact_; ///< their results
};

} // namespace

std::vector<Array> interpret_and_check(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                       RoundingCheck &check) {
    Checker checker(program, check);
    std::vector<Array> outputs = interpret(program, inputs, rulebook, Mode::stored, [&](Operation &operation) { checker.run(operation); });
    checker.compare_states(inputs, outputs);
    return outputs;
}

} // namespace scalide

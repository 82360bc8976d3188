#include "tool/value_ranges.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace scalide {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

using Ranges = std::vector<ValueRange>;

ValueRange known(double low, double high) {
    return std::isnan(low) || std::isnan(high) ? ValueRange{} : ValueRange{.low = low, .high = high, .is_known = true};
}

/// Returns the number of elements; a symbolic extent counts as 1.
double count_of(const Program &program, ValueId value) {
    double product = 1;
    for (const Extent &extent : program.type(value).shape)
        if (extent.is_static()) product *= double(extent.value());
    return std::max(1.0, product);
}

/// One operator whose range is computed.
struct RangedNode {
    const Program &program;
    const Node &node;
    int index;
    Ranges operands; ///< of its float operands
    const std::vector<int> &producers;
    Suspect &why; ///< why the result may be infinite or NaN; without a reason, it is not

    const ValueRange &operator[](size_t number) const { return operands[number]; }

    ValueRange suspect(std::string reason) const {
        why.reason = std::move(reason);
        return {};
    }
    /// Returns the range of a result that is probably finite.
    ValueRange probably(const ValueRange &range, std::string reason) const {
        why = {why.node, std::move(reason), true};
        return range;
    }
};

using Transfer = std::function<ValueRange(const RangedNode &)>;

ValueRange joined(const RangedNode &node) {
    ValueRange whole = node[0];
    for (const ValueRange &each : node.operands) {
        whole.is_known &= each.is_known;
        whole.low = std::min(whole.low, each.low);
        whole.high = std::max(whole.high, each.high);
        whole.infinity = std::max(whole.infinity, each.infinity);
    }
    whole.has_peak = false;
    return whole;
}

bool is_zero(const ValueRange &range) { return range.is_known && range.low == 0 && range.high == 0; }

ValueRange product(const ValueRange &a, const ValueRange &b) {
    if (is_zero(a) || is_zero(b)) return known(0, 0);
    const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    return a.is_known && b.is_known ? known(low, high) : ValueRange{};
}

ValueRange squared(const ValueRange &a) {
    const double magnitude = a.magnitude(), least = a.low > 0 ? a.low : a.high < 0 ? -a.high : 0;
    return {.low = least * least, .high = magnitude * magnitude, .is_known = a.is_known};
}

ValueRange times_count(const ValueRange &a, double count) {
    return a.is_known ? known(std::min(a.low, a.low * count), std::max(a.high, a.high * count)) : ValueRange{};
}

/// The value without operators that only copy it. JAX writes max(-inf, max(x)) for the maximum of a row.
ValueId copied(const Program &program, const std::vector<int> &made, ValueId value) {
    value = copied_value(program, made, value);
    if (made[value] < 0 || program.nodes[static_cast<size_t>(made[value])].op != "max") return value;
    for (const bool is_second : {false, true}) {
        const std::vector<ValueId> &operands = program.nodes[static_cast<size_t>(made[value])].operands;
        const int limit = made[copied_value(program, made, operands[is_second ? 1 : 0])];
        if (limit >= 0 && program.nodes[static_cast<size_t>(limit)].op == "constant" &&
            std::isinf(to_number(program.nodes[static_cast<size_t>(limit)].attributes.at("value"))))
            return copied_value(program, made, operands[is_second ? 0 : 1]);
    }
    return value;
}

/// True for x - max(x), the first step of a softmax.
bool subtracts_maximum(const RangedNode &node) {
    const Program &program = node.program;
    const std::vector<int> &made = node.producers;
    const ValueId peak = copied(program, made, node.node.operands[1]);
    if (made[peak] < 0 || program.nodes[made[peak]].op != "reduce_max") return false;
    return copied(program, made, program.nodes[made[peak]].operands[0]) == copied(program, made, node.node.operands[0]);
}

ValueRange range_of_addition(const RangedNode &node) {
    ValueRange made = node[0].is_known && node[1].is_known ? known(node[0].low + node[1].low, node[0].high + node[1].high) : ValueRange{};
    made.infinity = std::max(node[0].infinity, node[1].infinity);
    return made;
}

ValueRange difference_of(const RangedNode &node) {
    const ValueRange &a = node[0], &b = node[1];
    if ((a.low == -unlimited && b.low == -unlimited && a.is_known && b.is_known) ||
        (a.high == unlimited && b.high == unlimited && a.is_known && b.is_known)) {
        const int origin = std::max(a.infinity, b.infinity);
        const Node &writer = node.program.nodes[static_cast<size_t>(std::max(origin, 0))];
        return node.suspect(fmt::format("which subtracts infinities{}",
                                        origin < 0 ? ""
                                                   : fmt::format(" that {} in {} writes, if a whole row has them", writer.op,
                                                                 writer.scope.empty() ? "the program" : writer.scope)));
    }
    ValueRange made = a.is_known && b.is_known ? known(a.low - b.high, a.high - b.low) : ValueRange{};
    if (subtracts_maximum(node)) {
        made.low = a.is_known ? std::max(made.low, std::min(0.0, a.low - a.high)) : made.low;
        made.high = 0;
        made.is_known = made.has_peak = true;
    }
    made.infinity = a.infinity;
    return made;
}

ValueRange quotient_of(const RangedNode &node) {
    const ValueRange &divisor = node[1];
    if (divisor.low <= 0 && divisor.high >= 0) return node.suspect("whose divisor can be 0");
    return product(node[0], known(1 / divisor.high, 1 / divisor.low));
}

ValueRange power_of(const RangedNode &node) {
    const double exponent = to_number(node.node.attributes.at("y"));
    const ValueRange &base = node[0];
    if (exponent < 0 && base.low <= 0 && base.high >= 0) return node.suspect("whose base can be 0");
    if (!base.is_known) return {};
    const double magnitude = std::pow(exponent < 0 ? std::min(std::abs(base.low), std::abs(base.high)) : base.magnitude(), exponent);
    return std::fmod(exponent, 2) == 0 ? known(0, magnitude) : known(-magnitude, magnitude);
}

ValueRange exponential(const RangedNode &node) {
    ValueRange made = known(std::exp(node[0].low), std::exp(node[0].high));
    made.is_known = node[0].is_known;
    made.has_peak = node[0].has_peak;
    return made;
}

ValueRange sum_of(const RangedNode &node) {
    ValueRange made = times_count(node[0], count_of(node.program, node.node.operands[0]) / count_of(node.program, node.node.results[0]));
    if (node[0].has_peak && node[0].low >= 0)
        made.low = std::max(made.low, node[0].high);
    else if (node[0].low >= 0)
        made.low = node[0].low;
    return made;
}

/// Returns the number of products in each sum of a matmul. A convolution has at most the elements of its filter.
double summed(const RangedNode &node) {
    const ValueId lhs = node.node.operands[0];
    if (node.node.op != "dot_general") return count_of(node.program, node.node.operands[1]);
    double product = 1;
    for (const int64_t axis : to_integers(node.node.attributes.at("contract").list[0]))
        if (const Extent &extent = node.program.type(lhs).shape[static_cast<size_t>(axis)]; extent.is_static())
            product *= double(extent.value());
    return product;
}

ValueRange sum_of_products(const RangedNode &node) { return times_count(product(node[0], node[1]), summed(node)); }

ValueRange constant_of(const RangedNode &node) {
    const double value = to_number(node.node.attributes.at("value"));
    ValueRange made = known(value, value);
    if (std::isinf(value)) made.infinity = node.index;
    return made;
}

ValueRange monotone(const RangedNode &node, double (*function)(double)) {
    return node[0].is_known ? known(function(node[0].low), function(node[0].high)) : ValueRange{};
}

/// The second moments of an optimizer are not negative, but their range says so only if the step computes them.
ValueRange root_of(const RangedNode &node) {
    const ValueRange root = {
        .low = std::sqrt(std::max(0.0, node[0].low)), .high = std::sqrt(std::max(0.0, node[0].high)), .is_known = node[0].is_known};
    return node[0].low < 0 ? node.probably(root, "whose operand can be negative") : root;
}

ValueRange at_least_zero(double low, double high, bool is_known) { return {.low = std::max(0.0, low), .high = high, .is_known = is_known}; }

Transfer within(double low, double high) {
    return [=](const RangedNode &) { return known(low, high); };
}

double rectified(double number) { return std::max(0.0, number); }

/// The range of min or max. A constant limit writes no infinity: max(-inf, x) is x.
ValueRange limited(const RangedNode &node, double low, double high) {
    ValueRange made = {.low = low, .high = high, .is_known = node[0].is_known && node[1].is_known};
    for (const ValueRange &each : node.operands)
        if (each.low != each.high) made.infinity = std::max(made.infinity, each.infinity);
    return made;
}

/// Only operators that keep rows keep the largest element of each row.
ValueRange copy_of(const RangedNode &node) {
    ValueRange made = node[0];
    made.has_peak &= node.node.op == "convert_element_type" || node.node.op == "stop_gradient" || node.node.op == "reshape";
    return made;
}

/// In the mode fill_or_drop, an index out of range gives NaN.
ValueRange gathered(const RangedNode &node) {
    const auto mode = node.node.attributes.find("mode");
    const bool can_fill = mode != node.node.attributes.end() && mode->second == Attribute("fill_or_drop");
    return can_fill ? node.probably(copy_of(node), "whose indices can be out of range") : copy_of(node);
}

/// The ranges of operators that move numbers.
const std::map<std::string, Transfer> movement_ranges = {
    {"constant", constant_of},
    {"broadcast_in_dim", copy_of},
    {"reshape", copy_of},
    {"transpose", copy_of},
    {"convert_element_type", copy_of},
    {"stop_gradient", copy_of},
    {"slice", joined},
    {"rev", copy_of},
    {"squeeze", copy_of},
    {"expand_dims", copy_of},
    {"reduce_max", copy_of},
    {"reduce_min", copy_of},
    {"gather", gathered},
    {"dynamic_slice", copy_of},
    {"take", copy_of},
    {"select_n", joined},
    {"concatenate", joined},
    {"pad", joined},
};

/// The ranges of arithmetic.
const std::map<std::string, Transfer> arithmetic_ranges = {
    {"add", range_of_addition},
    {"sub", difference_of},
    {"mul",
     [](const RangedNode &node) { return node.node.operands[0] == node.node.operands[1] ? squared(node[0]) : product(node[0], node[1]); }},
    {"square", [](const RangedNode &node) { return squared(node[0]); }},
    {"div", quotient_of},
    {"integer_pow", power_of},
    {"neg", [](const RangedNode &node) { return node[0].is_known ? known(-node[0].high, -node[0].low) : ValueRange{}; }},
    {"abs",
     [](const RangedNode &node) { return at_least_zero(std::max(node[0].low, -node[0].high), node[0].magnitude(), node[0].is_known); }},
    {"max", [](const RangedNode &node) { return limited(node, std::max(node[0].low, node[1].low), std::max(node[0].high, node[1].high)); }},
    {"min", [](const RangedNode &node) { return limited(node, std::min(node[0].low, node[1].low), std::min(node[0].high, node[1].high)); }},
    {"reduce_sum", sum_of},
    {"cumsum", [](const RangedNode &node) { return times_count(node[0], count_of(node.program, node.node.operands[0])); }},
    {"dot_general", sum_of_products},
    {"conv_general_dilated", sum_of_products},
};

/// The ranges of functions. The numbers of other operators are unknown.
const std::map<std::string, Transfer> function_ranges = {
    {"exp", exponential},
    {"log",
     [](const RangedNode &node) {
         return node[0].low <= 0 ? node.suspect(node[0].low < 0 ? "whose operand can be 0 or negative" : "whose operand can be 0")
                                 : monotone(node, std::log);
     }},
    {"log1p",
     [](const RangedNode &node) { return node[0].low <= -1 ? node.suspect("whose operand can be -1") : monotone(node, std::log1p); }},
    {"sqrt", root_of},
    {"rsqrt",
     [](const RangedNode &node) {
         return node[0].low <= 0 ? node.suspect("whose operand can be 0") : known(1 / std::sqrt(node[0].high), 1 / std::sqrt(node[0].low));
     }},
    {"pow", [](const RangedNode &node) { return node[0].low <= 0 ? node.suspect("whose base can be 0 or negative") : ValueRange{}; }},
    {"relu", [](const RangedNode &node) { return at_least_zero(node[0].low, rectified(node[0].high), node[0].is_known); }},
    {"tanh", within(-1, 1)},
    {"erf", within(-1, 1)},
    {"sin", within(-1, 1)},
    {"cos", within(-1, 1)},
    {"sign", within(-1, 1)},
    {"logistic", within(0, 1)},
    {"softmax", within(0, 1)},
};

const Transfer *transfer_of(const std::string &op) {
    for (const auto *table : {&movement_ranges, &arithmetic_ranges, &function_ranges})
        if (const auto found = table->find(op); found != table->end()) return &found->second;
    return nullptr;
}

} // namespace

ValueId copied_value(const Program &program, const std::vector<int> &producers, ValueId value) {
    static const std::set<std::string> copies = {"broadcast_in_dim", "reshape",     "transpose", "convert_element_type",
                                                 "stop_gradient",    "expand_dims", "squeeze"};
    while (producers[value] >= 0 && copies.contains(program.nodes[static_cast<size_t>(producers[value])].op))
        value = program.nodes[static_cast<size_t>(producers[value])].operands[0];
    return value;
}

double smallest_of(Dtype dtype) {
    if (dtype == Dtype::f32) return std::numeric_limits<float>::denorm_min();
    const FormatSpec &format = format_of(dtype);
    return std::ldexp(1.0, 1 - format.bias - (format.has_subnormals ? format.mantissa_bits : 0));
}

double largest_of(Dtype dtype) {
    return dtype == Dtype::f32 ? std::numeric_limits<float>::max() : decode(format_of(dtype), format_of(dtype).max_code);
}

namespace {

/// Loops and branches: an operator of the body can be the cause. Otherwise the numbers grow from step to step.
ValueRange range_of_loop(const RangedNode &node) {
    for (const Region &region : node.node.regions)
        for (const Result &result : region->results)
            for (const Suspect &suspect : ValueRanges(*region, {}).suspects(result.value))
                if (!suspect.is_weak)
                    return node.suspect(
                        fmt::format("in which {} can make it, {}", region->nodes[static_cast<size_t>(suspect.node)].op, suspect.reason));
    return node.probably({}, node.node.op == "switch" ? "which is a branch" : "a loop whose numbers can grow in each of its steps");
}

/// Returns the values whose elements a node reads. A slice of a concatenation, such as one state of a loop, reads some of its operands.
std::vector<ValueId> read_values(const Program &program, const std::vector<int> &producers, const Node &node) {
    const int made = producers[node.operands.empty() ? 0 : node.operands[0]];
    if (node.op != "slice" || made < 0 || program.nodes[static_cast<size_t>(made)].op != "concatenate") return node.operands;
    const Node &joins = program.nodes[static_cast<size_t>(made)];
    const auto axis = static_cast<size_t>(to_number(joins.attributes.at("dimension")));
    const Extent start = to_extents(node.attributes.at("start"))[axis], limit = to_extents(node.attributes.at("limit"))[axis];
    std::vector<ValueId> read;
    int64_t begin = 0;
    for (const ValueId operand : joins.operands) {
        const Extent &extent = program.type(operand).shape[axis];
        if (!extent.is_static() || !start.is_static() || !limit.is_static()) return node.operands;
        const int64_t end = begin + extent.value();
        if (begin < limit.value() && end > start.value()) read.push_back(operand);
        begin = end;
    }
    return read;
}

} // namespace

ValueRange ValueRanges::of_node(int index, Suspect &suspect) const {
    const Node &node = program_.nodes[static_cast<size_t>(index)];
    RangedNode ranged{program_, node, index, {}, producers_, suspect};
    for (const ValueId operand : read_values(program_, producers_, node))
        if (is_float(program_.type(operand).dtype)) ranged.operands.push_back(ranges_.at(operand));
    static const std::set<std::string> products = {"mul", "dot_general", "conv_general_dilated"};
    if (products.contains(node.op) && std::ranges::any_of(ranged.operands, is_zero)) return known(0, 0);
    if (std::ranges::any_of(ranged.operands, &ValueRange::is_suspect)) return {.is_suspect = true};
    if (!node.regions.empty()) return range_of_loop(ranged);
    const Transfer *transfer = transfer_of(node.op == "add_any" ? "add" : node.op);
    ValueRange made = transfer == nullptr || (ranged.operands.empty() && node.op != "constant") ? ValueRange{} : (*transfer)(ranged);
    const Dtype dtype = program_.type(node.results[0]).dtype;
    if (!suspect.reason.empty() || !is_float(dtype) || dtype == Dtype::f64) return made;
    if (made.infinity >= 0 && node.op == "select_n") made.infinity = index;
    const double least = smallest_of(dtype) / 2; // smaller numbers round to 0
    if (std::abs(made.low) < least) made.low = 0;
    if (std::abs(made.high) < least) made.high = 0;
    const double largest = largest_of(dtype);
    const bool is_infinite_before =
        std::ranges::any_of(ranged.operands, [](const ValueRange &each) { return std::isinf(each.magnitude()); });
    if (made.is_known && made.magnitude() > largest && !(std::isinf(made.magnitude()) && is_infinite_before) && node.op != "constant")
        suspect.reason = fmt::format("whose result can reach {:.4g}, and {} ends at {:.6g}", made.magnitude(), to_string(dtype), largest);
    else if (!made.is_known && node.op == "exp")
        ranged.probably(made, "whose operand can be too large");
    return made;
}

/// Computes the ranges of the value and of all values before it, up to values that are known.
void ValueRanges::visit(ValueId value) {
    std::vector<ValueId> open{value};
    std::set<int> nodes;
    for (std::set<ValueId> seen{value}; !open.empty();) {
        const ValueId next = open.back();
        open.pop_back();
        const auto amax = amax_.find(next);
        if (ranges_.contains(next)) continue;
        if (amax != amax_.end() && producers_[next] >= 0 && amax->second > largest_of(program_.type(next).dtype)) {
            suspects_.push_back(
                {producers_[next], fmt::format("whose largest magnitude is {:.6g}, and {} ends at {:.6g}", amax->second,
                                               to_string(program_.type(next).dtype), largest_of(program_.type(next).dtype))});
            ranges_[next] = {.is_suspect = true};
        } else if (next != value && amax != amax_.end()) {
            ranges_[next] = known(-amax->second, amax->second);
        } else if (producers_[next] < 0) {
            ranges_[next] = {};
        } else if (nodes.insert(producers_[next]).second) {
            for (const ValueId operand : program_.nodes[producers_[next]].operands)
                if (seen.insert(operand).second) open.push_back(operand);
        }
    }
    for (const int index : nodes) { // the order of the nodes is an order in which they can run
        Suspect suspect{.node = index, .reason = {}};
        ValueRange made = of_node(index, suspect);
        if (!suspect.reason.empty()) suspects_.push_back(suspect);
        if (!suspect.reason.empty() && !suspect.is_weak) made = {.is_suspect = true};
        for (const ValueId result : program_.nodes[static_cast<size_t>(index)].results) ranges_.try_emplace(result, made);
    }
}

std::vector<Suspect> ValueRanges::suspects(ValueId value) {
    suspects_.clear();
    visit(value);
    std::ranges::stable_sort(suspects_, {}, &Suspect::node);
    if (std::ranges::any_of(suspects_, [](const Suspect &each) { return !each.is_weak; }))
        std::erase_if(suspects_, [](const Suspect &each) { return each.is_weak; });
    return suspects_;
}

ValueRange ValueRanges::range(ValueId value) {
    const auto amax = amax_.find(value);
    if (amax != amax_.end()) return known(-amax->second, amax->second);
    visit(value);
    return ranges_.at(value);
}

} // namespace scalide

#include "frontend/tracer.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// A tensor with a label for each axis. A label is a letter of the subscripts, or a digit for an axis of an ellipsis, counted from the end.
struct Labelled {
    Tensor tensor;
    std::string labels;
};

constexpr std::string_view ellipsis = "...";

[[noreturn]] void fail(const std::string &requirement, const std::string &got, const std::string &way_out) {
    throw UserError({{}, "einsum.subscripts", requirement, got, way_out});
}

bool has(const std::string &labels, char label) { return labels.find(label) != std::string::npos; }

std::string in_quotes(const std::string &text) { return "'" + text + "'"; }

/// Parses the subscripts of one operand: letters and at most one ellipsis, which represents `hidden` axes.
std::string parse_labels(const std::string &term, int hidden) {
    std::string labels = term, rest = term;
    if (const size_t at = term.find(ellipsis); at != std::string::npos) {
        std::string digits;
        for (int i = hidden; i-- > 0;) digits += static_cast<char>('0' + i);
        labels.replace(at, ellipsis.size(), digits);
        rest.erase(at, ellipsis.size());
    }
    const bool is_good = std::ranges::all_of(rest, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
    if (!is_good) fail("must be letters, commas, '...' and one '->'", in_quotes(term), "Name each axis by a letter: ij,jk->ik");
    return labels;
}

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// The parsed subscripts: the labels of each operand and of the result.
struct Subscripts {
    std::vector<Labelled> operands;
    std::string result;
};

Labelled label(const std::string &term, const Tensor &tensor) {
    const bool is_open = term.find(ellipsis) != std::string::npos;
    const int named = static_cast<int>(term.size()) - (is_open ? static_cast<int>(ellipsis.size()) : 0);
    if (is_open ? tensor.rank() < named : tensor.rank() != named)
        fail("a term must have one letter for each axis of its operand", in_quotes(term) + " for rank " + std::to_string(tensor.rank()),
             "Write '...' for the other axes");
    return {tensor, parse_labels(term, tensor.rank() - named)};
}

/// Returns the labels of the result if there is no arrow: the axes of ellipses, then the letters that occur once, in alphabetical order.
std::string implied_result(const std::string &all, int hidden) {
    std::string letters = parse_labels(std::string(ellipsis), hidden), once;
    for (const char c : all)
        if (c > '9' && std::ranges::count(all, c) == 1) once += c;
    std::ranges::sort(once);
    return letters + once;
}

Subscripts parse(std::string text, const std::vector<Tensor> &tensors) {
    std::erase(text, ' ');
    const size_t arrow = text.find("->");
    const std::vector<std::string> terms = split(text.substr(0, arrow), ',');
    if (terms.size() != tensors.size())
        fail("the number of terms must be the number of operands, " + std::to_string(tensors.size()), std::to_string(terms.size()),
             "Separate the terms by commas");
    Subscripts subscripts;
    std::string all;
    int hidden = 0;
    for (size_t i = 0; i < terms.size(); i++) {
        subscripts.operands.push_back(label(terms[i], tensors[i]));
        const std::string &labels = subscripts.operands.back().labels;
        hidden = std::max(hidden, static_cast<int>(std::ranges::count_if(labels, [](char c) { return c <= '9'; })));
        all += labels;
    }
    subscripts.result = arrow == std::string::npos ? implied_result(all, hidden) : parse_labels(text.substr(arrow + 2), hidden);
    for (const char c : subscripts.result)
        if (!has(all, c) || std::ranges::count(subscripts.result, c) > 1)
            fail("the result must have letters of the operands, each at most once", in_quotes(subscripts.result), "");
    return subscripts;
}

void check_extents(const Subscripts &subscripts) {
    std::map<char, Extent> extents;
    for (const auto &[tensor, labels] : subscripts.operands)
        for (size_t axis = 0; axis < labels.size(); axis++) {
            const auto [known, is_new] = extents.emplace(labels[axis], tensor.shape()[axis]);
            if (!is_new && !(known->second == tensor.shape()[axis]))
                fail("axes with the same letter must have the same extent",
                     to_string(known->second) + " and " + to_string(tensor.shape()[axis]) + " for '" + labels[axis] + "'",
                     "Broadcast axes of extent 1 first, or use another letter");
        }
}

Attribute axes_attribute(const std::string &labels, const std::string &chosen) {
    std::vector<int64_t> axes;
    for (const char c : chosen) axes.push_back(static_cast<int64_t>(labels.find(c)));
    return to_attribute(axes);
}

Labelled transposed(const Labelled &from, const std::string &order) {
    if (from.labels == order) return from;
    return {apply("transpose", {from.tensor}, {{"permutation", axes_attribute(from.labels, order)}}), order};
}

/// Returns the labels of `from` that occur in `others` (common) or do not (without).
std::string common(const std::string &from, const std::string &others) {
    std::string labels;
    for (const char c : from)
        if (has(others, c)) labels += c;
    return labels;
}
std::string without(const std::string &from, const std::string &others) {
    std::string labels;
    for (const char c : from)
        if (!has(others, c)) labels += c;
    return labels;
}

/// If a letter occurs twice in one operand, takes the diagonal: sets all other elements to 0 and sums over one of the two axes.
Labelled diagonal(Labelled from) {
    for (size_t second = 1; second < from.labels.size(); second++) {
        const size_t first = from.labels.find(from.labels[second]);
        if (first == second) continue;
        const Extents shape = from.tensor.shape();
        const auto places = [&](size_t axis) {
            return apply("iota", {}, {{"dtype", "i32"}, {"shape", to_attribute(shape)}, {"dimension", static_cast<int64_t>(axis)}});
        };
        const Tensor is_on = apply("eq", {places(first), places(second)});
        const Tensor kept = apply("select_n", {is_on, 0.0, from.tensor});
        from.tensor = apply("reduce_sum", {kept}, {{"axes", to_attribute(std::vector<int64_t>{static_cast<int64_t>(second)})}});
        from.labels.erase(second--, 1);
    }
    return from;
}

Labelled summed(const Labelled &from, const std::string &kept) {
    const std::string gone = without(from.labels, kept);
    if (gone.empty()) return from;
    return {apply("reduce_sum", {from.tensor}, {{"axes", axes_attribute(from.labels, gone)}}), common(from.labels, kept)};
}

Tensor broadcast(const Labelled &from, const std::string &labels, const Extents &shape) {
    return apply("broadcast_in_dim", {from.tensor}, {{"shape", to_attribute(shape)}, {"dims", axes_attribute(labels, from.labels)}});
}

/// Multiplies two operands and sums over the labels that both have and that are not needed later.
Labelled product(const Labelled &a, const Labelled &b, const std::string &needed) {
    const std::string shared = common(a.labels, b.labels), batch = common(shared, needed), contract = without(shared, needed);
    const std::string labels = batch + without(a.labels, shared) + without(b.labels, shared);
    if (!contract.empty()) {
        const auto pairs = [&](const std::string &chosen) {
            return Attribute(std::vector<Attribute>{axes_attribute(a.labels, chosen), axes_attribute(b.labels, chosen)});
        };
        return {apply("dot_general", {a.tensor, b.tensor}, {{"contract", pairs(contract)}, {"batch", pairs(batch)}}), labels};
    }
    const Labelled left = transposed(a, batch + without(a.labels, shared)), right = transposed(b, batch + without(b.labels, shared));
    Extents shape = left.tensor.shape();
    for (size_t axis = batch.size(); axis < right.labels.size(); axis++) shape.push_back(right.tensor.shape()[axis]);
    return {broadcast(left, labels, shape) * broadcast(right, labels, shape), labels};
}

Tensor sum_of_products(const std::string &subscripts, const std::vector<Tensor> &operands) {
    Subscripts parsed = parse(subscripts, operands);
    check_extents(parsed);
    for (Labelled &operand : parsed.operands) operand = diagonal(operand);
    Labelled all = parsed.operands[0];
    for (size_t i = 1; i < parsed.operands.size(); i++) {
        std::string needed = parsed.result;
        for (size_t later = i + 1; later < parsed.operands.size(); later++) needed += parsed.operands[later].labels;
        const Labelled &next = parsed.operands[i];
        all = product(summed(all, needed + next.labels), summed(next, needed + all.labels), needed);
    }
    return transposed(summed(all, parsed.result), parsed.result).tensor;
}

} // namespace

Tensor einsum(const std::string &subscripts, const std::vector<Tensor> &operands, const std::source_location &where) {
    return at(where, [&] { return sum_of_products(subscripts, operands); });
}

} // namespace scalide

#include "transforms/calls/einsum.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// A value with a label for each axis. A label is a letter of the subscripts, or a digit for an axis of an ellipsis, counted from the end.
struct Labelled {
    ValueId value;
    std::string labels;
};

constexpr std::string_view ellipsis = "...";

bool has(const std::string &labels, char label) { return labels.find(label) != std::string::npos; }

std::string in_quotes(const std::string &text) { return "'" + text + "'"; }

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

Attribute axes_attribute(const std::string &labels, const std::string &chosen) {
    std::vector<int64_t> axes;
    for (const char c : chosen) axes.push_back(static_cast<int64_t>(labels.find(c)));
    return to_attribute(axes);
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

/// Writes the program of one einsum.
class Einsum {
public:
    Einsum(const Node &call, const std::vector<Type> &operands, const Rulebook &rulebook) : call_(call), builder_(rulebook, program_) {
        for (const Type &type : operands) {
            const ValueId value = add_value(program_, "x" + std::to_string(operands_.size()), type);
            program_.arguments.push_back({value});
            operands_.push_back({value, ""});
        }
        declare_symbols(program_);
        Node placed; // append_body adds the scope
        placed.location = call.location;
        builder_.stamp_like(placed);
    }

    Program write() {
        parse();
        check_extents();
        for (Labelled &operand : operands_) operand = diagonal(operand);
        Labelled all = operands_[0];
        for (size_t i = 1; i < operands_.size(); i++) {
            std::string needed = result_;
            for (size_t later = i + 1; later < operands_.size(); later++) needed += operands_[later].labels;
            const Labelled &next = operands_[i];
            all = product(summed(all, needed + next.labels), summed(next, needed + all.labels), needed);
        }
        program_.results.push_back({"out", transposed(summed(all, result_), result_).value});
        return std::move(program_);
    }

private:
    [[noreturn]] void fail(const std::string &requirement, const std::string &got, const std::string &way_out) const {
        throw UserError({call_.location, "einsum.subscripts", requirement, got, way_out});
    }

    const Extents &shape(ValueId value) const { return builder_.type(value).shape; }

    /// Parses the subscripts of one operand: letters and at most one ellipsis, which represents `hidden` axes.
    std::string parse_labels(const std::string &term, int hidden) const {
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

    std::string labels_of(const std::string &term, int rank) const {
        const bool is_open = term.find(ellipsis) != std::string::npos;
        const int named = static_cast<int>(term.size()) - (is_open ? static_cast<int>(ellipsis.size()) : 0);
        if (is_open ? rank < named : rank != named)
            fail("a term must have one letter for each axis of its operand", in_quotes(term) + " for rank " + std::to_string(rank),
                 "Write '...' for the other axes");
        return parse_labels(term, rank - named);
    }

    /// Returns the labels of the result if there is no arrow: the axes of ellipses, then the letters that occur once, in alphabetical
    /// order.
    std::string implied_result(const std::string &all, int hidden) const {
        std::string letters = parse_labels(std::string(ellipsis), hidden), once;
        for (const char c : all)
            if (c > '9' && std::ranges::count(all, c) == 1) once += c;
        std::ranges::sort(once);
        return letters + once;
    }

    /// Sets the labels of each operand and of the result.
    void parse() {
        const auto given = call_.attributes.find("subscripts");
        if (given == call_.attributes.end() || given->second.kind != Attribute::Kind::word)
            fail("must be a text", given == call_.attributes.end() ? "no subscripts" : to_string(given->second),
                 "Name each axis by a letter: {subscripts: \"ij,jk->ik\"}");
        std::string text = given->second.word;
        std::erase(text, ' ');
        const size_t arrow = text.find("->");
        const std::vector<std::string> terms = split(text.substr(0, arrow), ',');
        if (terms.size() != operands_.size())
            fail("the number of terms must be the number of operands, " + std::to_string(operands_.size()), std::to_string(terms.size()),
                 "Separate the terms by commas");
        std::string all;
        int hidden = 0;
        for (size_t i = 0; i < terms.size(); i++) {
            std::string &labels = operands_[i].labels;
            labels = labels_of(terms[i], static_cast<int>(shape(operands_[i].value).size()));
            hidden = std::max(hidden, static_cast<int>(std::ranges::count_if(labels, [](char c) { return c <= '9'; })));
            all += labels;
        }
        result_ = arrow == std::string::npos ? implied_result(all, hidden) : parse_labels(text.substr(arrow + 2), hidden);
        for (const char c : result_)
            if (!has(all, c) || std::ranges::count(result_, c) > 1)
                fail("the result must have letters of the operands, each at most once", in_quotes(result_), "");
    }

    void check_extents() const {
        std::map<char, Extent> extents;
        for (const auto &[value, labels] : operands_)
            for (size_t axis = 0; axis < labels.size(); axis++) {
                const Extent &extent = shape(value)[axis];
                const auto [known, is_new] = extents.emplace(labels[axis], extent);
                if (!is_new && !(known->second == extent))
                    fail("axes with the same letter must have the same extent",
                         to_string(known->second) + " and " + to_string(extent) + " for '" + labels[axis] + "'",
                         "Broadcast axes of extent 1 first, or use another letter");
            }
    }

    Labelled transposed(const Labelled &from, const std::string &order) {
        if (from.labels == order) return from;
        return {builder_.add_one("transpose", {from.value}, {{"permutation", axes_attribute(from.labels, order)}}), order};
    }

    /// If a letter occurs twice in one operand, takes the diagonal: sets all other elements to 0 and sums over one of the two axes.
    Labelled diagonal(Labelled from) {
        for (size_t second = 1; second < from.labels.size(); second++) {
            const size_t first = from.labels.find(from.labels[second]);
            if (first == second) continue;
            const Type type = builder_.type(from.value);
            const auto places = [&](size_t axis) {
                return builder_.add_one("iota", {},
                                        {{"dtype", "i32"}, {"shape", to_attribute(type.shape)}, {"dimension", static_cast<int64_t>(axis)}});
            };
            const ValueId is_on = builder_.add_one("eq", {places(first), places(second)});
            const ValueId zeros = builder_.broadcast(builder_.constant(0, type.dtype), type.shape);
            const ValueId kept = builder_.add_one("select_n", {is_on, zeros, from.value});
            from.value = builder_.add_one("reduce_sum", {kept}, {{"axes", to_attribute(std::vector{static_cast<int64_t>(second)})}});
            from.labels.erase(second--, 1);
        }
        return from;
    }

    Labelled summed(const Labelled &from, const std::string &kept) {
        const std::string gone = without(from.labels, kept);
        if (gone.empty()) return from;
        return {builder_.add_one("reduce_sum", {from.value}, {{"axes", axes_attribute(from.labels, gone)}}), common(from.labels, kept)};
    }

    ValueId broadcast(const Labelled &from, const std::string &labels, const Extents &to) {
        return builder_.add_one("broadcast_in_dim", {from.value},
                                {{"shape", to_attribute(to)}, {"dims", axes_attribute(labels, from.labels)}});
    }

    /// Multiplies two operands and sums over the labels that both have and that are not needed later.
    Labelled product(const Labelled &a, const Labelled &b, const std::string &needed) {
        const std::string shared = common(a.labels, b.labels), batch = common(shared, needed), contract = without(shared, needed);
        const std::string labels = batch + without(a.labels, shared) + without(b.labels, shared);
        if (!contract.empty()) {
            const auto pairs = [&](const std::string &chosen) {
                return Attribute(std::vector<Attribute>{axes_attribute(a.labels, chosen), axes_attribute(b.labels, chosen)});
            };
            return {builder_.add_one("dot_general", {a.value, b.value}, {{"contract", pairs(contract)}, {"batch", pairs(batch)}}), labels};
        }
        const Labelled left = transposed(a, batch + without(a.labels, shared)), right = transposed(b, batch + without(b.labels, shared));
        Extents to = shape(left.value);
        for (size_t axis = batch.size(); axis < right.labels.size(); axis++) to.push_back(shape(right.value)[axis]);
        return {builder_.add_one("mul", {broadcast(left, labels, to), broadcast(right, labels, to)}), labels};
    }

    const Node &call_;
    Program program_;
    Builder builder_;
    std::vector<Labelled> operands_;
    std::string result_;
};

} // namespace

Program einsum_program(const Node &call, const std::vector<Type> &operands, const Rulebook &rulebook) {
    if (operands.empty()) throw UserError({call.location, "einsum", "the number of operands must be at least 1", "0", ""});
    return Einsum(call, operands, rulebook).write();
}

} // namespace scalide

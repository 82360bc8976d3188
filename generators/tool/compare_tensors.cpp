#include "tool/compare_tensors.h"
#include "ir/regions.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace scalide {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Rounding to nearest gives a relative error of at most one unit roundoff u in each element. Errors of many elements are independent, so
/// the relative error of a matmul in norm is about as large as the errors of its operands. Differences of large numbers amplify it.
constexpr double units_in_limit = 4;
/// f32 values differ by more than their own rounding, because each policy sums in its own order.
constexpr double smallest_limit = 1e-5;

double largest_magnitude(const std::vector<double> &numbers) {
    double largest = 0;
    for (const double number : numbers) {
        if (std::isnan(number)) return number;
        largest = std::max(largest, std::abs(number));
    }
    return largest;
}

/// The inputs of the rows, found in the graph of the policy under test.
class RowInputs {
public:
    RowInputs(const PolicyRun &run, const std::map<std::pair<size_t, size_t>, size_t> &row_of) : run_(run), row_of_(row_of) {}

    /// Returns the rows that a value is computed from, without other rows between.
    std::set<size_t> of(const ValueRef &value) const {
        std::set<size_t> rows;
        std::set<ValueRef> seen{value};
        const auto own = row_at(value);
        std::vector<ValueRef> open = run_.graph().sources(value);
        while (!open.empty()) {
            const ValueRef next = open.back();
            open.pop_back();
            if (!seen.insert(next).second) continue;
            const std::optional<size_t> row = row_at(next);
            if (row && row != own) {
                rows.insert(*row);
                continue;
            }
            for (const ValueRef &source : run_.graph().sources(next)) open.push_back(source);
        }
        return rows;
    }

private:
    std::optional<size_t> row_at(const ValueRef &value) const {
        const auto form = run_.form_of(value);
        const auto found = form ? row_of_.find(*form) : row_of_.end();
        return found == row_of_.end() ? std::nullopt : std::optional(found->second);
    }

    const PolicyRun &run_;
    const std::map<std::pair<size_t, size_t>, size_t> &row_of_; ///< by tensor and form
};

std::vector<int64_t> index_in(size_t element, const std::vector<int64_t> &shape) {
    std::vector<int64_t> index(shape.size());
    auto rest = static_cast<int64_t>(element);
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
    return index;
}

/// Returns the copy in the same format that the reference has, or the tensor itself.
const TensorForm &reference_form(const std::vector<TensorForm> &forms, const TensorForm &tested, bool is_copy) {
    const auto same = std::ranges::find(forms, tested.format, &TensorForm::format);
    return is_copy && same != forms.end() ? *same : forms.front();
}

/// Compares form `place.second` of tensor `place.first`.
ComparedTensor row_of_form(const PolicyRun &reference, const PolicyRun &tested, const SourceTensor &tensor,
                           const std::pair<size_t, size_t> &place, std::optional<double> limit) {
    const bool is_copy = place.second > 0;
    const std::vector<TensorForm> &after = tested.forms(place.first);
    const TensorForm &own = after[place.second], &other = reference_form(reference.forms(place.first), own, is_copy);
    ComparedTensor row{place.first, is_copy, other.format, own.format, difference(other.numbers, own.numbers)};
    row.index = index_in(row.difference.element, tensor.shape);
    row.elements = own.numbers.size();
    row.saturated = own.saturated;
    const Node *rounds = tensor.op.empty() && is_copy ? tested.graph().producer(own.value) : nullptr;
    row.scope = rounds == nullptr ? tensor.scope : rounds->scope;
    row.source = rounds == nullptr ? tensor.location : rounds->location;
    row.rule = own.rule;
    row.why = own.why;
    if (is_copy) row.rounding = difference(after[0].numbers, own.numbers).relative;
    if (!is_copy && tensor.op.empty()) row.rounding = row.difference.relative; // an argument is rounded before the run
    const double units = units_in_limit * std::max(reference.unit_of(other.value), tested.unit_of(own.value));
    row.limit = limit.value_or(std::max(units, smallest_limit));
    return row;
}

} // namespace

double ArrayDifference::sqnr() const { return -20 * std::log10(relative); }

ArrayDifference difference(const std::vector<double> &reference, const std::vector<double> &numbers) {
    ArrayDifference found;
    double sum = 0, sum_of_reference = 0, worst = 0;
    for (size_t i = 0; i < numbers.size(); i++) {
        const double a = reference[i], b = numbers[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) {
            if (std::isfinite(a)) sum_of_reference += a * a;
            continue;
        }
        found.is_equal = false;
        found.zeros += b == 0 && std::isfinite(a);
        const bool is_finite = std::isfinite(a) && std::isfinite(b);
        const double error = is_finite ? std::abs(a - b) : infinite;
        found.non_finite += !is_finite;
        if (is_finite) sum += error * error, sum_of_reference += a * a;
        if (error > worst) worst = error, found.element = i, found.before = a, found.after = b;
    }
    found.largest = worst;
    found.relative = found.non_finite > 0 ? infinite : sum == 0 ? 0 : std::sqrt(sum / sum_of_reference);
    found.amax_before = largest_magnitude(reference);
    found.amax_after = largest_magnitude(numbers);
    return found;
}

int Comparison::first_different(const std::vector<bool> &is_shown) const {
    for (size_t i = 0; i < rows.size(); i++)
        if (is_shown[i] && !rows[i].difference.is_equal) return static_cast<int>(i);
    return -1;
}

int Comparison::first_beyond(const std::vector<bool> &is_shown) const {
    for (size_t i = 0; i < rows.size(); i++)
        if (is_shown[i] && rows[i].is_beyond()) return static_cast<int>(i);
    return -1;
}

int Comparison::first_non_finite(const std::vector<bool> &is_shown) const {
    for (size_t i = 0; i < rows.size(); i++)
        if (is_shown[i] && !std::isfinite(rows[i].difference.amax_before) && !std::isfinite(rows[i].difference.amax_after))
            return static_cast<int>(i);
    return -1;
}

int Comparison::largest_rounding(const std::vector<bool> &is_shown, Role role) const {
    int best = -1;
    double most = 0;
    for (size_t i = 0; i < rows.size(); i++)
        if (is_shown[i] && tensors[rows[i].tensor].role == role && rows[i].rounding > most)
            best = static_cast<int>(i), most = rows[i].rounding;
    return best;
}

Comparison compare_runs(const PolicyRun &reference, const PolicyRun &tested, const SourceTensors &tensors, std::optional<double> limit) {
    Comparison made{tensors.all(), {}, {}, has_regions(tested.stored().program)};
    std::map<std::pair<size_t, size_t>, size_t> row_of;
    for (size_t t = 0; t < made.tensors.size(); t++)
        if (reference.forms(t).empty() || tested.forms(t).empty()) made.uncompared.push_back(made.tensors[t].names[0]);
    std::vector<ValueRef> values;
    for (const ValueRef &value : tested.order()) {
        const auto place = tested.form_of(value);
        if (!place || reference.forms(place->first).empty() || !row_of.emplace(*place, made.rows.size()).second) continue;
        values.push_back(value);
        made.rows.push_back(row_of_form(reference, tested, made.tensors[place->first], *place, limit));
    }
    const RowInputs inputs(tested, row_of);
    for (size_t i = 0; i < made.rows.size(); i++)
        for (const size_t input : inputs.of(values[i]))
            if (const double error = made.rows[input].difference.relative; error > made.rows[i].inputs)
                made.rows[i].inputs = error, made.rows[i].worst_input = static_cast<int>(input);
    return made;
}

} // namespace scalide

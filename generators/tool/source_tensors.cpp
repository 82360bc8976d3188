#include "tool/source_tensors.h"
#include "ir/regions.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace scalide {

namespace {

/// Two orders of the operations of f64 differ by less, relative to the largest number of an array.
constexpr double exact_tolerance = 1e-8;

double largest_finite(const std::vector<double> &numbers) {
    double largest = 0;
    for (const double number : numbers)
        if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
    return largest;
}

double sum_of_squares(const std::vector<double> &numbers) {
    double sum = 0;
    for (const double number : numbers)
        if (std::isfinite(number)) sum += number * number;
    return sum;
}

bool is_same_number(double a, double b, double tolerance) {
    if (!std::isfinite(a) || !std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
    return std::abs(a - b) <= tolerance;
}

bool are_same(const std::vector<double> &a, const std::vector<double> &b) {
    const double tolerance = exact_tolerance * largest_finite(a);
    return std::ranges::equal(a, b, [&](double x, double y) { return is_same_number(x, y, tolerance); });
}

/// True if the numbers say nothing about the tensor: all are equal, such as zeros or the sums of a softmax.
bool is_uniform(const std::vector<double> &numbers) {
    if (numbers.empty()) return true;
    const double tolerance = exact_tolerance * largest_finite(numbers);
    if (numbers.size() == 1) return !std::isfinite(numbers[0]) || numbers[0] == std::round(numbers[0]);
    return std::ranges::all_of(numbers, [&](double number) { return is_same_number(number, numbers[0], tolerance); });
}

/// The magnitude of random numbers that replace those of an array. Extreme magnitudes would make other numbers of the run infinite or
/// equal.
double usual_magnitude(const std::vector<double> &numbers) {
    const auto finite = std::ranges::count_if(numbers, [](double number) { return std::isfinite(number); });
    const double magnitude = finite == 0 ? 0 : std::sqrt(sum_of_squares(numbers) / static_cast<double>(finite));
    constexpr double smallest = 1e-3, largest = 4, instead = 0.1;
    return magnitude >= smallest && magnitude <= largest ? magnitude : instead;
}

} // namespace

SourceTensors::SourceTensors(const ValueGraph &graph, const RecordedRun &exact) {
    for (const ValueRef &value : exact.order())
        if (graph.varies(value)) add(value, graph, *exact.find(value));
    const Program &program = graph.program();
    for (const Result &result : program.results)
        for (SourceTensor &tensor : tensors_)
            if (std::ranges::count(tensor.names, program.value_name(result.value)) > 0 && tensor.result.empty() && !tensor.op.empty()) {
                tensor.result = result.name;
                tensor.is_update = result.argument >= 0;
            }
}

void SourceTensors::add(const ValueRef &value, const ValueGraph &graph, const Array &array) {
    const Node *node = graph.producer(value);
    const std::string &name = value.program->value_name(value.value), scope = node == nullptr ? "" : node->scope;
    if (const auto known = is_uniform(array.data) ? std::nullopt : find(array.data, name, scope)) {
        tensors_[known->tensor].names.push_back(name);
        return;
    }
    SourceTensor tensor{{name}, value, array.shape, node == nullptr ? "" : node->op, scope};
    if (node != nullptr) tensor.role = node->role, tensor.location = node->location;
    by_sum_.emplace(std::pair(array.data.size(), sum_of_squares(array.data)), tensors_.size());
    tensors_.push_back(std::move(tensor));
    numbers_.push_back(array.data);
}

const SourceTensors::Sorted &SourceTensors::sorted(size_t tensor) const {
    const auto [entry, is_new] = sorted_.try_emplace(tensor);
    if (!is_new) return entry->second;
    Sorted &made = entry->second;
    made.order.resize(numbers_[tensor].size());
    std::iota(made.order.begin(), made.order.end(), 0);
    std::ranges::stable_sort(made.order, {}, [&](uint32_t i) { return numbers_[tensor][i]; });
    for (const uint32_t i : made.order) made.numbers.push_back(numbers_[tensor][i]);
    return made;
}

std::optional<TensorPlace> SourceTensors::place_in(size_t tensor, const std::vector<double> &numbers,
                                                   std::optional<Sorted> &sorted_numbers) const {
    if (are_same(numbers_[tensor], numbers)) return TensorPlace{tensor};
    if (!std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); })) return {};
    if (!sorted_numbers) {
        sorted_numbers.emplace();
        sorted_numbers->order.resize(numbers.size());
        std::iota(sorted_numbers->order.begin(), sorted_numbers->order.end(), 0);
        std::ranges::stable_sort(sorted_numbers->order, {}, [&](uint32_t i) { return numbers[i]; });
        for (const uint32_t i : sorted_numbers->order) sorted_numbers->numbers.push_back(numbers[i]);
    }
    const Sorted &own = sorted(tensor);
    if (!are_same(own.numbers, sorted_numbers->numbers)) return {};
    TensorPlace place{tensor, std::vector<uint32_t>(numbers.size())};
    for (size_t i = 0; i < numbers.size(); i++) place.order[own.order[i]] = sorted_numbers->order[i];
    return place;
}

std::optional<TensorPlace> SourceTensors::find(const std::vector<double> &numbers, const std::string &name,
                                               const std::string &scope) const {
    const double sum = sum_of_squares(numbers), slack = 1e-6 * sum;
    const bool needs_name = is_uniform(numbers);
    std::optional<Sorted> sorted_numbers;
    std::optional<TensorPlace> best;
    int best_rank = 0;
    const auto end = by_sum_.upper_bound({numbers.size(), sum + slack});
    for (auto each = by_sum_.lower_bound({numbers.size(), sum - slack}); each != end; ++each) {
        const SourceTensor &tensor = tensors_[each->second];
        const int rank = std::ranges::count(tensor.names, name) > 0 ? 3 : needs_name ? 0 : tensor.scope == scope ? 2 : 1;
        if (rank <= best_rank) continue;
        if (auto place = place_in(each->second, numbers, sorted_numbers)) best = std::move(place), best_rank = rank;
    }
    return best;
}

std::vector<double> distinct_numbers(const std::string &name, size_t count, double magnitude) {
    std::seed_seq seed(name.begin(), name.end());
    std::mt19937_64 random(seed);
    std::vector<double> made(count);
    for (double &number : made) number = magnitude * (0.5 + std::ldexp(static_cast<double>(random() >> 11), -53));
    return made;
}

std::vector<Array> distinct_inputs(const Program &program, const std::vector<Array> &inputs) {
    std::vector<Array> made = inputs;
    for (size_t i = 0; i < made.size(); i++) {
        if (!is_float(made[i].dtype)) continue;
        const std::string &name = program.value_name(program.arguments[i].value);
        const std::vector<double> numbers = distinct_numbers(name, made[i].data.size(), usual_magnitude(made[i].data));
        for (size_t element = 0; element < numbers.size(); element++)
            made[i].data[element] = made[i].data[element] < 0 ? -numbers[element] : numbers[element];
    }
    return made;
}

} // namespace scalide

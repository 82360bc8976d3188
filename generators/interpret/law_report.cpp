#include "interpret/law_report.h"
#include "ir/words.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace scalide {

namespace {

constexpr size_t shown_elements = 8;

bool is_close(double got, double expected, double bound) {
    if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) == std::isnan(got);
    return got == expected || std::fabs(got - expected) <= bound;
}

/// Returns the indices of an element as "[1, 0]", or an empty text for a scalar.
std::string place(const std::vector<int64_t> &shape, size_t element) {
    std::string text;
    auto rest = static_cast<int64_t>(element);
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
        text = std::to_string(rest % shape[axis]) + (text.empty() ? "" : ", ") + text;
    return text.empty() ? "" : "[" + text + "]";
}

std::string elements(const Array &array) {
    std::string text;
    for (size_t i = 0; i < std::min(array.data.size(), shown_elements); i++) text += (i == 0 ? "" : ", ") + number(array.data[i]);
    return "[" + text + (array.data.size() > shown_elements ? ", ...]" : "]");
}

/// Describes the element at the same index. If there is none, describes the first elements.
std::string describe(const LawInput &input, const std::vector<int64_t> &shape, size_t element) {
    const Type type{input.data.dtype, {input.data.shape.begin(), input.data.shape.end()}};
    const std::string scale = input.scaled ? " (data), scale " + number(input.scale) : "";
    if (input.data.shape == shape) return input.name + place(shape, element) + " = " + number(input.data.data[element]) + scale;
    return input.name + ": " + to_string(type) + " = " + elements(input.data) + scale;
}

} // namespace

std::string number(double value) { return number_to_string(value); }

std::optional<Difference> find_difference(const Array &got, const Array &expected, double tolerance, double least) {
    double largest = least;
    for (double value : expected.data)
        if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < expected.data.size(); i++)
        if (!is_close(got.data[i], expected.data[i], tolerance * largest)) return Difference{i, got.data[i], expected.data[i]};
    return std::nullopt;
}

std::string describe(const LawCase &law_case, const std::string &what, const std::vector<int64_t> &shape, const Difference &difference) {
    std::string text =
        number(difference.got) + ", expected " + number(difference.expected) + " at " + what + place(shape, difference.element) + ":";
    std::vector<std::string> facts;
    for (const LawInput &input : law_case.inputs) facts.push_back(describe(input, shape, difference.element));
    if (!law_case.attributes.empty()) facts.push_back(to_string(law_case.attributes));
    if (law_case.seed) facts.push_back("seed " + std::to_string(*law_case.seed));
    for (const std::string &fact : facts) text += (text.back() == ':' ? " " : ", ") + fact;
    return text;
}

} // namespace scalide

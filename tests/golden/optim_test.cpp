#include "frontend/optimizers.h"
#include "frontend/quantized_columns.h"
#include "judge.h"
#include "support/fragments/fragment_run.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <iostream>

// Optimizers and schedules of optax, written with the C++ DSL, in the interpreter. Each step of a case begins with the parameters of
// optax, so an error of one step does not hide another.

namespace scalide::test {
namespace {

using Json = nlohmann::json;
using Arrays = std::map<std::string, Array>;

Adam adam_options(const Json &a) {
    return {.learning_rate = a.value("lr", 0.0),
            .b1 = a.value("b1", 0.9),
            .b2 = a.value("b2", 0.999),
            .eps = a.value("eps", 1e-8),
            .eps_root = a.value("eps_root", 0.0),
            .nesterov = a.contains("nesterov")};
}

AdamW adamw_options(const Json &a) {
    return {.learning_rate = a.value("lr", 0.0), .eps_root = a.value("eps_root", 0.0), .weight_decay = a.value("weight_decay", 0.0)};
}

Optimizer masked_adamw(const Json &a) {
    AdamW options = adamw_options(a);
    options.mask = [mask = a["mask"]](const std::string &name, const Type &) { return mask[name].get<bool>(); };
    return adamw(options);
}

Optimizer sgd_of(const Json &a) {
    Sgd options{.learning_rate = a.value("lr", 0.0), .nesterov = a.contains("nesterov")};
    if (a.contains("momentum")) options.momentum = a["momentum"].get<double>();
    return sgd(options);
}

Optimizer adafactor_of(const Json &a) {
    return adafactor(
        {.learning_rate = a.value("lr", 0.0), .min_dim_size_to_factor = static_cast<int64_t>(a.value("min_dim_size_to_factor", 128.0))});
}

const std::map<std::string, std::function<Optimizer(const Json &)>> optimizers{
    {"sgd", sgd_of},
    {"sgd_momentum", sgd_of},
    {"sgd_nesterov", sgd_of},
    {"adam", [](const Json &a) { return adam(adam_options(a)); }},
    {"adam_eps_root", [](const Json &a) { return adam(adam_options(a)); }},
    {"adam_nesterov", [](const Json &a) { return adam(adam_options(a)); }},
    {"adamw", [](const Json &a) { return adamw(adamw_options(a)); }},
    {"adamw_wd", [](const Json &a) { return adamw(adamw_options(a)); }},
    {"adamw_mask", masked_adamw},
    {"adafactor", adafactor_of},
    {"adafactor_unfactored", adafactor_of},
    {"rmsprop", [](const Json &a) { return rmsprop({.learning_rate = a.value("lr", 0.0), .decay = 0.9, .eps = 1e-8}); }},
    {"lion",
     [](const Json &a) {
         return lion({.learning_rate = a.value("lr", 0.0),
                      .b1 = a.value("b1", 0.0),
                      .b2 = a.value("b2", 0.0),
                      .weight_decay = a.value("weight_decay", 0.0)});
     }},
    {"clip_norm_adam",
     [](const Json &a) {
         return chain({clip_by_global_norm(a.value("max_norm", 0.0)), adam({.learning_rate = a.value("lr", 0.0)})});
     }},
    {"apply_if_finite_adam",
     [](const Json &a) { return apply_if_finite(adam({.learning_rate = a.value("lr", 0.0)}), a["max_consecutive_errors"]); }},
    {"adam_onecycle",
     [](const Json &) { return adam({.learning_rate = cosine_onecycle_schedule({.transition_steps = 20, .peak_value = 1e-2})}); }},
};

/// The states of a case in the order of its final_state: leaves of optax's tree, with the parameters in alphabetical order. A name without
/// a state stands for an array of optax that is not used.
std::vector<std::string> state_names(const std::string &optimizer) {
    const auto of_parameters = [](std::vector<std::string> names, const std::vector<std::string> &kinds) {
        for (const std::string &kind : kinds)
            for (const char *parameter : {"b", "k", "w"}) names.push_back("o." + kind + "." + parameter);
        return names;
    };
    if (optimizer.starts_with("sgd_")) return of_parameters({}, {"trace"});
    if (optimizer == "rmsprop") return of_parameters({}, {"nu"});
    if (optimizer == "lion") return of_parameters({"o.unused"}, {"mu"}); // the count of lion has no effect
    if (optimizer.starts_with("adafactor")) return of_parameters({"o.count"}, {"v_row", "v_col", "v"});
    if (optimizer == "apply_if_finite_adam")
        return of_parameters({"o.notfinite_count", "o.last_finite", "o.total_notfinite", "o.count"}, {"mu", "nu"});
    std::vector<std::string> names = of_parameters({"o.count"}, {"mu", "nu"});
    if (optimizer == "adam_onecycle") names.emplace_back("o.count");
    return names;
}

/// One array of several, along the first axis.
Array slice_of(const Array &arrays, size_t index) {
    const size_t size = arrays.data.size() / static_cast<size_t>(arrays.shape[0]);
    const auto first = arrays.data.begin() + static_cast<int64_t>(index * size);
    return {arrays.dtype, {arrays.shape.begin() + 1, arrays.shape.end()}, {first, first + static_cast<int64_t>(size)}};
}

/// How far an update may be off, relative to it. optax rounds each operator to the dtype of the parameter, and rounds 0.999 to 1 in bf16.
/// In f32, 1 - 0.999^n has an error of one ulp of 1.
double relative_error(Dtype dtype) { return dtype == Dtype::f32 ? 5e-5 : dtype == Dtype::f16 ? 0x1p-8 : 0x1p-5; }

double spacing(Dtype dtype, double value) { return ulp({{dtype, {}, {}}, std::nullopt}, value); }

std::string unequal(size_t element, double got, double expected) {
    return "element " + std::to_string(element) + ": got " + std::to_string(got) + ", expected " + std::to_string(expected);
}

bool is_near(double got, double expected, double tolerance) {
    if (std::isnan(expected)) return std::isnan(got);
    return got == expected || std::fabs(got - expected) <= tolerance;
}

/// An update may be a sum that cancels, so its error is relative to the largest update of the tensor.
std::string parameter_difference(const Array &got, const Array &expected, const Array &before) {
    double largest = 0;
    for (size_t i = 0; i < expected.data.size(); i++) {
        const double update = std::fabs(expected.data[i] - before.data[i]);
        if (std::isfinite(update)) largest = std::max(largest, update);
    }
    for (size_t i = 0; i < expected.data.size(); i++) {
        const double tolerance = spacing(got.dtype, expected.data[i]) + relative_error(got.dtype) * largest;
        if (!is_near(got.data[i], expected.data[i], tolerance)) return unequal(i, got.data[i], expected.data[i]);
    }
    return "";
}

/// An element of a state is a sum, so its error is relative to the largest element.
std::string state_difference(const Array &got, const Array &expected) {
    if (got.dtype != expected.dtype || got.shape != expected.shape) return "another type";
    double largest = 0;
    for (const double value : expected.data)
        if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    const bool is_exact = !is_float(got.dtype);
    const double tolerance = is_exact ? 0 : largest * relative_error(got.dtype) + 20 * spacing(got.dtype, 0);
    for (size_t i = 0; i < expected.data.size(); i++)
        if (!is_near(got.data[i], expected.data[i], tolerance)) return unequal(i, got.data[i], expected.data[i]);
    return "";
}

/// The arrays of a case by path.
Arrays arrays_of(const GoldenSuite &suite, const Json &descriptors) {
    Arrays arrays;
    for (const Json &descriptor : descriptors)
        if (descriptor.contains("path")) arrays[descriptor["path"]] = read_tensor(suite, descriptor).data;
    return arrays;
}

FragmentRun trained(const Json &entry) {
    const Optimizer optimizer = optimizers.at(entry["attrs"]["optimizer"])(entry["attrs"]);
    return FragmentRun([&] {
        std::deque<State<scalide::Tensor>> parameters;
        std::vector<State<scalide::Tensor> *> pointers;
        std::vector<scalide::Tensor> gradients;
        for (const Json &input : entry["inputs"]) {
            const std::string path = input["path"];
            if (path.starts_with("grad/")) continue;
            const std::vector<int64_t> extents = input["shape"];
            const Dimensions shape(extents.begin(), extents.end());
            const Dtype dtype = *parse_dtype(input["dtype"].get<std::string>());
            pointers.push_back(&parameters.emplace_back(path, dtype, shape));
            gradients.push_back(Input<scalide::Tensor>("grad/" + path, dtype, shape));
        }
        optimizer.apply(gradients, pointers, "o");
    });
}

/// Adam and AdamW in f64, whose moments are rounded to the dtype of the parameter: what f16 needs where optax gives NaN.
class AdamInF64 {
public:
    explicit AdamInF64(const Json &attributes) : rate_(attributes.value("lr", 0.0)), decay_(attributes.value("weight_decay", 0.0)) {}

    Array step(const std::string &name, const Array &before, const Array &gradient, int n) {
        std::vector<double> &mu = mu_[name], &nu = nu_[name];
        mu.resize(before.data.size());
        nu.resize(before.data.size());
        Array after = before;
        for (size_t i = 0; i < mu.size(); i++) {
            const double g = gradient.data[i], m = 0.9 * mu[i] + 0.1 * g, v = 0.999 * nu[i] + 0.001 * g * g;
            mu[i] = round_to(before.dtype, m);
            nu[i] = round_to(before.dtype, v);
            const double root = std::sqrt(v / (1 - std::pow(0.999, n))) + 1e-8;
            after.data[i] -= rate_ * (m / (1 - std::pow(0.9, n)) / root + decay_ * before.data[i]);
        }
        return after;
    }

private:
    double rate_, decay_;
    std::map<std::string, std::vector<double>> mu_, nu_;
};

struct Differences {
    std::string from_upstream, from_right;
    void add(std::string &to, const std::string &where, const std::string &words) {
        if (to.empty() && !words.empty()) to = where + ", " + words;
    }
};

/// Runs all steps. The last state must be that of optax.
Differences run_steps(const GoldenSuite &suite, const Json &entry) {
    const Arrays inputs = arrays_of(suite, entry["inputs"]), outputs = arrays_of(suite, entry["outputs"]);
    FragmentRun run = trained(entry);
    std::vector<std::string> parameters;
    for (const auto &[path, array] : outputs) {
        parameters.push_back(path);
        run.states[path] = inputs.at(path);
    }
    std::optional<AdamInF64> right;
    if (entry.contains("upstream_bug")) right.emplace(entry["attrs"]);
    Differences differences;
    const std::vector<Tensor> last = read_tensors(suite, entry["final_state"]);
    const std::vector<std::string> names = state_names(entry["attrs"]["optimizer"]);
    for (size_t step = 0; step < entry["attrs"]["steps"]; step++) {
        Arrays gradients;
        for (const std::string &name : parameters) gradients["grad/" + name] = slice_of(inputs.at("grad/" + name), step);
        const Arrays before = run.states;
        run.step(gradients);
        for (const std::string &name : parameters) {
            const Array expected = slice_of(outputs.at(name), step);
            const std::string where = "step " + std::to_string(step) + ", " + name;
            differences.add(differences.from_upstream, where, parameter_difference(run.states[name], expected, before.at(name)));
            if (right) {
                const Array correct = right->step(name, before.at(name), gradients["grad/" + name], static_cast<int>(step) + 1);
                differences.add(differences.from_right, where, parameter_difference(run.states[name], correct, before.at(name)));
            }
            const bool is_number = std::ranges::all_of(expected.data, [](double value) { return std::isfinite(value); });
            if (!right || is_number) run.states[name] = expected;
        }
    }
    for (size_t i = 0; i < names.size(); i++)
        if (const auto state = run.states.find(names[i]); state != run.states.end())
            differences.add(differences.from_upstream, state->first, state_difference(state->second, last.at(i).data));
    return differences;
}

void check_finite_state(const GoldenSuite &suite, const Json &entry) {
    const Arrays inputs = arrays_of(suite, entry["inputs"]);
    FragmentRun run = trained(entry);
    const Json &descriptor = entry["outputs"].back();
    ASSERT_EQ(descriptor["key"], entry["name"].get<std::string>() + ".finite_state");
    const Array rows = read_tensor(suite, descriptor).data;
    for (const auto &[path, array] : inputs)
        if (!path.starts_with("grad/")) run.states[path] = array;
    for (size_t step = 0; step < static_cast<size_t>(rows.shape[0]); step++) {
        Arrays gradients;
        for (const auto &[path, array] : inputs)
            if (path.starts_with("grad/")) gradients[path] = slice_of(array, step);
        run.step(gradients);
        const std::vector<double> got{run.states["o.notfinite_count"].data[0], run.states["o.last_finite"].data[0],
                                      run.states["o.total_notfinite"].data[0]};
        EXPECT_EQ(got, slice_of(rows, step).data) << "step " << step;
    }
}

std::map<int64_t, double> boundaries(const Json &json) {
    std::map<int64_t, double> map;
    for (const auto &[boundary, scale] : json.items()) map[std::stoll(boundary)] = scale;
    return map;
}

Schedule schedule_of(std::string name, const Json &a) {
    if (name.ends_with("_b")) name.resize(name.size() - 2);
    if (name == "linear_onecycle") return linear_onecycle_schedule({a[0], a[1], a[2], a[3], a[4], a[5]});
    if (name == "cosine_onecycle") return cosine_onecycle_schedule({a[0], a[1], a[2], a[3], a[4]});
    if (name == "warmup_cosine") return warmup_cosine_decay_schedule({a[0], a[1], a[2], a[3], a[4]});
    if (name == "cosine_decay") return cosine_decay_schedule({a[0], a[1], a[2]});
    if (name.starts_with("exponential"))
        return exponential_decay({.init_value = a[0], .transition_steps = a[1], .decay_rate = a[2], .staircase = a.size() > 3});
    if (name == "linear") return linear_schedule({a[0], a[1], a[2], a[3]});
    if (name == "polynomial") return polynomial_schedule({a[0], a[1], a[2], a[3], a[4]});
    if (name == "piecewise") return piecewise_constant_schedule({a[0], boundaries(a[1])});
    throw std::out_of_range(name);
}

std::vector<Json> cases_of(const GoldenSuite &suite, const char *op) {
    std::vector<Json> cases;
    for (const Json &entry : suite.index["cases"])
        if (entry["op"] == op) cases.push_back(entry);
    return cases;
}

} // namespace

TEST(optim, optimizers) {
    const GoldenSuite suite = load_golden("optim");
    const Deviations deviations("optim", suite.index);
    const std::vector<Json> cases = cases_of(suite, "optimizer");
    ASSERT_FALSE(cases.empty());
    for (const Json &entry : cases) {
        SCOPED_TRACE(entry["name"].get<std::string>());
        const Differences differences = run_steps(suite, entry);
        deviations.judge(entry, differences.from_upstream, differences.from_right);
        if (entry["attrs"]["optimizer"] == "apply_if_finite_adam") check_finite_state(suite, entry);
    }
    std::cout << "optim: " << cases.size() << " optimizers, " << deviations.count() << " deviations\n";
}

/// optax computes a schedule in f32, in several roundings.
TEST(optim, schedules) {
    const GoldenSuite suite = load_golden("optim");
    const std::vector<Json> cases = cases_of(suite, "schedule");
    ASSERT_FALSE(cases.empty());
    for (const Json &entry : cases) {
        SCOPED_TRACE(entry["name"].get<std::string>());
        const Schedule schedule = schedule_of(entry["attrs"]["schedule"], entry["attrs"]["args"]);
        FragmentRun run([&] {
            const Input<scalide::Tensor> count("count", i32, {});
            Output<scalide::Tensor> value("value", f32, {});
            value = schedule(count).tensor;
        });
        const Array expected = read_tensor(suite, entry["outputs"][0]).data;
        const double largest = *std::ranges::max_element(expected.data);
        for (size_t count = 0; count < expected.data.size(); count++)
            EXPECT_NEAR(run.step({{"count", scalar_array(static_cast<double>(count), i32)}})["value"].data[0], expected.data[count],
                        4 * spacing(f32, largest))
                << "count " << count;
    }
    std::cout << "optim: " << cases.size() << " schedules\n";
}

TEST(optim, quantized_columns) {
    const GoldenSuite suite = load_golden("optim");
    const std::vector<Json> cases = cases_of(suite, "column_quantize");
    ASSERT_FALSE(cases.empty());
    for (const Json &entry : cases) {
        SCOPED_TRACE(entry["name"].get<std::string>());
        const Array x = read_tensor(suite, entry["inputs"][0]).data;
        const Dtype dtype = entry["attrs"]["bits"] == 8 ? i8 : i16;
        const bool has_diagonal = entry["attrs"]["extract_diagonal"];
        FragmentRun run([&] {
            const Input<scalide::Tensor> input("x", f32, {x.shape.begin(), x.shape.end()});
            const QuantizedColumns quantized = quantize_columns(input, dtype, has_diagonal);
            const auto output = [](const char *name, const scalide::Tensor &value) {
                Output<scalide::Tensor> out(name, value.dtype(), {value.shape().begin(), value.shape().end()});
                out = value;
            };
            output("q", quantized.values);
            output("bucket", quantized.bucket_size);
            output("dequant", dequantize_columns(quantized));
            if (has_diagonal) output("diag", quantized.diagonal);
        });
        const Arrays got = run.step({{"x", x}});
        for (const Json &output : entry["outputs"]) {
            const std::string key = output["key"], name = key.substr(key.rfind('.') + 1);
            const Array expected = read_tensor(suite, output).data;
            EXPECT_EQ(got.at(name).dtype, expected.dtype) << name;
            EXPECT_EQ(got.at(name).shape, expected.shape) << name;
            EXPECT_EQ(got.at(name).data, expected.data) << name;
        }
    }
    std::cout << "optim: " << cases.size() << " quantized arrays\n";
}

} // namespace scalide::test

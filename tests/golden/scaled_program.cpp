#include "scaled_program.h"
#include "ir/verify.h"
#include "support/rounding_errors/monte_carlo.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <cmath>

namespace scalide::test {

namespace {

/// Integers of widths that there are not here (what argmax gives in f64) are exact in f64.
Array read_array(const GoldenSuite &suite, const std::string &key, const std::string &dtype) {
    const Dtype known = parse_dtype(dtype).value_or(Dtype::f64);
    const NpyArray array = suite.arrays.read(key);
    return {known, array.shape, to_doubles(array, known)};
}

bool is_scaled(const nlohmann::json &descriptor) { return descriptor.value("scaled", false); }

} // namespace

const Rulebook &rules() {
    static const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    return rulebook;
}

std::vector<double> Tensor::values() const {
    std::vector<double> values = data.data;
    if (scale)
        for (double &value : values) value *= *scale;
    return values;
}

Tensor read_tensor(const GoldenSuite &suite, const nlohmann::json &descriptor) {
    const std::string key = descriptor["key"], dtype = descriptor["dtype"];
    if (!is_scaled(descriptor)) return {read_array(suite, key, dtype), std::nullopt};
    return {read_array(suite, key + ".data", dtype), read_array(suite, key + ".scale", descriptor["scale_dtype"]).data.at(0)};
}

std::vector<Tensor> read_tensors(const GoldenSuite &suite, const nlohmann::json &descriptors) {
    std::vector<Tensor> tensors;
    for (const nlohmann::json &descriptor : descriptors) tensors.push_back(read_tensor(suite, descriptor));
    return tensors;
}

Policy policy_of(const nlohmann::json &config) {
    static const std::map<std::string, Rounding> roundings{{"DOWN", Rounding::down}, {"UP", Rounding::up}, {"NONE", Rounding::none}};
    Policy policy;
    policy.scales = {"l2", roundings.at(config["rounding"])};
    policy.round_every_node = true;
    return policy;
}

std::vector<Tensor> meaning(const Program &program, const std::vector<Tensor> &inputs, std::mt19937 *random) {
    std::vector<Array> arrays;
    const bool rescales = std::ranges::any_of(inputs, [](const Tensor &input) { return input.scale.has_value(); });
    for (const Tensor &input : inputs) {
        Array &array = arrays.emplace_back(Array{input.data.dtype, input.data.shape, input.values()});
        if (!rescales || !is_float(array.dtype)) continue;
        for (const double value : array.data) array.error.push_back(std::ldexp(std::fabs(value), 1 - format_of(array.dtype).mantissa_bits));
    }
    std::vector<Tensor> tensors;
    for (Array &output : random == nullptr ? interpret_with_errors(program, arrays, rules(), Mode::real)
                                           : interpret_with_random_roundings(program, arrays, rules(), Mode::real, *random))
        tensors.push_back({std::move(output), std::nullopt});
    return tensors;
}

std::vector<Tensor> with_drawn_errors(const std::function<std::vector<Tensor>(std::mt19937 *random)> &run) {
    const std::vector<Array> arrays = scalide::with_drawn_errors([&](std::mt19937 *random) {
        std::vector<Array> drawn;
        for (const Tensor &tensor : run(random)) drawn.push_back(tensor.data);
        return drawn;
    });
    std::vector<Tensor> tensors;
    for (const Array &array : arrays) tensors.push_back({array, std::nullopt});
    return tensors;
}

ScaledProgram::ScaledProgram(Program source, const nlohmann::json &inputs, const nlohmann::json &outputs, const Policy &policy) {
    for (size_t i = 0; i < inputs.size(); i++) source.arguments.at(i).scaled = is_scaled(inputs[i]);
    for (size_t i = 0; i < outputs.size(); i++) source.results.at(i).scaled = is_scaled(outputs[i]);
    for (const Result &result : source.results) scaled_results_.push_back(result.scaled);
    program_ = simplify(infer_types(source, rules()), rules());
    program_ = simplify(assign_numerics(program_, rules(), policy), rules());
    program_ = propagate_scales(program_, rules(), policy.scales);
    program_ = simplify(expand(program_, rules()), rules());
    verify(program_, "simplify");
}

std::vector<Tensor> ScaledProgram::run(const std::vector<Tensor> &inputs) const {
    std::vector<Array> arrays;
    for (const Tensor &input : inputs) {
        arrays.push_back(input.data);
        if (input.scale) arrays.push_back({Dtype::f32, {}, {*input.scale}});
    }
    const std::vector<Array> outputs = interpret(program_, arrays, rules(), Mode::stored);
    std::vector<Tensor> results;
    auto output = outputs.begin();
    for (const bool scaled : scaled_results_) {
        results.push_back({*output++, std::nullopt});
        if (scaled) results.back().scale = (output++)->data.at(0);
    }
    return results;
}

} // namespace scalide::test

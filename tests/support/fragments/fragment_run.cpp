#include "support/fragments/fragment_run.h"
#include "support/programs/rules.h"

namespace scalide {

namespace {

std::function<void()> traced_body;

class Fragment : public Generator<Fragment> {
public:
    void generate() override { traced_body(); }
};
SCALIDE_REGISTER_GENERATOR(Fragment, fragment)
SCALIDE_REGISTER_INITIAL_STATE(Fragment, fragment_state)

} // namespace

FragmentRun::FragmentRun(std::function<void()> body) {
    traced_body = body;
    program_ = run_generator("fragment", {}, rules());
    // A program without initializers has no program of first values, so there is always one.
    traced_body = [&] {
        body();
        add_state("fragment.unused", Dtype::f32, {}, initializers::zeros());
    };
    const Program initial = run_generator("fragment_state", {}, rules());
    const std::vector<Array> first = interpret(initial, {{Dtype::u32, {2}, {0, 42}}}, rules(), Mode::stored);
    for (size_t i = 0; i < first.size(); i++) states[initial.results[i].name] = first[i];
    for (const Argument &argument : program_.arguments) {
        const std::string &name = program_.value_name(argument.value);
        if (!argument.inout || states.contains(name)) continue;
        const Type &type = program_.type(argument.value);
        Array zeros{type.dtype, {}, {}};
        size_t count = 1;
        for (const Extent &extent : type.shape) {
            zeros.shape.push_back(extent.value());
            count *= static_cast<size_t>(extent.value());
        }
        zeros.data.resize(count);
        states[name] = zeros;
    }
}

std::map<std::string, Array> FragmentRun::step(const std::map<std::string, Array> &inputs) {
    std::vector<Array> arguments;
    for (const Argument &argument : program_.arguments) {
        const std::string &name = program_.value_name(argument.value);
        arguments.push_back(argument.inout ? states.at(name) : inputs.at(name));
    }
    const std::vector<Array> results = interpret(program_, arguments, rules(), Mode::stored);
    std::map<std::string, Array> outputs;
    for (size_t i = 0; i < results.size(); i++)
        (program_.results[i].argument < 0 ? outputs : states)[program_.results[i].name] = results[i];
    return outputs;
}

Array scalar_array(double value, Dtype dtype) { return {dtype, {}, {value}}; }

} // namespace scalide

#include "guarded/guarded_run.h"
#include "ir/text.h"
#include "support/rounding_errors/running_error.h"
#include "tool/arrays.h"
#include <cmath>

namespace scalide {

namespace {

Words to_words(const Array &array) {
    if (array.dtype == Dtype::f64) { // between kernels alone: a file has none
        const auto *bytes = reinterpret_cast<const uint8_t *>(array.data.data());
        return {bytes, bytes + array.data.size() * sizeof(double)};
    }
    const HostArray host = to_array("", array);
    return {host.data.begin(), host.data.end()};
}

Array to_array(Dtype dtype, const std::vector<int64_t> &shape, const Words &words) {
    if (dtype == Dtype::f64) {
        const auto *numbers = reinterpret_cast<const double *>(words.data());
        return {dtype, shape, {numbers, numbers + words.size() / sizeof(double)}};
    }
    HostArray host;
    host.dtype = dtype;
    host.shape = shape;
    host.data.assign(words.begin(), words.end());
    return to_tensor(host);
}

Attribute with_sizes(Attribute attribute, const Extent::Bindings &sizes) {
    if (!attribute.integer.is_static()) attribute.integer = attribute.integer.evaluate(sizes);
    for (Attribute &element : attribute.list) element = with_sizes(element, sizes);
    return attribute;
}

/// Its extents in numbers: a kernel may have a symbol that none of its arguments has.
Program with_sizes(Program program, const Extent::Bindings &sizes) {
    for (Value &value : program.values)
        for (Extent &extent : value.type.shape) extent = extent.evaluate(sizes);
    for (Node &node : program.nodes)
        for (const auto &[name, attribute] : Attributes(node.attributes)) node.attributes[name] = with_sizes(attribute, sizes);
    program.symbols.clear();
    program.attributes.erase("kind"); // a kind of kernel may have axes that are bound to 1, none that are 1
    return program;
}

double draw_element(Dtype dtype, std::mt19937 &random) {
    if (dtype == Dtype::boolean) return double(random() % 2);
    if (is_integer(dtype)) return double(random() % 5);
    return random() % 16 == 0 ? 0 : round_to(dtype, double(std::uniform_real_distribution<float>(-2, 2)(random)));
}

RunKernel run_of(const std::shared_ptr<CompiledKernel> &kernel) {
    return [kernel](std::vector<Words> &arguments, const Extent::Bindings &sizes, Guard guard) {
        return kernel->run(arguments, sizes, guard);
    };
}

} // namespace

RunKernel host_kernel(const Program &kernel) { return run_of(std::make_shared<CompiledKernel>(kernel)); }

RunKernel checked_kernel(const Program &kernel) {
    return run_of(std::make_shared<CompiledKernel>(kernel, kernel_target(), Accesses::checked));
}

std::vector<Array> run_guarded(const RunKernel &kernel, const Program &program, const std::vector<Array> &inputs,
                               const Extent::Bindings &sizes) {
    const std::vector<Array> expected = interpret_with_errors(with_sizes(program, sizes), inputs, {}, Mode::stored);
    std::vector<Words> words, behind;
    for (const Array &input : inputs) words.push_back(to_words(input));
    for (const Guard guard : {Guard::behind, Guard::before}) {
        std::vector<Words> arguments = words;
        std::optional<std::vector<Words>> results = kernel(arguments, sizes, guard);
        if (!results) return expected;
        for (size_t r = 0; r < results->size(); r++) {
            const int overwritten = program.results[r].argument;
            if (overwritten >= 0) results->at(r) = arguments[size_t(overwritten)];
        }
        if (guard == Guard::before && *results != behind) throw std::runtime_error("other bits where arrays lie elsewhere");
        behind = *results;
    }
    std::vector<Array> made;
    for (size_t r = 0; r < expected.size(); r++) {
        made.push_back(to_array(expected[r].dtype, expected[r].shape, behind[r]));
        const std::string words = difference(made[r], expected[r]);
        if (!words.empty()) throw std::runtime_error(program.results[r].name + ": " + words);
    }
    return made;
}

std::string kernel_case(const Program &kernel, const Extent::Bindings &sizes) {
    std::string line = "# sizes:";
    for (const auto &[symbol, value] : sizes) line += " " + symbol + "=" + std::to_string(value);
    return line + "\n" + to_string(kernel);
}

std::vector<Array> draw_guarded_inputs(const Program &program, const Extent::Bindings &sizes, std::mt19937 &random) {
    std::vector<Array> inputs;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        Array array{type.dtype, {}, {}};
        for (const Extent &extent : type.shape) array.shape.push_back(extent.evaluate(sizes));
        array.data.resize(size_t(element_count(type.shape).evaluate(sizes)));
        for (double &element : array.data)
            element = argument.part.is_scale() ? std::ldexp(1.0, int(random() % 5) - 2) : draw_element(type.dtype, random);
        inputs.push_back(std::move(array));
    }
    return inputs;
}

void GuardedProgram::run(const Extent::Bindings &sizes, std::mt19937 &random) {
    std::map<ValueId, Array> values;
    const std::vector<Array> inputs = draw_guarded_inputs(fused_, sizes, random);
    for (size_t i = 0; i < inputs.size(); i++) values[fused_.arguments[i].value] = inputs[i];
    for (const Node &call : fused_.nodes) {
        const Program &program = fused_.program(call.attributes.at("program").word);
        tell_(kernel_case(program, sizes));
        std::vector<Array> operands;
        for (const ValueId operand : call.operands) operands.push_back(values.at(operand));
        RunKernel &kernel = kernels_[program.name];
        if (!kernel) kernel = make_(program);
        std::vector<Array> results = run_guarded(kernel, program, operands, sizes);
        for (size_t r = 0; r < results.size(); r++) values[call.results[r]] = std::move(results[r]);
    }
}

} // namespace scalide

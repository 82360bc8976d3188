#include "guarded/card_kernel.h"
#include "card/card.h"
#include "ir/text.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

Program as_program(Program kernel) {
    const std::string kind = kernel.attributes.at("kind").word;
    kernel.attributes = {};
    kernel.attributes["arithmetic"] = std::string("exact"); // the bounds of errors are those of a CPU
    if (kind == "row") kernel.attributes["sums"] = std::string("with_rows");
    return kernel;
}

bool can_be_program(const Program &kernel) {
    std::vector<Symbol> known;
    const auto has_f64 = [&](ValueId value) { return kernel.type(value).dtype == Dtype::f64; };
    for (const Argument &argument : kernel.arguments)
        if (has_f64(argument.value)) return false;
    for (const Result &result : kernel.results)
        if (has_f64(result.value)) return false;
    std::set<std::string> bound; // by an extent of one term
    for (const Argument &argument : kernel.arguments)
        for (const Extent &extent : kernel.type(argument.value).shape)
            if (const Extent::Terms terms = extent.terms(); terms.size() == 1 && terms.begin()->first.size() == 1)
                bound.insert(extent.symbols()[0]);
    return bound.size() == kernel.symbols.size();
}

HostArray input_of(const Program &kernel, const Extent::Bindings &sizes, size_t index, const Words &words) {
    const ValueId value = kernel.arguments[index].value;
    HostArray array;
    array.name = kernel.value_name(value);
    array.dtype = kernel.type(value).dtype;
    for (const Extent &extent : kernel.type(value).shape) array.shape.push_back(extent.evaluate(sizes));
    array.data.assign(words.begin(), words.end());
    return array;
}

} // namespace

RunKernel card_kernel(const Program &kernel) {
    if (!can_be_program(kernel)) return [](std::vector<Words> &, const Extent::Bindings &, Guard) { return std::nullopt; };
    const std::shared_ptr<CompiledProgram> compiled = compile_for_card(to_string(as_program(kernel)));
    return [compiled, kernel](std::vector<Words> &arguments, const Extent::Bindings &sizes, Guard) {
        const std::vector<HostArray> made = compiled->loaded().run([&](const std::string &name) {
            const auto is_named = [&](const Argument &argument) { return kernel.value_name(argument.value) == name; };
            const auto index = size_t(std::ranges::find_if(kernel.arguments, is_named) - kernel.arguments.begin());
            return input_of(kernel, sizes, index, arguments.at(index));
        });
        std::vector<Words> results;
        for (const Result &result : kernel.results) {
            const std::string &name =
                result.argument < 0 ? result.name : kernel.value_name(kernel.arguments[size_t(result.argument)].value);
            const HostArray &array = *std::ranges::find(made, name, &HostArray::name);
            results.emplace_back(array.data.begin(), array.data.end());
            if (result.argument >= 0) arguments[size_t(result.argument)] = results.back();
        }
        return std::optional(results);
    };
}

} // namespace scalide

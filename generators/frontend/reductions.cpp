#include "frontend/reductions.h"
#include "frontend/tracer.h"
#include "transforms/analysis/splice.h"
#include "transforms/calls/user_reductions.h"

namespace scalide {

namespace {

using Body = Program (*)(const Node &, const Program &, const std::vector<Type> &, const Rulebook &);

CombineAll on_one(const Combine &combine) {
    return [combine](const std::vector<Tensor> &a, const std::vector<Tensor> &b) { return std::vector<Tensor>{combine(a[0], b[0])}; };
}

/// Returns the program of `combine` for elements of these dtypes.
Program trace_combination(const CombineAll &combine, const std::vector<Tensor> &arrays) {
    std::vector<std::pair<std::string, Type>> arguments;
    for (const char *side : {"a", "b"})
        for (size_t i = 0; i < arrays.size(); i++) arguments.push_back({side + std::to_string(i), {arrays[i].dtype(), {}}});
    const auto middle = static_cast<ptrdiff_t>(arrays.size());
    return trace_program("combine", arguments, [&](const std::vector<Tensor> &elements) {
        return combine({elements.begin(), elements.begin() + middle}, {elements.begin() + middle, elements.end()});
    });
}

std::vector<Tensor> fold(Node call, const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                         Body body) {
    Tracer &tracer = Tracer::current();
    Builder &builder = tracer.builder();
    if (arrays.empty() || arrays.size() != inits.size()) {
        throw UserError({{},
                         call.op,
                         "the number of initial values must be the number of arrays",
                         std::to_string(arrays.size()) + " arrays and " + std::to_string(inits.size()) + " initial values",
                         ""});
    }
    for (const Tensor &array : arrays) call.operands.push_back(array.value());
    for (size_t i = 0; i < inits.size(); i++)
        call.operands.push_back(inits[i].is_number ? builder.constant(inits[i].number, arrays[i].dtype()) : inits[i].tensor.value());
    std::vector<Type> types;
    for (const ValueId operand : call.operands) types.push_back(builder.type(operand));
    call.scope = tracer.scope();
    call.location = tracer.location();
    const Program made = body(call, trace_combination(combine, arrays), types, builder.rulebook());
    std::vector<Tensor> results;
    for (const ValueId value : append_body(tracer.program(), made, call)) results.emplace_back(value);
    return results;
}

} // namespace

std::vector<Tensor> reduce(const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                           const std::optional<std::vector<int64_t>> &axes, const std::source_location &where) {
    Node call;
    call.op = "reduce";
    if (axes) call.attributes["axes"] = to_attribute(*axes);
    return at(where, [&] { return fold(call, arrays, inits, combine, reduce_by_program); });
}

Tensor reduce(const Tensor &x, const Operand &init, const Combine &combine, const std::optional<std::vector<int64_t>> &axes,
              const std::source_location &where) {
    return reduce(std::vector<Tensor>{x}, std::vector<Operand>{init}, on_one(combine), axes, where).at(0);
}

std::vector<Tensor> reduce_window(const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                                  const Windows &windows, const std::source_location &where) {
    const std::pair<const char *, const std::vector<int64_t> &> attributes[] = {{"window", windows.window},
                                                                                {"strides", windows.strides},
                                                                                {"low", windows.low},
                                                                                {"high", windows.high},
                                                                                {"base_dilation", windows.base_dilation},
                                                                                {"window_dilation", windows.window_dilation}};
    Node call;
    call.op = "reduce_window";
    for (const auto &[name, list] : attributes) call.attributes[name] = to_attribute(list);
    return at(where, [&] { return fold(call, arrays, inits, combine, reduce_windows_by_program); });
}

Tensor reduce_window(const Tensor &x, const Operand &init, const Combine &combine, const Windows &windows,
                     const std::source_location &where) {
    return reduce_window(std::vector<Tensor>{x}, std::vector<Operand>{init}, on_one(combine), windows, where).at(0);
}

} // namespace scalide

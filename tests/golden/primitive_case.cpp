#include "primitive_case.h"
#include "support/import_graph.h"
#include "support/window_params.h"
#include "transforms/analysis/passes.h"
#include <algorithm>

namespace scalide::test {

namespace {

using Json = nlohmann::json;
using Results = std::vector<ValueId>;

/// The program of a case while it is made: its arguments, in order, are the first operands.
struct Case {
    Case(const Json &index_entry, std::string operator_name) : entry(index_entry), op(std::move(operator_name)) {
        program.name = "golden";
        for (const Json &descriptor : entry["inputs"]) {
            operands.push_back(add_value(program, "a" + std::to_string(operands.size()), type_of(descriptor)));
            program.arguments.push_back({operands.back()});
        }
    }
    bool has(const char *name) const { return entry["attrs"].contains(name); }
    const Json &attribute(const char *name) const { return entry["attrs"].at(name); }
    std::vector<int64_t> shape() const { return entry["inputs"][0]["shape"]; }
    Results add(const Json &params) { return add_primitive(builder, op, params, operands); }
    void append_number(double value) { operands.push_back(builder.constant(value, builder.type(operands.back()).dtype)); }

    const Json &entry;
    const std::string op; ///< the primitive, by our name
    Program program;
    Builder builder{rules(), program};
    Results operands;
};

Results as_named(Case &c) { return c.add(c.entry["attrs"]); }

/// The right operand is an argument, or a number that the index names.
Results binary(Case &c) {
    for (const char *name : {"rhs_broadcast_scalar_const", "rhs_const"})
        if (c.has(name)) c.append_number(to_number(c.attribute(name)));
    return as_named(c);
}

Results select(Case &c) {
    static const std::map<std::string, double> numbers{{"zeros constant", 0}, {"-inf constant", to_number("-inf")}};
    if (c.has("case1")) c.append_number(numbers.at(c.attribute("case1")));
    return as_named(c);
}

Results pad(Case &c) {
    if (c.has("padding_value") && c.operands.size() < 2) c.append_number(to_number(c.attribute("padding_value")));
    return as_named(c);
}

Results reshape(Case &c) {
    if (!c.attribute("new_sizes").is_string()) return as_named(c);
    int64_t count = 1;
    for (const int64_t extent : c.shape()) count *= extent;
    return c.add({{"new_sizes", {count}}});
}

Results broadcast(Case &c) {
    if (!c.has("prepend")) return as_named(c);
    std::vector<int64_t> shape = c.shape(), dims;
    for (size_t i = 0; i < shape.size(); i++) dims.push_back(static_cast<int64_t>(i) + 1);
    shape.insert(shape.begin(), c.attribute("prepend").at(0).get<int64_t>());
    return c.add({{"shape", shape}, {"broadcast_dimensions", dims}});
}

Results slice(Case &c) {
    const bool said = !c.attribute("start").is_string();
    const std::vector<int64_t> ones(c.shape().size(), 1), twos(c.shape().size(), 2);
    const Json start = said ? c.attribute("start") : Json(ones), limit = said ? c.attribute("limit") : Json(c.shape()),
               strides = said ? c.attribute("strides") : Json(twos);
    return c.add({{"start_indices", start}, {"limit_indices", limit}, {"strides", strides}});
}

Results transpose(Case &c) {
    if (!c.attribute("permutation").is_string()) return as_named(c);
    std::vector<int64_t> axes;
    for (auto axis = static_cast<int64_t>(c.shape().size()) - 1; axis >= 0; axis--) axes.push_back(axis);
    return c.add({{"permutation", axes}});
}

Results convolve(Case &c) {
    return c.add(with_padding_of_convolution(c.entry["attrs"], c.entry["inputs"][0]["shape"], c.entry["inputs"][1]["shape"]));
}

/// The computation is the operator.
Results reduce_window(Case &c) {
    static const std::map<std::string, std::string> operators{
        {"add", "reduce_window_sum"}, {"max", "reduce_window_max"}, {"min", "reduce_window_min"}};
    const Json params = with_padding_of_window(c.entry["attrs"], c.shape());
    return add_primitive(c.builder, operators.at(params["computation"]), params, c.operands);
}

/// The forms of a convolution that take their padding in a word.
Results convolve_simply(Case &c) {
    const char *strides = c.has("strides") ? "strides" : "window_strides";
    const bool is_same = c.attribute("padding") == "SAME";
    return {c.builder.add_one(
        c.op, c.operands,
        {{"strides", to_attribute(c.attribute(strides).get<std::vector<int64_t>>())}, {"padding", is_same ? "same" : "valid"}})};
}

Results arg_reduce(Case &c) { return c.has("axis") ? c.add({{"axes", {c.attribute("axis")}}}) : as_named(c); }

/// A scale is an argument or an attribute, also in the words "python float 0.5"; without one, and for integers, x stays as it is.
Results set_scaling(Case &c) {
    for (const char *name : {"scale_const", "scale"}) {
        if (!c.has(name) || c.attribute(name).is_null()) continue;
        const Json &scale = c.attribute(name);
        const std::string words = scale.is_string() ? scale.get<std::string>() : "";
        c.operands.push_back(c.builder.constant(scale.is_string() ? std::stod(words.substr(words.rfind(' '))) : to_number(scale)));
    }
    const bool keeps = c.operands.size() < 2 || !is_float(c.builder.type(c.operands[0]).dtype);
    return keeps ? Results{c.operands[0]} : as_named(c);
}

/// With a dtype the value is formed in f32 and then converted.
Results stop_scaling(Case &c) {
    const Json &dtype = c.attribute("dtype");
    if (dtype.is_null()) return as_named(c);
    for (const Json &step : {Json("f32"), Json(nullptr), dtype}) {
        const bool converts = !step.is_null();
        c.operands = add_primitive(c.builder, converts ? "convert_element_type" : c.op, {{"new_dtype", step}}, c.operands);
    }
    return c.operands;
}

/// The functions of LAX count negative starts from the end before they call the primitives, which move them inside.
Results dynamic(Case &c) {
    const Extents shape = c.builder.type(c.operands[0]).shape;
    const size_t first = c.operands.size() - shape.size();
    for (size_t axis = 0; axis < shape.size(); axis++) {
        ValueId &start = c.operands[first + axis];
        const ValueId zero = c.builder.constant(0, Dtype::i32), extent = c.builder.size(shape[axis], Dtype::i32);
        const ValueId is_negative = c.builder.add_one("lt", {start, zero});
        start = c.builder.add_one("select_n", {is_negative, start, c.builder.add_one("add", {start, extent})});
    }
    return as_named(c);
}

/// The index has sums alone, from 0.
Results reduce(Case &c) { return c.add({{"axes", c.attribute("dimensions")}}); }

/// Transforms of the last axis, each an operator.
Results transform(Case &c) {
    static const std::map<std::string, std::string> operators{{"FFT", "fft"}, {"IFFT", "ifft"}, {"RFFT", "rfft"}, {"IRFFT", "irfft"}};
    const std::string type = c.attribute("fft_type");
    const Attributes length = {{"length", c.attribute("fft_lengths").at(0).get<int64_t>()}};
    return {c.builder.add_one(operators.at(type), c.operands, type == "IRFFT" ? length : Attributes{})};
}

/// LAX has the case for true first.
Results select_by_bool(Case &c) {
    std::swap(c.operands.at(1), c.operands.at(2));
    return as_named(c);
}

/// The operators that act on one pass: alone, or in value_and_grad(sum(op(x) * x * c)), whose words end with the number.
Results under_grad(Case &c, const Attributes &attributes) {
    const ValueId x = c.operands[0], y = c.builder.add_one(c.op, {x}, attributes);
    if (!c.has("fn")) return {y};
    const std::string words = c.attribute("fn");
    c.operands = {c.builder.add_one("mul", {y, x})};
    c.append_number(std::stod(words.substr(words.rfind('*') + 1)));
    const Results product = add_primitive(c.builder, "mul", {}, c.operands);
    const ValueId loss = c.builder.add_one("reduce_sum", product, {{"axes", std::vector<Attribute>{0, 1}}});
    return {loss, append_gradient(c.program, rules(), loss, {x})[0]};
}

Results dynamic_rescale(Case &c) {
    const std::string name = c.entry["op"], norm = name.substr(std::string("dynamic_rescale_").size());
    return under_grad(c, {{"norm", norm.substr(0, norm.find('_'))}});
}

Results cast(Case &c) { return under_grad(c, {{"dtype", c.attribute("dtype").get<std::string>()}}); }

Results reduce_precision(Case &c) {
    const FormatSpec &format = format_of(parse_dtype(c.attribute("dtype").get<std::string>()).value());
    return under_grad(c, {{"exponent_bits", format.exponent_bits}, {"mantissa_bits", format.mantissa_bits}});
}

/// jax.nn on the last axis, or element by element.
Results neural(Case &c) {
    Attributes attributes;
    if (c.has("eps")) attributes["epsilon"] = to_number(c.attribute("eps"));
    const std::vector<AttributeSpec> &known = rules().rule(c.op, {}).attributes;
    if (std::ranges::any_of(known, [](const AttributeSpec &spec) { return spec.name == "axes"; }))
        attributes["axes"] = std::vector<Attribute>{static_cast<int64_t>(c.shape().size()) - 1};
    return c.builder.add(c.op, c.operands, attributes);
}

/// jax.nn.dot_product_attention
Results attend(Case &c) {
    const bool causal = c.attribute("is_causal");
    return {c.builder.add_one(c.op, c.operands, {{"causal", causal ? "true" : "false"}})};
}

/// How a primitive of the suites becomes an operator of Scalide: its name (empty: the same name) and its conversion.
struct Maker {
    std::string op;
    Results (*make)(Case &);
};

const std::map<std::string, Maker> makers{
    {"add", {"", binary}},
    {"argmax", {"", arg_reduce}},
    {"argmin", {"", arg_reduce}},
    {"as_scaled_array", {"set_scaling", set_scaling}},
    {"asarray", {"stop_scaling", stop_scaling}},
    {"betainc", {"regularized_incomplete_beta", as_named}},
    {"bitwise_and", {"and", as_named}},
    {"bitwise_not", {"not", as_named}},
    {"bitwise_or", {"or", as_named}},
    {"bitwise_xor", {"xor", as_named}},
    {"broadcast_in_dim", {"", broadcast}},
    {"cast_on_backward", {"", cast}},
    {"cast_on_forward", {"", cast}},
    {"conv", {"", convolve_simply}},
    {"conv_general_dilated", {"", convolve}},
    {"conv_transpose", {"", convolve_simply}},
    {"div", {"", binary}},
    {"dynamic_rescale_l1", {"dynamic_rescale", dynamic_rescale}},
    {"dynamic_rescale_l1_grad", {"dynamic_rescale_grad", dynamic_rescale}},
    {"dynamic_rescale_l2", {"dynamic_rescale", dynamic_rescale}},
    {"dynamic_rescale_l2_grad", {"dynamic_rescale_grad", dynamic_rescale}},
    {"dynamic_rescale_max", {"dynamic_rescale", dynamic_rescale}},
    {"dynamic_rescale_max_grad", {"dynamic_rescale_grad", dynamic_rescale}},
    {"dynamic_slice", {"", dynamic}},
    {"dynamic_update_slice", {"", dynamic}},
    {"eq", {"", binary}},
    {"fft", {"", transform}},
    {"ge", {"", binary}},
    {"gt", {"", binary}},
    {"le", {"", binary}},
    {"lt", {"", binary}},
    {"max", {"", binary}},
    {"min", {"", binary}},
    {"mul", {"", binary}},
    {"ne", {"", binary}},
    {"nn.attention", {"attention", attend}},
    {"nn.elu", {"elu", neural}},
    {"nn.gelu", {"gelu_tanh", neural}},
    {"nn.gelu_exact", {"gelu", neural}},
    {"nn.layer_norm", {"layer_norm", neural}},
    {"nn.leaky_relu", {"leaky_relu", neural}},
    {"nn.log_softmax", {"log_softmax", neural}},
    {"nn.logsumexp", {"logsumexp", neural}},
    {"nn.relu", {"relu", neural}},
    {"nn.rms_norm", {"rms_norm", neural}},
    {"nn.sigmoid", {"logistic", neural}},
    {"nn.silu", {"silu", neural}},
    {"nn.softmax", {"softmax", neural}},
    {"nn.softplus", {"softplus", neural}},
    {"nn.swish", {"silu", neural}},
    {"pad", {"", pad}},
    {"reduce", {"reduce_sum", reduce}},
    {"reduce_precision_on_backward", {"", reduce_precision}},
    {"reduce_precision_on_forward", {"", reduce_precision}},
    {"reduce_window", {"reduce_window_sum", reduce_window}},
    {"reshape", {"", reshape}},
    {"select", {"select_n", select_by_bool}},
    {"select_n", {"", select}},
    {"set_scaling", {"", set_scaling}},
    {"slice", {"", slice}},
    {"stop_scaling", {"", stop_scaling}},
    {"sub", {"", binary}},
    {"transpose", {"", transpose}},
};

Maker maker_of(const Json &entry) {
    const std::string name = entry["op"];
    if (name == "unsupported") return {entry["attrs"]["primitive"], as_named};
    if (entry["attrs"].value("rounding_method", "") == "AWAY_FROM_ZERO") return {"round_away", as_named};
    const auto found = makers.find(name);
    if (found == makers.end()) return {name, as_named};
    return {found->second.op.empty() ? name : found->second.op, found->second.make};
}

} // namespace

Program primitive_program(const Json &entry) {
    const Maker maker = maker_of(entry);
    Case c(entry, maker.op);
    for (const ValueId result : maker.make(c)) c.program.results.push_back({"r" + std::to_string(c.program.results.size()), result});
    return c.program;
}

std::string missing_of(const Json &entry) {
    const std::string op = maker_of(entry).op;
    if (!has_primitive(rules(), op)) return "operator " + op;
    if (entry["op"] == "unsupported" && rules().rule(op, {}).operands.size() != entry["inputs"].size())
        return "operands of " + op + " in the index";
    for (const char *side : {"inputs", "outputs"})
        for (const Json &descriptor : entry[side])
            if (!parse_dtype(descriptor["dtype"].get<std::string>())) return "dtype " + descriptor["dtype"].get<std::string>();
    return "";
}

} // namespace scalide::test

#include "support/import_graph.h"
#include "rulebook/promotion.h"
#include "support/window_params.h"
#include <algorithm>
#include <limits>
#include <stdexcept>

namespace scalide::test {

namespace {

using Json = nlohmann::json;

Attribute to_attribute(const Json &value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_number()) return value.get<double>();
    std::vector<Attribute> list;
    for (const Json &element : value) list.push_back(to_attribute(element));
    return list;
}

Attribute column(const Json &rows, size_t index) {
    std::vector<Attribute> list;
    for (const Json &row : rows) list.push_back(to_attribute(row[index]));
    return list;
}

Attributes of_pad(const Json &params) {
    const Json &config = params["padding_config"];
    return {{"low", column(config, 0)}, {"high", column(config, 1)}, {"interior", column(config, 2)}};
}

Attributes of_arg_reduce(const Json &params) { return {{"axis", to_attribute(params["axes"][0])}}; }

Attributes of_dot_general(const Json &params) {
    const Json &numbers = params["dimension_numbers"];
    Attributes attributes = {{"contract", to_attribute(numbers[0])}, {"batch", to_attribute(numbers[1])}};
    if (const auto found = params.find("preferred_element_type"); found != params.end() && !found->is_null())
        attributes["preferred"] = to_attribute(*found);
    return attributes;
}

/// Dimension numbers have the same names; a mode may be given by another word.
Attributes of_indexing(const Json &params) {
    static const std::map<std::string, std::string> modes{{"fill", "fill_or_drop"}, {"drop", "fill_or_drop"}};
    Attributes attributes;
    for (const auto &[name, dims] : params["dimension_numbers"].items()) attributes[name] = to_attribute(dims);
    if (const auto sizes = params.find("slice_sizes"); sizes != params.end()) attributes["slice_sizes"] = to_attribute(*sizes);
    const std::string mode = params.value("mode", "fill");
    attributes["mode"] = modes.contains(mode) ? modes.at(mode) : mode;
    return attributes;
}

/// How a primitive is called here; params that are not named say nothing about values.
struct Primitive {
    std::string op;
    std::map<std::string, std::string> renamed = {};                    ///< param to attribute; null ones are left out
    Attributes (*attributes)(const Json &) = nullptr;                   ///< those that need more than another name
    enum class Dtypes { as_given, of_first } dtypes = Dtypes::as_given; ///< of operands
};

const std::map<std::string, Primitive> primitives{
    {"approx_max_k", {"approx_max_k", {{"k", "k"}}}},
    {"approx_min_k", {"approx_min_k", {{"k", "k"}}}},
    {"argmax", {"argmax", {}, of_arg_reduce}},
    {"argmin", {"argmin", {}, of_arg_reduce}},
    {"bitcast_convert_type", {"bitcast_convert_type", {{"new_dtype", "dtype"}}}},
    {"broadcast", {"broadcast", {{"sizes", "sizes"}}}},
    {"broadcast_in_dim", {"broadcast_in_dim", {{"shape", "shape"}, {"broadcast_dimensions", "dims"}}}},
    {"collapse", {"collapse", {{"start", "start"}, {"stop", "stop"}}}},
    {"concatenate", {"concatenate", {{"dimension", "dimension"}}}},
    {"conv_general_dilated", {"conv_general_dilated", {}, of_convolution}},
    {"convert_element_type", {"convert_element_type", {{"new_dtype", "dtype"}}}},
    {"cumlogsumexp", {"cumlogsumexp", {{"axis", "axis"}, {"reverse", "reverse"}}}},
    {"cummax", {"cummax", {{"axis", "axis"}, {"reverse", "reverse"}}}},
    {"cummin", {"cummin", {{"axis", "axis"}, {"reverse", "reverse"}}}},
    {"cumprod", {"cumprod", {{"axis", "axis"}, {"reverse", "reverse"}}}},
    {"cumsum", {"cumsum", {{"axis", "axis"}, {"reverse", "reverse"}}}},
    {"dot_general", {"dot_general", {}, of_dot_general}},
    {"dynamic_rescale", {"dynamic_rescale", {{"norm", "norm"}}}},
    {"dynamic_slice", {"dynamic_slice", {{"slice_sizes", "sizes"}}}},
    {"expand_dims", {"expand_dims", {{"dimensions", "dimensions"}}}},
    {"full", {"full", {{"shape", "shape"}, {"fill_value", "fill_value"}}}},
    {"full_like", {"full_like", {{"fill_value", "fill_value"}}}},
    {"gather", {"gather", {}, of_indexing}},
    {"get_data_scale_p", {"get_data_scale"}},
    {"index_in_dim", {"index_in_dim", {{"index", "index"}, {"axis", "axis"}, {"keepdims", "keepdims"}}}},
    {"index_take", {"index_take", {{"axes", "axes"}}}},
    {"integer_pow", {"integer_pow", {{"y", "y"}}}},
    {"iota", {"iota", {{"dtype", "dtype"}, {"shape", "shape"}, {"dimension", "dimension"}}}},
    {"pad", {"pad", {}, of_pad}},
    {"pow", {"pow", {}, nullptr, Primitive::Dtypes::of_first}}, // LAX takes integer exponents too
    {"pow2_decompose", {"pow2_decompose", {{"scale_dtype", "dtype"}}}},
    {"reduce_max", {"reduce_max", {{"axes", "axes"}}}},
    {"reduce_min", {"reduce_min", {{"axes", "axes"}}}},
    {"reduce_precision", {"reduce_precision", {{"exponent_bits", "exponent_bits"}, {"mantissa_bits", "mantissa_bits"}}}},
    {"reduce_prod", {"reduce_prod", {{"axes", "axes"}}}},
    {"reduce_sum", {"reduce_sum", {{"axes", "axes"}}}},
    {"reduce_window_max", {"reduce_window_max", {}, of_reduce_window}},
    {"reduce_window_min", {"reduce_window_min", {}, of_reduce_window}},
    {"reduce_window_sum", {"reduce_window_sum", {}, of_reduce_window}},
    {"reshape", {"reshape", {{"new_sizes", "shape"}}}},
    {"rev", {"rev", {{"dimensions", "dimensions"}}}},
    {"scatter", {"scatter", {}, of_indexing}},
    {"scatter_add", {"scatter_add", {}, of_indexing}},
    {"scatter_max", {"scatter_max", {}, of_indexing}},
    {"scatter_min", {"scatter_min", {}, of_indexing}},
    {"scatter_mul", {"scatter_mul", {}, of_indexing}},
    {"set_scaling_p", {"set_scaling"}},
    {"slice", {"slice", {{"start_indices", "start"}, {"limit_indices", "limit"}, {"strides", "strides"}}}},
    {"slice_in_dim", {"slice_in_dim", {{"start", "start"}, {"limit", "limit"}, {"stride", "stride"}, {"axis", "axis"}}}},
    {"sort", {"sort", {{"dimension", "dimension"}, {"num_keys", "num_keys"}, {"is_stable", "is_stable"}}}},
    {"sort_key_val", {"sort_key_val", {{"dimension", "dimension"}}}},
    {"squeeze", {"squeeze", {{"dimensions", "dimensions"}}}},
    {"stop_scaling_p", {"stop_scaling"}},
    {"top_k", {"top_k", {{"k", "k"}}}},
    {"transpose", {"transpose", {{"permutation", "permutation"}}}},
};

/// A primitive without params is called as it is here.
Primitive primitive_named(const std::string &name) {
    const auto found = primitives.find(name);
    return found == primitives.end() ? Primitive{name} : found->second;
}

Attributes attributes_of(const Primitive &primitive, const Json &params) {
    Attributes attributes = primitive.attributes != nullptr ? primitive.attributes(params) : Attributes{};
    for (const auto &[param, attribute] : primitive.renamed)
        if (const auto found = params.find(param); found != params.end() && !found->is_null()) attributes[attribute] = to_attribute(*found);
    return attributes;
}

void match_operands(Builder &builder, const Primitive &primitive, std::vector<ValueId> &operands) {
    const Rule *rule = builder.rulebook().find(primitive.op);
    if (rule == nullptr || rule->family != "elementwise") return;
    Extents shape;
    for (const ValueId operand : operands) shape = broadcast_shape(shape, builder.type(operand).shape);
    const Dtype dtype = builder.type(operands.at(0)).dtype;
    for (ValueId &operand : operands) {
        operand = builder.broadcast(operand, shape);
        if (primitive.dtypes == Primitive::Dtypes::of_first) operand = builder.convert(operand, dtype);
    }
}

class Importer {
public:
    Importer(const Json &flat, const Rulebook &rulebook) : flat_(flat), builder_(rulebook, program_) {}

    Program run() {
        program_.name = "golden";
        for (const Json &variable : flat_["invars"]) {
            const ValueId value = add_value(program_, "a" + std::to_string(program_.arguments.size()), type_of(variable));
            program_.arguments.push_back({value});
            values_[variable["id"]] = value;
        }
        for (const Json &equation : flat_["eqns"]) place(equation);
        for (const Json &operand : flat_["outvars"])
            program_.results.push_back({"r" + std::to_string(program_.results.size()), value_of(operand)});
        return std::move(program_);
    }

private:
    ValueId value_of(const Json &operand) {
        const auto literal = operand.find("literal");
        return literal == operand.end() ? values_.at(operand["id"]) : builder_.constant(to_number(*literal), type_of(operand).dtype);
    }

    void place(const Json &equation) {
        std::vector<ValueId> operands;
        for (const Json &operand : equation["in"]) operands.push_back(value_of(operand));
        const std::vector<ValueId> results = add_primitive(builder_, equation["prim"], equation["params"], operands);
        for (size_t i = 0; i < results.size(); i++) values_[equation["out"][i]["id"]] = results[i];
    }

    const Json &flat_;
    Program program_;
    Builder builder_;
    std::map<int, ValueId> values_; ///< by id of the graph; -1 is an unused result
};

} // namespace

std::vector<ValueId> add_primitive(Builder &builder, const std::string &name, const Json &params, std::vector<ValueId> operands) {
    const Primitive primitive = primitive_named(name);
    match_operands(builder, primitive, operands);
    return builder.add(primitive.op, operands, attributes_of(primitive, params));
}

Program import_graph(const Json &flat, const Rulebook &rulebook) { return Importer(flat, rulebook).run(); }

bool has_primitive(const Rulebook &rulebook, const std::string &name) { return rulebook.find(primitive_named(name).op) != nullptr; }

std::vector<std::string> unknown_primitives(const Json &flat, const Rulebook &rulebook) {
    std::vector<std::string> unknown;
    for (const Json &equation : flat["eqns"]) {
        const std::string name = equation["prim"];
        if (!has_primitive(rulebook, name) && std::ranges::find(unknown, name) == unknown.end()) unknown.push_back(name);
    }
    return unknown;
}

Type type_of(const Json &variable) {
    const auto dtype = parse_dtype(variable["dtype"].get<std::string>());
    if (!dtype) throw std::runtime_error("unknown dtype " + variable["dtype"].dump());
    Type type{*dtype, {}};
    for (int64_t extent : variable["shape"]) type.shape.emplace_back(extent);
    return type;
}

double to_number(const Json &number) {
    static const std::map<std::string, double> words{{"inf", std::numeric_limits<double>::infinity()},
                                                     {"-inf", -std::numeric_limits<double>::infinity()},
                                                     {"nan", std::numeric_limits<double>::quiet_NaN()}};
    return number.is_string() ? words.at(number) : number.is_boolean() ? double(number.get<bool>()) : number.get<double>();
}

} // namespace scalide::test

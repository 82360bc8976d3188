#include "support/window_params.h"
#include <algorithm>

namespace scalide::test {

namespace {

using Json = nlohmann::json;
using Integers = std::vector<int64_t>;

Attribute integers(const Json &list) { return scalide::to_attribute(list.get<Integers>()); }

void add_if_there(Attributes &attributes, const Json &params, const char *param, const char *attribute) {
    if (const auto found = params.find(param); found != params.end()) attributes[attribute] = integers(*found);
}

void add_padding(Attributes &attributes, const Json &padding) {
    Integers low, high;
    for (const Json &pair : padding) low.push_back(pair[0]), high.push_back(pair[1]);
    attributes["low"] = to_attribute(low);
    attributes["high"] = to_attribute(high);
}

/// "NHWC" with first "N" and second "C": the places of these, then those of the letters that `spatial` has, in its order.
Integers spec_of(const std::string &word, const std::string &first_two, const std::string &spatial) {
    Integers axes;
    for (const char letter : first_two + spatial) axes.push_back(static_cast<int64_t>(word.find(letter)));
    return axes;
}

struct Specs {
    Integers lhs, rhs, out;
};

Specs specs_of(const Json &numbers) {
    if (numbers.is_object()) return {numbers["lhs_spec"], numbers["rhs_spec"], numbers["out_spec"]};
    const std::string lhs = numbers[0], rhs = numbers[1], out = numbers[2];
    std::string spatial;
    std::ranges::copy_if(rhs, std::back_inserter(spatial), [](char letter) { return letter != 'O' && letter != 'I'; });
    return {spec_of(lhs, "NC", spatial), spec_of(rhs, "OI", spatial), spec_of(out, "NC", spatial)};
}

Integers at(const Json &shape, const Integers &axes) {
    Integers extents;
    for (size_t i = 2; i < axes.size(); i++) extents.push_back(shape[axes[i]]);
    return extents;
}

Integers dilated(Integers extents, const Json &params, const char *dilation) {
    for (size_t i = 0; i < extents.size() && params.contains(dilation); i++)
        extents[i] = (extents[i] - 1) * params[dilation][i].get<int64_t>() + 1;
    return extents;
}

/// LAX: ceil(extent / stride) windows; an odd padding element goes after the data.
Json pairs_of(const Json &params, const Integers &extents, const Integers &windows) {
    if (!params["padding"].is_string()) return params["padding"];
    Json pairs = Json::array();
    for (size_t i = 0; i < extents.size(); i++) {
        const int64_t stride = params["window_strides"][i], count = (extents[i] + stride - 1) / stride;
        const int64_t all = params["padding"] == "SAME" ? std::max<int64_t>(0, (count - 1) * stride + windows[i] - extents[i]) : 0;
        pairs.push_back({all / 2, all - all / 2});
    }
    return pairs;
}

} // namespace

Attributes of_reduce_window(const Json &params) {
    Attributes attributes;
    add_if_there(attributes, params, "window_dimensions", "window");
    add_if_there(attributes, params, "window_strides", "strides");
    add_if_there(attributes, params, "base_dilation", "base_dilation");
    add_if_there(attributes, params, "window_dilation", "window_dilation");
    add_padding(attributes, params["padding"]);
    return attributes;
}

Attributes of_convolution(const Json &params) {
    const Specs specs = specs_of(params["dimension_numbers"]);
    Attributes attributes{{"lhs_spec", to_attribute(specs.lhs)},
                          {"rhs_spec", to_attribute(specs.rhs)},
                          {"out_spec", to_attribute(specs.out)},
                          {"feature_group_count", params.value("feature_group_count", int64_t{1})},
                          {"batch_group_count", params.value("batch_group_count", int64_t{1})}};
    add_if_there(attributes, params, "window_strides", "strides");
    add_if_there(attributes, params, "lhs_dilation", "lhs_dilation");
    add_if_there(attributes, params, "rhs_dilation", "rhs_dilation");
    add_padding(attributes, params["padding"]);
    return attributes;
}

Json with_padding_of_window(Json params, const Json &shape) {
    params["padding"] = pairs_of(params, shape, dilated(params["window_dimensions"], params, "window_dilation"));
    return params;
}

Json with_padding_of_convolution(Json params, const Json &lhs, const Json &rhs) {
    const Specs specs = specs_of(params["dimension_numbers"]);
    params["padding"] =
        pairs_of(params, dilated(at(lhs, specs.lhs), params, "lhs_dilation"), dilated(at(rhs, specs.rhs), params, "rhs_dilation"));
    return params;
}

} // namespace scalide::test

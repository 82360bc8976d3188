#include "schedules/dispatch.h"
#include "schedules/tiles_text.h"
#include <yaml-cpp/yaml.h>

namespace scalide {

namespace {

Dtype dtype_of(const YAML::Node &word) { return parse_dtype(word.as<std::string>()).value(); }

std::vector<Dtype> dtypes_of(const YAML::Node &words) {
    std::vector<Dtype> dtypes;
    for (const YAML::Node &word : words) dtypes.push_back(dtype_of(word));
    return dtypes;
}

ScaleLayout layout_of(const YAML::Node &word) { return parse_scale_layout(word.as<std::string>()).value(); }

std::vector<ScaleLayouts> scales_of(const YAML::Node &pairs) {
    std::vector<ScaleLayouts> scales;
    for (const YAML::Node &pair : pairs) scales.push_back({layout_of(pair[0]), layout_of(pair[1])});
    return scales;
}

LibraryResult result_of(const YAML::Node &row) {
    const Dtype dtype = dtype_of(row["dtype"]);
    const Overflow overflow = size_of(dtype) == 1 ? Overflow::saturate : Overflow::format;
    return {dtype, overflow, dtypes_of(row["bias"]), dtypes_of(row["addend"]), row["scaled"].as<bool>(false)};
}

} // namespace

std::vector<LibraryProduct> library_products(const std::string &target) {
    static const YAML::Node rows = YAML::Load(dispatch_text);
    std::vector<LibraryProduct> products;
    for (const YAML::Node &row : rows) {
        if (row["target"].as<std::string>() != target) continue;
        LibraryProduct product{row["library"].as<std::string>(),    dtype_of(row["lhs"]),          dtype_of(row["rhs"]), {},
                               row["k_contiguous"].as<bool>(false), row["multiple"].as<int64_t>(1)};
        if (row["scales"]) product.scales = scales_of(row["scales"]);
        if (row["through"]) product.through = dtype_of(row["through"]);
        product.cards = row["cards"].as<std::vector<int>>(std::vector<int>());
        for (const YAML::Node &result : row["results"]) product.results.push_back(result_of(result));
        products.push_back(std::move(product));
    }
    return products;
}

} // namespace scalide

#include "schedules/dispatch.h"
#include "schedules/tiles_text.h"
#include <yaml-cpp/yaml.h>

namespace scalide {

namespace {

Dtype dtype_of(const YAML::Node &word) { return parse_dtype(word.as<std::string>()).value(); }

} // namespace

std::vector<LibraryProduct> library_products(const std::string &target) {
    static const YAML::Node rows = YAML::Load(dispatch_text);
    std::vector<LibraryProduct> products;
    for (const YAML::Node &row : rows) {
        if (row["target"].as<std::string>() != target) continue;
        LibraryProduct product{
            row["library"].as<std::string>(), dtype_of(row["lhs"]), dtype_of(row["rhs"]), {}, row["k_contiguous"].as<bool>(false)};
        for (const YAML::Node &result : row["results"]) product.results.push_back(dtype_of(result));
        products.push_back(std::move(product));
    }
    return products;
}

} // namespace scalide

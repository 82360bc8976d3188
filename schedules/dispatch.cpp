#include "schedules/dispatch.h"
#include "schedules/table_rows.h"
#include "schedules/tiles_text.h"

namespace scalide {

namespace {

template<typename T>
T known(const YAML::Node &word, const char *what, std::optional<T> (*parse)(std::string_view)) {
    const std::optional<T> value = parse(word.as<std::string>());
    if (!value) refuse(word, std::string("must be ") + what + ", got " + word.as<std::string>());
    return *value;
}

Dtype dtype_of(const YAML::Node &word) { return known(word, "a dtype", parse_dtype); }

std::vector<Dtype> dtypes_of(const YAML::Node &words) {
    std::vector<Dtype> dtypes;
    for (const YAML::Node &word : words) dtypes.push_back(dtype_of(word));
    return dtypes;
}

ScaleLayout layout_of(const YAML::Node &word) { return known(word, "a layout of scales", parse_scale_layout); }

std::vector<ScaleLayouts> scales_of(const YAML::Node &pairs) {
    std::vector<ScaleLayouts> scales;
    for (const YAML::Node &pair : pairs) scales.push_back({layout_of(pair[0]), layout_of(pair[1])});
    return scales;
}

LibraryResult result_of(const YAML::Node &row) {
    const Dtype dtype = dtype_of(needed(row, "dtype"));
    const Overflow overflow = size_of(dtype) == 1 ? Overflow::saturate : Overflow::format;
    return {dtype, overflow, dtypes_of(row["bias"]), dtypes_of(row["addend"]), row["scaled"].as<bool>(false)};
}

LibraryProduct product_of(const YAML::Node &row) {
    LibraryProduct product{needed(row, "library").as<std::string>(), dtype_of(needed(row, "lhs")),  dtype_of(needed(row, "rhs")), {},
                           row["k_contiguous"].as<bool>(false),      row["multiple"].as<int64_t>(1)};
    if (product.multiple < 1) refuse(row["multiple"], "multiple must be at least 1");
    if (row["scales"]) product.scales = scales_of(row["scales"]);
    if (row["through"]) product.through = dtype_of(row["through"]);
    product.cards = row["cards"].as<std::vector<int>>(std::vector<int>());
    for (const YAML::Node &result : needed(row, "results")) product.results.push_back(result_of(result));
    return product;
}

} // namespace

std::vector<LibraryProduct> library_products(const std::string &target) {
    return library_products(target, dispatch_text, "schedules/dispatch.yaml");
}

std::vector<LibraryProduct> library_products(const std::string &target, const std::string &table, const std::string &file) {
    std::vector<LibraryProduct> products;
    read_rows(table, file, [&](const YAML::Node &row) {
        if (needed(row, "target").as<std::string>() == target) products.push_back(product_of(row));
    });
    return products;
}

} // namespace scalide

#include "schedules/dispatch.h"
#include "rulebook/nearest.h"
#include "schedules/tables/table_rows.h"
#include "schedules/tables/tiles_text.h"
#include <algorithm>

namespace scalide {

namespace {

Dtype dtype_of(const YamlValue &word) {
    if (const std::optional<Dtype> dtype = parse_dtype(word.text())) return *dtype;
    std::vector<std::string> names;
    for (const Dtype dtype : all_dtypes()) names.emplace_back(to_string(dtype));
    word.fail("must be a dtype", word.description(), suggestion(word.text(), names, ""));
}

std::vector<Dtype> dtypes_of(const YamlValue *words) {
    std::vector<Dtype> dtypes;
    if (words)
        for (const YamlValue &word : words->elements()) dtypes.push_back(dtype_of(word));
    return dtypes;
}

ScaleLayout layout_of(const YamlValue &word) {
    const std::optional<ScaleLayout> layout = parse_scale_layout(word.text());
    if (!layout) word.fail("must be a scale layout", word.description());
    return *layout;
}

/// Reads a list of pairs, with one element for each operand.
std::vector<std::pair<YamlValue, YamlValue>> pairs_of(const YamlValue &list) {
    std::vector<std::pair<YamlValue, YamlValue>> pairs;
    for (const YamlValue &pair : list.elements()) {
        const std::vector<YamlValue> sides = pair.elements();
        if (sides.size() != 2) pair.fail("must be a pair [lhs, rhs]", "a list of " + std::to_string(sides.size()));
        pairs.emplace_back(sides[0], sides[1]);
    }
    if (pairs.empty()) list.fail("must be a list of pairs", "an empty list");
    return pairs;
}

LibraryResult result_of(const YamlValue &value) {
    const YamlFields fields = value.fields({{"dtype", Key::required}, {"bias"}, {"addend"}, {"scaled"}});
    const Dtype dtype = dtype_of(*fields.find("dtype"));
    const Overflow overflow = size_of(dtype) == 1 ? Overflow::saturate : Overflow::format;
    const YamlValue *scaled = fields.find("scaled");
    return {dtype, overflow, dtypes_of(fields.find("bias")), dtypes_of(fields.find("addend")), scaled && scaled->flag()};
}

/// Reads the product of a row, without its operands.
LibraryProduct product_of(const YamlFields &fields) {
    LibraryProduct product{fields.find("library")->word({"cublaslt"}), Dtype::f32, Dtype::f32, {}};
    if (const YamlValue *contiguous = fields.find("k_contiguous")) product.k_contiguous = contiguous->flag();
    if (const YamlValue *multiple = fields.find("multiple")) product.multiple = integer_in(*multiple, 1, 1 << 20);
    if (const YamlValue *through = fields.find("through")) product.through = dtype_of(*through);
    if (const YamlValue *scales = fields.find("scales")) {
        product.scales.clear();
        for (const auto &[lhs, rhs] : pairs_of(*scales)) product.scales.push_back({layout_of(lhs), layout_of(rhs)});
    }
    if (const YamlValue *cards = fields.find("cards"))
        for (const YamlValue &card : cards->elements()) product.cards.push_back(int(integer_in(card, 1, 1000)));
    for (const YamlValue &result : fields.find("results")->elements()) product.results.push_back(result_of(result));
    return product;
}

/// True if `all` contains every element of `some`.
template<typename T>
bool contains(const std::vector<T> &all, const std::vector<T> &some) {
    return std::ranges::all_of(some, [&](const T &one) { return std::ranges::find(all, one) != all.end(); });
}

/// True if `row` matches every product that `other` matches.
bool covers(const DispatchRow &row, const DispatchRow &other) {
    const LibraryProduct &a = row.product, &b = other.product;
    const auto dtypes = [](const LibraryProduct &product) {
        std::vector<Dtype> all;
        for (const LibraryResult &result : product.results) all.push_back(result.dtype);
        return all;
    };
    const bool has_cards = a.cards.empty() || (!b.cards.empty() && contains(a.cards, b.cards));
    return row.target == other.target && a.lhs == b.lhs && a.rhs == b.rhs && has_cards && contains(a.scales, b.scales) &&
           contains(dtypes(a), dtypes(b));
}

} // namespace

std::vector<DispatchRow> parse_dispatch(const std::string &table, const std::string &file) {
    std::vector<DispatchRow> rows;
    for (const YamlValue &value : read_rows(table, file)) {
        const YamlFields fields = value.fields({{"target", Key::required},
                                                {"library", Key::required},
                                                {"operands", Key::required},
                                                {"results", Key::required},
                                                {"k_contiguous"},
                                                {"multiple"},
                                                {"scales"},
                                                {"through"},
                                                {"cards"}});
        DispatchRow row{fields.find("target")->word({"cuda"}), product_of(fields)};
        for (const auto &[lhs, rhs] : pairs_of(*fields.find("operands"))) {
            row.product.lhs = dtype_of(lhs);
            row.product.rhs = dtype_of(rhs);
            const auto is_covered = [&](const DispatchRow &before) { return covers(before, row); };
            if (std::ranges::any_of(rows, is_covered))
                lhs.fail("this entry has no effect: earlier entries match " + lhs.text() + " x " + rhs.text(), "", "Move it before them");
            rows.push_back(row);
        }
    }
    return rows;
}

std::vector<LibraryProduct> library_products(const std::string &target) {
    static const std::vector<DispatchRow> rows = parse_dispatch(dispatch_text, "schedules/dispatch.yaml");
    std::vector<LibraryProduct> products;
    for (const DispatchRow &row : rows)
        if (row.target == target) products.push_back(row.product);
    return products;
}

} // namespace scalide

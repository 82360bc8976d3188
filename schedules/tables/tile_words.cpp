#include "schedules/tables/tile_words.h"
#include "expr/error.h"
#include <algorithm>

namespace scalide {

namespace {

template<typename OfKind, Extent OfKind::*extent>
const Extent &get(const Stages &stages) {
    return std::get<OfKind>(stages).*extent;
}

struct ExtentWord {
    std::string_view kind, name;
    const Extent &(*get)(const Stages &);
};
constexpr ExtentWord extent_words[] = {
    {"row", "rows", get<RowStages, &RowStages::rows>},
    {"row", "columns", get<RowStages, &RowStages::columns>},
    {"contract", "batch", get<ContractStages, &ContractStages::batch>},
    {"contract", "m", get<ContractStages, &ContractStages::rows>},
    {"contract", "n", get<ContractStages, &ContractStages::columns>},
    {"contract", "k", get<ContractStages, &ContractStages::depth>},
};

} // namespace

const std::vector<ScheduledKernels> &scheduled_kernels() {
    static const std::vector<ScheduledKernels> kernels = {
        {"scalar", false, "", {}},
        {"map", false, "", {"task", "lanes", "line"}},
        {"row", false, "", {"task", "lanes", "line"}},
        {"column", false, "", {"task", "columns", "long_columns", "lanes", "line", "unroll"}},
        {"full", false, "", {}},
        {"transpose", false, "", {"task", "lanes", "line", "side"}},
        {"scan", false, "", {"task", "lanes", "columns", "rows"}},
        {"scatter", false, "", {"task", "lanes", "line", "count"}},
        {"sort", false, "", {"task", "lanes"}},
        {"contract", false, "vectors", {"rows", "block_columns", "block_rows"}},
        {"contract", false, "tiles", {"block_panels", "block_tiles"}},
        {"window", false, "fold", {"task", "lanes", "line"}},
        {"window", false, "convolution", {"task", "rows", "weights"}},
        {"small", false, "", {"unroll", "accumulators"}},
        {"scalar", true, "", {}},
        {"map", true, "", {"threads", "cost"}},
        {"row", true, "sums", {"threads", "columns", "threads_columns", "thread_row", "rows", "shared_bytes", "resident"}},
        {"row", true, "plain", {"threads", "columns", "threads_columns", "thread_row", "warps"}},
        {"column", true, "", {"threads"}},
        {"full", true, "", {}},
        {"transpose", true, "", {"side", "rows", "threads"}},
        {"scan", true, "", {"threads"}},
        {"scatter", true, "", {"threads"}},
        {"sort", true, "", {"threads"}},
        {"contract", true, "", {"columns", "rows", "thread_columns", "thread_rows", "threads"}},
        {"tiled", true, "", {"threads"}},
        {"window", true, "", {"threads"}},
    };
    return kernels;
}

const std::vector<BudgetWord> &budget_words() {
    static const std::vector<BudgetWord> words = {
        {"contract", false, "panel_vectors", &Budgets::panel_vectors}, {"contract", false, "bf16_pairs", &Budgets::bf16_pairs},
        {"contract", false, "byte_quads", &Budgets::byte_quads},       {"contract", false, "tile_rows", &Budgets::tile_rows},
        {"column", false, "bf16_rows", &Budgets::bf16_rows},           {"row", true, "shared_elements", &Budgets::shared_elements},
        {"row", true, "warp_columns", &Budgets::warp_columns},         {"row", true, "warp_registers", &Budgets::warp_registers},
        {"tiled", true, "tile_bytes", &Budgets::tile_bytes},           {"sort", false, "network", &Budgets::network},
        {"sort", false, "network_lines", &Budgets::network_lines},     {"sort", false, "network_step", &Budgets::network_step},
        {"sort", false, "digits_line", &Budgets::digits_line},         {"sort", false, "digits_element", &Budgets::digits_element},
        {"sort", false, "maximum_element", &Budgets::maximum_element}, {"sort", true, "network", &Budgets::network},
        {"sort", true, "network_lines", &Budgets::network_lines},      {"sort", true, "network_step", &Budgets::network_step},
        {"sort", true, "digits_line", &Budgets::digits_line},          {"sort", true, "digits_element", &Budgets::digits_element},
        {"sort", true, "maximum_element", &Budgets::maximum_element},
    };
    return words;
}

std::vector<std::string_view> rate_words(std::string_view kind, bool gpu) {
    if (kind == "contract" && !gpu)
        return {"bf16_pairs", "f8_pairs", "i8_pairs",     "i8_quads",    "i8_i16_pairs", "bf16_tiles",
                "f8_tiles",   "i8_tiles", "bf16_decoded", "f16_decoded", "f8_decoded"};
    if (kind == "window" && !gpu) return {"bf16_pairs", "f8_pairs", "bf16_tiles", "f8_tiles", "bf16_decoded", "f16_decoded", "f8_decoded"};
    return {};
}

bool may_be_zero(std::string_view name) {
    constexpr std::string_view names[] = {"block_rows",     "thread_row", "resident",     "shared_bytes",    "bf16_pairs",
                                          "bf16_rows",      "tile_rows",  "byte_quads",   "shared_elements", "warp_columns",
                                          "warp_registers", "network",    "network_lines"};
    return std::ranges::find(names, name) != std::end(names);
}

std::string_view form_of(const LoweredKernel &kernel) {
    if (const auto *row = std::get_if<RowStages>(&kernel.stages)) return row->sums.running.defined() ? "sums" : "plain";
    if (const auto *contract = std::get_if<ContractStages>(&kernel.stages)) return contract->packed.in_tiles ? "tiles" : "vectors";
    if (std::holds_alternative<WindowStages>(kernel.stages)) return "fold";
    return std::holds_alternative<ConvolutionStages>(kernel.stages) ? "convolution" : "";
}

std::vector<std::string> extents_of(std::string_view kind) {
    std::vector<std::string> names;
    for (const ExtentWord &word : extent_words)
        if (word.kind == kind) names.emplace_back(word.name);
    return names;
}

const Extent &extent_of(const LoweredKernel &kernel, std::string_view name) {
    const auto is_asked = [&](const ExtentWord &word) { return word.kind == kernel.kind && word.name == name; };
    const auto *word = std::ranges::find_if(extent_words, is_asked);
    internal_check(word != std::end(extent_words), "kernels of kind " + kernel.kind + " have no extent " + std::string(name));
    return word->get(kernel.stages);
}

} // namespace scalide

#include "lower/halide/amx_feature.h"
#include "schedules/dispatch.h"
#include "schedules/tables/machine_caches.h"
#include "schedules/tables/tiles.h"
#include <gtest/gtest.h>

using namespace scalide;

namespace {

/// The message about a table, or "" when it is taken.
template<typename Read>
std::string refusal(const Read &read) {
    try {
        read();
    } catch (const UserError &error) {
        return error.what();
    }
    return "";
}

std::string of_tiles(const std::string &text) {
    return refusal([&] { parse_tiles(text, "tiles.yaml"); });
}

std::string of_products(const std::string &text) {
    return refusal([&] { parse_dispatch(text, "dispatch.yaml"); });
}

const std::string row = "- {kind: map, tiles: {task: 1, lanes: 2, line: 3}}\n";

/// A row of dispatch.yaml, its end given.
std::string product(const std::string &rest, const std::string &results = "[{dtype: f32}]") {
    return "- {target: cuda, library: cublaslt, operands: [[f32, f32]], results: " + results + rest + "}\n";
}

} // namespace

TEST(schedules, tables_of_tiles_are_refused_with_file_and_line) {
    EXPECT_EQ(of_tiles(row), "");
    EXPECT_EQ(of_tiles(""), "tiles.yaml: rows: the file must contain a list, got an empty file");
    EXPECT_EQ(of_tiles("[]"), "tiles.yaml:1: rows: must be a list of at least one entry, got an empty list");
    EXPECT_EQ(of_tiles("a: b"), "tiles.yaml:1: rows: must be a list, got a map");
    EXPECT_EQ(of_tiles(row + "---\n" + row), "tiles.yaml:3: rows: the file must contain one YAML document, got a second one");
    EXPECT_EQ(of_tiles(row + "- map\n"), "tiles.yaml:2: row: must be a map, got 'map'");
    EXPECT_EQ(of_tiles(row + "- {tiles: {}}\n"), "tiles.yaml:2: row.kind: missing key");
    EXPECT_EQ(of_tiles(row + "- {kind: sort}\n"), "tiles.yaml:2: sort: an entry needs 'tiles', 'budget' or 'rates'");
    EXPECT_EQ(of_tiles("- {kind: sort,\n   tile: {}}\n"), "tiles.yaml:2: unknown key 'sort.tile'. Did you mean 'tiles'?");
    EXPECT_EQ(of_tiles("- {kind: sorted, tiles: {}}\n"), "tiles.yaml:1: sorted.kind: must be one of scalar, map, row, column, full, "
                                                         "transpose, scan, scatter, sort, contract, window, small, got "
                                                         "'sorted'. Did you mean 'sort'?");
    EXPECT_EQ(
        of_tiles("- {kind: tiled, tiles: {threads: 8}}\n"),
        "tiles.yaml:1: tiled.kind: must be one of scalar, map, row, column, full, transpose, scan, scatter, sort, contract, window, small, "
        "got 'tiled'")
        << "CPUs have no such schedule";
    EXPECT_EQ(of_tiles("- {kind: sort, gpu: yes, tiles: {}}\n"), "tiles.yaml:1: sort.gpu: must be one of true, false, got 'yes'");
}

TEST(schedules, a_row_has_the_tile_numbers_of_its_schedule) {
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: 3}\n"), "tiles.yaml:1: sort.tiles: must be a map, got '3'");
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: {task: 1, lane: 8}}\n"),
              "tiles.yaml:1: unknown key 'sort.tiles.lane'. Did you mean 'lanes'?");
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: {task: 1}}\n"), "tiles.yaml:1: sort.tiles.lanes: missing key");
    EXPECT_EQ(of_tiles("- {kind: sort, gpu: true, tiles: {task: 1}}\n"), "tiles.yaml:1: unknown key 'sort.tiles.task'. One of: threads");
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: {task: 1, lanes: 0}}\n"), "tiles.yaml:1: sort.tiles.lanes: must be in [1, 1048576], got 0");
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: {task: 1, lanes: many}}\n"),
              "tiles.yaml:1: sort.tiles.lanes: must be an integer, got 'many'");
    EXPECT_EQ(of_tiles("- {kind: contract, form: vectors, tiles: {rows: 6, block_columns: 64, block_rows: 0}}\n"), "");
    EXPECT_EQ(of_tiles("- {kind: contract, form: tiles, tiles: {block_panels: 2, block_tiles: 8}}\n"), "");
    EXPECT_EQ(of_tiles("- {kind: contract, form: tiles, tiles: {rows: 6, block_panels: 2, block_tiles: 8}}\n"),
              "tiles.yaml:1: unknown key 'contract.tiles.rows'. One of: block_panels, block_tiles");
}

TEST(schedules, a_row_that_no_kernel_can_come_to_is_refused) {
    EXPECT_EQ(of_tiles(row + "- {kind: map, tiles: {task: 1, lanes: 2, line: 3},\n   features: [avx9]}\n"),
              "tiles.yaml:3: map.features: must be a feature of a Halide target, got 'avx9'. Did you mean 'avx'?");
    const std::string contract = "- {kind: contract, form: vectors, tiles: {rows: 6, block_columns: 64, block_rows: 0}, ";
    EXPECT_EQ(of_tiles(contract + "extents: {m: 3}}\n"), "tiles.yaml:1: contract.extents.m: must be a list, got '3'");
    EXPECT_EQ(of_tiles(contract + "extents: {m: [1, 2, 3]}}\n"),
              "tiles.yaml:1: contract.extents.m: must be [minimum, maximum] or [minimum], got 3 numbers");
    EXPECT_EQ(of_tiles(contract + "extents: {m: [3, 1]}}\n"),
              "tiles.yaml:1: contract.extents.m: must be in [3, 9223372036854775807], got 1");
    EXPECT_EQ(of_tiles(contract + "extents: {rows: [3]}}\n"), "tiles.yaml:1: unknown key 'contract.extents.rows'. One of: batch, m, n, k");
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: {task: 1, lanes: 2}, extents: {n: [1]}}\n"),
              "tiles.yaml:1: sort.extents: not allowed: kernels of kind sort have no extents");
    EXPECT_EQ(of_tiles("- {kind: window, tiles: {task: 1, rows: 2}}\n"),
              "tiles.yaml:1: window.form: missing key: must be fold or convolution on CPUs");
    EXPECT_EQ(of_tiles("- {kind: window, form: folds, tiles: {task: 1, rows: 2}}\n"),
              "tiles.yaml:1: window.form: must be one of fold, convolution, got 'folds'. Did you mean 'fold'?");
    EXPECT_EQ(of_tiles("- {kind: window, gpu: true, form: fold, tiles: {threads: 2}}\n"),
              "tiles.yaml:1: window.form: not allowed: kernels of kind window on GPUs have only one form");
    EXPECT_EQ(of_tiles(row + row),
              "tiles.yaml:2: map: this entry has no effect: line 1 already matches its kernels. Move it before that line");
    const std::string few = contract + "extents: {n: [0, 16]}}\n", more = contract + "extents: {n: [0, 64]}}\n";
    EXPECT_EQ(of_tiles(few + more), "");
    EXPECT_EQ(of_tiles(more + few),
              "tiles.yaml:2: contract: this entry has no effect: line 1 already matches its kernels. Move it before that line");
}

TEST(schedules, a_table_without_a_row_for_a_kernel_is_refused) {
    LoweredKernel kernel;
    kernel.kind = "row";
    EXPECT_EQ(refusal([&] { choose_row(parse_tiles(row, "tiles.yaml"), kernel, Halide::Target("x86-64-linux")); }),
              "tiles: the table has no entry for kernels of kind row on x86-64-linux. Complete the file that SCALIDE_TILES names");
}

TEST(schedules, budgets_are_refused_with_file_and_line) {
    const std::string budget = "- {kind: tiled, gpu: true, budget: {tile_bytes: 32}}\n",
                      tiles = "- {kind: tiled, gpu: true, tiles: {threads: 8}}\n";
    EXPECT_EQ(of_tiles(tiles + budget), "");
    EXPECT_EQ(of_tiles("- {kind: tiled, gpu: true, tiles: {threads: 8}, budget: {tile_bytes: 32}}\n"),
              "tiles.yaml:1: tiled: 'tiles' cannot be used with 'budget'");
    EXPECT_EQ(of_tiles("- {kind: tiled, gpu: true, budget: {tile_byte: 32}}\n"),
              "tiles.yaml:1: unknown key 'tiled.budget.tile_byte'. Did you mean 'tile_bytes'?");
    EXPECT_EQ(of_tiles("- {kind: row, gpu: true, budget: {warp_columns: 32, warp_registers: 9}}\n"),
              "tiles.yaml:1: row.budget.shared_elements: missing key");
    EXPECT_EQ(of_tiles("- {kind: row, budget: {}}\n"), "tiles.yaml:1: row.budget: not allowed: kernels of kind row on CPUs have no budget");
    EXPECT_EQ(of_tiles("- {kind: contract, extents: {n: [1]}, budget: {panel_vectors: 4, bf16_pairs: 1, byte_quads: 0}}\n"),
              "tiles.yaml:1: 'extents' cannot be used with 'budget'. A budget depends only on the target");
    EXPECT_EQ(of_tiles(budget + tiles + budget),
              "tiles.yaml:3: tiled: this entry has no effect: line 1 already matches its kernels. Move it before that line");
}

TEST(schedules, budgets_are_those_of_the_target) {
    const std::vector<TileRow> rows = parse_tiles(
        "- {kind: contract, features: [avx512], budget: {panel_vectors: 4, bf16_pairs: 0, byte_quads: 1, tile_rows: 0}}\n"
        "- {kind: contract, budget: {panel_vectors: 2, bf16_pairs: 0, byte_quads: 0, tile_rows: 0}}\n"
        "- {kind: column, budget: {bf16_rows: 8}}\n"
        "- {kind: sort, budget: {network: 0, network_lines: 0, network_step: 1, digits_line: 1, digits_element: 1, maximum_element: 1}}\n",
        "tiles.yaml");
    const Halide::Target wide("x86-64-linux-avx512"), narrow("x86-64-linux"), gpu("x86-64-linux-cuda");
    EXPECT_EQ(choose_budgets(rows, wide).panel_vectors, 4);
    EXPECT_EQ(choose_budgets(rows, narrow).panel_vectors, 2);
    EXPECT_EQ(choose_budgets(rows, narrow).bf16_rows, 8);
    EXPECT_EQ(choose_budget(rows, "contract", narrow),
              (Tiles{{"panel_vectors", 2}, {"bf16_pairs", 0}, {"byte_quads", 0}, {"tile_rows", 0}}));
    EXPECT_EQ(choose_budget(rows, "map", narrow), Tiles());
    EXPECT_EQ(refusal([&] { choose_budgets(rows, gpu); }), "tiles: the table has no entry with the budget of kernels of kind row on "
                                                           "x86-64-linux-cuda. Complete the file that SCALIDE_TILES "
                                                           "names");
}

TEST(schedules, rates_are_refused_with_file_and_line) {
    const std::string measured = ", device: CPU, date: 2026-11-29}\n";
    EXPECT_EQ(of_tiles("- {kind: contract, rates: {f16_decoded: 90}" + measured), "");
    EXPECT_EQ(of_tiles("- {kind: contract, rates: {f16_decoded: 90}, device: CPU}\n"),
              "tiles.yaml:1: contract.rates: rates need the keys 'device' and 'date'");
    EXPECT_EQ(of_tiles("- {kind: contract, rates: {f16_pairs: 90}" + measured),
              "tiles.yaml:1: unknown key 'contract.rates.f16_pairs'. Did you mean 'bf16_pairs'?");
    EXPECT_EQ(of_tiles("- {kind: contract, rates: {f16_decoded: 0}" + measured),
              "tiles.yaml:1: contract.rates.f16_decoded: must be in [1, 1048576], got 0");
    EXPECT_EQ(of_tiles("- {kind: contract, rates: {}" + measured), "tiles.yaml:1: contract.rates: must have at least one rate");
    EXPECT_EQ(of_tiles("- {kind: map, rates: {f16_decoded: 90}" + measured),
              "tiles.yaml:1: map.rates: not allowed: kernels of kind map on CPUs have no rates");
    EXPECT_EQ(of_tiles("- {kind: contract, form: tiles, rates: {f16_decoded: 90}" + measured),
              "tiles.yaml:1: 'form' cannot be used with 'rates'. A rate depends only on the target");
    EXPECT_EQ(of_tiles("- {kind: sort, tiles: {task: 1, lanes: 2}, rates: {}}\n"),
              "tiles.yaml:1: sort: 'rates' cannot be used with 'tiles'");
    EXPECT_EQ(of_tiles("- {kind: contract, rates: {f16_decoded: 90, f8_decoded: 80}" + measured +
                       "- {kind: contract, features: [avx512], rates: {f8_decoded: 90}" + measured),
              "tiles.yaml:2: contract: this entry has no effect: line 1 already matches its kernels. Move it before that line");
}

TEST(schedules, rates_come_from_the_first_row_that_has_them) {
    const std::vector<TileRow> rows =
        parse_tiles("- {kind: contract, features: [avx512], rates: {bf16_pairs: 200}, device: A, date: 2026-11-28}\n"
                    "- {kind: contract, rates: {bf16_pairs: 150, f16_decoded: 90}, device: B, date: 2026-11-29}\n",
                    "tiles.yaml");
    const auto rate_of = [&](const char *kind, const char *name, const char *target) {
        const auto rate = find_rate(rows, kind, name, Halide::Target(target));
        return rate ? std::to_string(rate->percent) + " " + rate->device + " " + rate->date : "";
    };
    EXPECT_EQ(rate_of("contract", "bf16_pairs", "x86-64-linux-avx512"), "200 A 2026-11-28");
    EXPECT_EQ(rate_of("contract", "f16_decoded", "x86-64-linux-avx512"), "90 B 2026-11-29");
    EXPECT_EQ(rate_of("contract", "bf16_pairs", "x86-64-linux"), "150 B 2026-11-29");
    EXPECT_EQ(rate_of("contract", "f8_decoded", "x86-64-linux"), "");
    EXPECT_EQ(rate_of("window", "f16_decoded", "x86-64-linux"), "");
    EXPECT_EQ(rate_of("contract", "bf16_pairs", "x86-64-linux-cuda"), "");
}

TEST(schedules, caches_are_those_of_this_machine) {
    const auto with = [](const std::string &caches) {
        return "- {kind: map, caches: " + caches + ", tiles: {task: 1, lanes: 2, line: 3}}\n";
    };
    EXPECT_EQ(of_tiles(with("{l4: [1]}")), "tiles.yaml:1: unknown key 'map.caches.l4'. Did you mean 'l1'?");
    EXPECT_EQ(of_tiles("- {kind: map, gpu: true, caches: {l1: [1]}, tiles: {threads: 2, cost: 3}}\n"),
              "tiles.yaml:1: map.caches: not allowed: only entries for CPUs have caches");
    EXPECT_EQ(of_tiles("- {kind: column, caches: {l1: [1]}, budget: {bf16_rows: 8}}\n"),
              "tiles.yaml:1: 'caches' cannot be used with 'budget'. A budget depends only on the target");
    EXPECT_EQ(of_tiles(with("{l1: [1, 64]}") + with("{l1: [8, 32], l2: [1]}")),
              "tiles.yaml:2: map: this entry has no effect: line 1 already matches its kernels. Move it before that line");
    EXPECT_EQ(of_tiles(with("{l1: [8, 32], l2: [1]}") + with("{l1: [1, 64]}")), "");
    LoweredKernel kernel;
    kernel.kind = "map";
    const Halide::Target host = Halide::get_host_target();
    const auto task = [&](const std::string &caches, const Halide::Target &target) {
        const std::string others = "- {kind: map, tiles: {task: 9, lanes: 2, line: 3}}\n";
        return choose_row(parse_tiles(with(caches) + others, "tiles.yaml"), kernel, target).at("task");
    };
    EXPECT_EQ(task("{l1: [1000000]}", host), 9);
    if (machine_caches().empty()) GTEST_SKIP() << "the system does not tell the caches";
    const std::string l1 = std::to_string(machine_caches().at("l1"));
    EXPECT_EQ(task("{l1: [" + l1 + ", " + l1 + "]}", host), 1);
    EXPECT_EQ(task("{l1: [" + l1 + "]}", host.with_feature(Halide::Target::NoRuntime)), 1);
    EXPECT_EQ(task("{l1: [" + l1 + "], l2: [0, 1]}", host), 9);
    EXPECT_EQ(task("{l1: [0]}", Halide::Target(host.os, host.arch, host.bits)), 9) << "another machine, with unknown caches";
}

TEST(schedules, tiles_of_amx_have_a_name) {
    const std::vector<TileRow> rows =
        parse_tiles("- {kind: contract, features: [amx], budget: {panel_vectors: 4, bf16_pairs: 0, byte_quads: 1, tile_rows: 0}}\n"
                    "- {kind: contract, budget: {panel_vectors: 2, bf16_pairs: 0, byte_quads: 0, tile_rows: 0}}\n",
                    "tiles.yaml");
    const Halide::Target vectors("x86-64-linux-avx512_sapphirerapids"), tiles = vectors.with_feature(amx_feature);
    EXPECT_EQ(choose_budget(rows, "contract", tiles).at("panel_vectors"), 4);
    EXPECT_EQ(choose_budget(rows, "contract", vectors).at("panel_vectors"), 2);
    EXPECT_EQ(target_text(tiles), "x86-64-linux-avx512_sapphirerapids-amx");
    EXPECT_EQ(target_text(vectors), "x86-64-linux-avx512_sapphirerapids");
    EXPECT_EQ(refusal([&] { choose_budgets(rows, tiles); }), "tiles: the table has no entry with the budget of kernels of kind column on "
                                                             "x86-64-linux-avx512_sapphirerapids-amx. Complete the file that "
                                                             "SCALIDE_TILES names");
}

TEST(schedules, the_first_row_that_fits_is_taken) {
    const std::string one =
        "- {kind: contract, form: vectors, extents: {n: [0, 16]}, tiles: {rows: 1, block_columns: 64, block_rows: 0}}\n";
    const std::string two = "- {kind: contract, form: vectors, features: [avx512], tiles: {rows: 2, block_columns: 64, block_rows: 0}}\n";
    const std::string three = "- {kind: contract, form: vectors, tiles: {rows: 3, block_columns: 64, block_rows: 0}}\n";
    const std::vector<TileRow> rows = parse_tiles(one + two + three, "tiles.yaml");
    const auto rows_of = [&](const Extent &columns, const char *target) {
        LoweredKernel kernel;
        kernel.kind = "contract";
        kernel.stages.emplace<ContractStages>().columns = columns;
        return choose_row(rows, kernel, Halide::Target(target)).at("rows");
    };
    EXPECT_EQ(rows_of(16, "x86-64-linux-avx512"), 1);
    EXPECT_EQ(rows_of(17, "x86-64-linux-avx512"), 2);
    EXPECT_EQ(rows_of(17, "x86-64-linux"), 3);
    EXPECT_EQ(rows_of(Extent::symbol("n"), "x86-64-linux"), 3);
}

TEST(schedules, tables_of_products_are_refused_with_file_and_line) {
    EXPECT_EQ(of_products(product("")), "");
    EXPECT_EQ(of_products("- {target: cuda, library: cublaslt, operands: [[f31, f32]], results: []}\n"),
              "dispatch.yaml:1: row.operands: must be a dtype, got 'f31'. Did you mean 'f32'?");
    EXPECT_EQ(of_products("- {target: cuda, library: cublaslt, operands: [[f32]], results: []}\n"),
              "dispatch.yaml:1: row.operands: must be a pair [lhs, rhs], got a list of 1");
    EXPECT_EQ(of_products("- {target: cuda, library: cublas, operands: [[f32, f32]], results: []}\n"),
              "dispatch.yaml:1: row.library: must be one of cublaslt, got 'cublas'. Did you mean 'cublaslt'?");
    EXPECT_EQ(of_products("- {target: opencl, library: cublaslt, operands: [[f32, f32]], results: []}\n"),
              "dispatch.yaml:1: row.target: must be one of cuda, got 'opencl'");
    EXPECT_EQ(of_products(product(", scales: [[none, all]]")), "dispatch.yaml:1: row.scales: must be a scale layout, got 'all'");
    EXPECT_EQ(of_products(product(", multiple: 0")), "dispatch.yaml:1: row.multiple: must be in [1, 1048576], got 0");
    EXPECT_EQ(of_products(product(", k_contigous: true")), "dispatch.yaml:1: unknown key 'row.k_contigous'. Did you mean 'k_contiguous'?");
    EXPECT_EQ(of_products(product("", "[{bias: [f32]}]")), "dispatch.yaml:1: row.results.dtype: missing key");
    EXPECT_EQ(of_products(product("") + product(", cards: [90]")),
              "dispatch.yaml:2: row.operands: this entry has no effect: earlier entries match f32 x f32. Move it before them");
    EXPECT_EQ(of_products(product(", cards: [90]") + product("")), "");
}

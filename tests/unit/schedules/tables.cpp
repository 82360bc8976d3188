#include "schedules/dispatch.h"
#include "schedules/tiles.h"
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
    return refusal([&] { library_products("cuda", text, "dispatch.yaml"); });
}

const std::string row = "- {kind: map, tiles: {task: 1}}\n";

} // namespace

TEST(schedules, tables_of_tiles_are_refused_with_file_and_line) {
    EXPECT_EQ(of_tiles(row), "");
    EXPECT_EQ(of_tiles(""), "tiles.yaml: row: must be one of a list, got no list");
    EXPECT_EQ(of_tiles(row + "- map\n"), "tiles.yaml:2: row: must be a map");
    EXPECT_EQ(of_tiles(row + "- {kind: map}\n"), "tiles.yaml:2: row: must have the key tiles");
    EXPECT_EQ(of_tiles(row + "- {kind: map, tiles: 3}\n"), "tiles.yaml:2: row: tiles must be a map from names to numbers");
    EXPECT_EQ(of_tiles(row + "- {kind: map, tiles: {task: -1}}\n"), "tiles.yaml:2: row: tiles must be in [0, 1048576], got -1");
    EXPECT_EQ(of_tiles(row + "- {kind: map, tiles: {task: 1},\n   features: [avx9]}\n"),
              "tiles.yaml:3: row: features must be Halide's, got avx9");
    EXPECT_EQ(of_tiles(row + "- {kind: map, tiles: {task: 1}, extents: {m: 3}}\n"),
              "tiles.yaml:2: row: extents must be [least, most] or [least]");
    EXPECT_EQ(of_tiles(row + "- {kind: map, tiles: {task: many}}\n"), "tiles.yaml:2: row: bad conversion");
}

TEST(schedules, a_table_without_a_row_for_a_kernel_is_refused) {
    LoweredKernel kernel;
    kernel.kind = "row";
    EXPECT_EQ(refusal([&] { choose_row(parse_tiles(row, "tiles.yaml"), kernel, Halide::Target("x86-64-linux")); }),
              "tiles: must have a row for kernels of kind row on x86-64-linux, got none. Complete the table that SCALIDE_TILES names");
}

TEST(schedules, tables_of_products_are_refused_with_file_and_line) {
    EXPECT_EQ(of_products("- {target: cuda, library: none, lhs: f31, rhs: f32}\n"), "dispatch.yaml:1: row: must be a dtype, got f31");
    EXPECT_EQ(of_products("- {target: cuda, library: none, lhs: f32, rhs: f32, scales: [[none, all]]}\n"),
              "dispatch.yaml:1: row: must be a layout of scales, got all");
    EXPECT_EQ(of_products("- {target: cuda, library: none, lhs: f32, rhs: f32, multiple: 0}\n"),
              "dispatch.yaml:1: row: multiple must be at least 1");
}

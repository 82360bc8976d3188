#include "transforms/expand/top_k_chunks.h"
#include "interpret/interpret.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>
#include <limits>

// The k largest elements of a line: which form `expand` takes, and that it takes the same elements.
namespace scalide {

namespace {

/// A network up to 32 elements, digits from there on (schedules/tiles.yaml).
const TargetFacts costs{.sort = {32, 600, 280000, 7000, 300}};

std::string top_k(const std::string &n, const std::string &k) {
    return "(x: f32[" + n + "]) -> (i: i32[" + k + "]) {\n i = top_k_places(x) {k: " + k + ", axis: 0}\n}";
}

/// The lengths of the lines that the expanded program sorts, in order.
std::vector<Extent> sorted_lines(const std::string &text, const TargetFacts &facts) {
    const Program program = expand(typed(text), rules(), facts);
    std::vector<Extent> lines;
    for (const Node &node : program.nodes)
        if (node.op == "argsort") lines.push_back(program.type(node.operands[0]).shape.at(0));
    return lines;
}

} // namespace

TEST(transforms, top_k_sorts_chunks_where_that_costs_less) {
    EXPECT_EQ(sorted_lines(top_k("67", "3"), costs), (std::vector<Extent>{17, 3, 12})); // chunks of 4, the 3 chosen ones, their elements
    EXPECT_EQ(sorted_lines(top_k("7", "3"), costs), std::vector<Extent>{7});
    EXPECT_EQ(sorted_lines(top_k("1000", "900"), costs), std::vector<Extent>{1000});
    EXPECT_EQ(sorted_lines(top_k("67", "3"), {}), std::vector<Extent>{67}); // nothing is known about the machine
}

TEST(transforms, top_k_by_chunks_takes_the_first_of_equal_elements) {
    const double infinity = std::numeric_limits<double>::infinity();
    Array line{Dtype::f32, {67}, std::vector<double>(67, -infinity)};
    for (const size_t place : {5, 6, 30, 66}) line.data[place] = 2;
    line.data[31] = line.data[65] = std::numeric_limits<double>::quiet_NaN();
    const Program program = typed(top_k("67", "5"));
    const auto whole = interpret(expand(program, rules()), {line}, rules(), Mode::stored);
    const auto chunks = interpret(expand(program, rules(), costs), {line}, rules(), Mode::stored);
    EXPECT_EQ(whole[0].data, (std::vector<double>{31, 65, 5, 6, 30}));
    EXPECT_EQ(chunks[0].data, whole[0].data);
    line.data.assign(67, -infinity);
    EXPECT_EQ(interpret(expand(program, rules(), costs), {line}, rules(), Mode::stored)[0].data, (std::vector<double>{0, 1, 2, 3, 4}));
}

} // namespace scalide

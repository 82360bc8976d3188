#include "frontend/tracer.h"
#include "interpret/interpret.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace scalide;

namespace {

using Shape = std::vector<int64_t>;

/// Small integers, so that any order of sums gives the same.
Array counted(const Shape &shape, int start) {
    Array array{Dtype::f32, shape, {}};
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    for (int64_t i = 0; i < count; i++) array.data.push_back(static_cast<double>((start + 5 * i) % 7 - 3));
    return array;
}

Array einsum_of(const std::string &subscripts, const std::vector<Array> &inputs) {
    Tracer tracer(rules(), "p");
    std::vector<Tensor> tensors;
    for (const Array &input : inputs) {
        const Type type{input.dtype, {input.shape.begin(), input.shape.end()}};
        tensors.push_back(tracer.add_argument("x" + std::to_string(tensors.size()), type, {}));
    }
    tracer.program().results.push_back({"out", einsum(subscripts, tensors).value()});
    return interpret(tracer.program(), inputs, rules(), Mode::real).at(0);
}

/// The definition: for every number of every letter, the product of one element of each operand.
Array naive_einsum(const std::vector<std::string> &terms, const std::string &result, const std::vector<Array> &inputs) {
    std::map<char, std::pair<int64_t, int64_t>> places; // place, extent
    for (size_t i = 0; i < terms.size(); i++)
        for (size_t axis = 0; axis < terms[i].size(); axis++) places[terms[i][axis]] = {0, inputs[i].shape[axis]};
    const auto offset = [&](const std::string &labels) {
        int64_t at = 0;
        for (const char c : labels) at = at * places[c].second + places[c].first;
        return static_cast<size_t>(at);
    };
    Array out{Dtype::f32, {}, {}};
    int64_t count = 1;
    for (const char c : result) {
        out.shape.push_back(places[c].second);
        count *= places[c].second;
    }
    out.data.assign(count, 0);
    for (bool is_done = false; !is_done;) {
        double product = 1;
        for (size_t i = 0; i < terms.size(); i++) product *= inputs[i].data[offset(terms[i])];
        out.data[offset(result)] += product;
        is_done = true;
        for (auto &[label, place] : places) {
            if (++place.first < place.second) {
                is_done = false;
                break;
            }
            place.first = 0;
        }
    }
    return out;
}

struct Case {
    const char *subscripts;
    std::vector<std::string> terms; ///< as they are meant, ellipses spelled out
    const char *result;
    std::vector<Shape> shapes;
};

const std::vector<Case> cases{
    {"ij,jk->ik", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}},
    {"ij,jk", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}},
    {"ba, cb", {"ba", "cb"}, "ac", {{2, 3}, {4, 2}}},
    {"bij,bkj->kib", {"bij", "bkj"}, "kib", {{2, 3, 4}, {2, 5, 4}}},
    {"bthd,bshd->bhts", {"bthd", "bshd"}, "bhts", {{2, 3, 2, 5}, {2, 4, 2, 5}}},
    {"i,j->ij", {"i", "j"}, "ij", {{2}, {3}}},
    {"i,i->i", {"i", "i"}, "i", {{3}, {3}}},
    {"ijk->", {"ijk"}, "", {{2, 3, 4}}},
    {"ijk->kj", {"ijk"}, "kj", {{2, 3, 4}}},
    {"ii->i", {"ii"}, "i", {{3, 3}}},
    {"ii", {"ii"}, "", {{3, 3}}},
    {"iji,kj->ik", {"iji", "kj"}, "ik", {{3, 2, 3}, {4, 2}}},
    {"ij,k->i", {"ij", "k"}, "i", {{2, 3}, {4}}},
    {"ab,bc,cd->ad", {"ab", "bc", "cd"}, "ad", {{2, 3}, {3, 4}, {4, 5}}},
    {"ab,ac,a->bc", {"ab", "ac", "a"}, "bc", {{2, 3}, {2, 4}, {2}}},
    {"...ij,...jk->...ik", {"xyij", "xyjk"}, "xyik", {{2, 3, 2, 4}, {2, 3, 4, 5}}},
    {"...i,i", {"xyi", "i"}, "xy", {{2, 3, 4}, {4}}},
    {"i...,...->...i", {"ixy", "xy"}, "xyi", {{4, 2, 3}, {2, 3}}},
    {"ij,jk->ik", {"ij", "jk"}, "ik", {{2, 0}, {0, 3}}},
};

std::string error_of(const std::string &subscripts, const std::vector<Shape> &shapes) {
    return words_of_error([&] {
        std::vector<Array> inputs;
        for (const Shape &shape : shapes) inputs.push_back(counted(shape, 0));
        einsum_of(subscripts, inputs);
    });
}

} // namespace

TEST(frontend, einsum_is_the_sum_of_products) {
    for (const Case &c : cases) {
        SCOPED_TRACE(c.subscripts);
        std::vector<Array> inputs;
        for (const Shape &shape : c.shapes) inputs.push_back(counted(shape, static_cast<int>(inputs.size())));
        const Array got = einsum_of(c.subscripts, inputs);
        if (inputs[0].data.empty()) {
            EXPECT_EQ(got.data, std::vector<double>(6, 0));
            continue;
        }
        const Array expected = naive_einsum(c.terms, c.result, inputs);
        EXPECT_EQ(got.shape, expected.shape);
        EXPECT_EQ(got.data, expected.data);
    }
}

/// The gradient of a sum of products with respect to an operand is the einsum of the cotangent and the other operands.
TEST(frontend, einsum_has_a_gradient) {
    const Array x = counted({2, 3, 4}, 0), w = counted({4, 5}, 1), ct = counted({5, 2, 3}, 2);
    Tracer tracer(rules(), "p");
    std::vector<Tensor> tensors;
    for (const auto &[name, array] : {std::pair{"x", &x}, {"w", &w}, {"ct", &ct}})
        tensors.push_back(tracer.add_argument(name, {array->dtype, {array->shape.begin(), array->shape.end()}}, {}));
    const Tensor y = einsum("bti,io->obt", {tensors[0], tensors[1]});
    for (const Tensor &gradient : grad(einsum("obt,obt->", {y, tensors[2]}), {tensors[0], tensors[1]}))
        tracer.program().results.push_back({"g" + std::to_string(tracer.program().results.size()), gradient.value()});
    const std::vector<Array> got = interpret(tracer.program(), {x, w, ct}, rules(), Mode::real);
    EXPECT_EQ(got[0].data, naive_einsum({"obt", "io"}, "bti", {ct, w}).data);
    EXPECT_EQ(got[1].data, naive_einsum({"bti", "obt"}, "io", {x, ct}).data);
}

TEST(frontend, einsum_contracts_as_one_dot_general) {
    Tracer tracer(rules(), "p");
    const Tensor a = tracer.add_argument("a", {Dtype::f32, {Extent::symbol("b"), 3, 4}}, {});
    const Tensor c = tracer.add_argument("c", {Dtype::f32, {Extent::symbol("b"), 4, 5}}, {});
    einsum("bij,bjk->bik", {a, c});
    ASSERT_EQ(tracer.program().nodes.size(), 1U);
    EXPECT_EQ(tracer.program().nodes[0].op, "dot_general");
}

TEST(frontend, einsum_errors) {
    EXPECT_EQ(error_of("ij,jk->ik", {{2, 3}}),
              "einsum.subscripts: the number of terms must be the number of operands, 1, got 2. Separate the terms by commas");
    EXPECT_EQ(
        error_of("ij->i", {{2}}),
        "einsum.subscripts: a term must have one letter for each axis of its operand, got 'ij' for rank 1. Write '...' for the other axes");
    EXPECT_EQ(error_of("ij...->i", {{2}}), "einsum.subscripts: a term must have one letter for each axis of its operand, got 'ij...' for "
                                           "rank 1. Write '...' for the other axes");
    EXPECT_EQ(error_of("i1->i", {{2, 3}}),
              "einsum.subscripts: must be letters, commas, '...' and one '->', got 'i1'. Name each axis by a letter: ij,jk->ik");
    EXPECT_EQ(error_of("ij->ik", {{2, 3}}), "einsum.subscripts: the result must have letters of the operands, each at most once, got 'ik'");
    EXPECT_EQ(error_of("ij->ii", {{2, 3}}), "einsum.subscripts: the result must have letters of the operands, each at most once, got 'ii'");
    EXPECT_EQ(error_of("ij,jk->ik", {{2, 3}, {4, 5}}),
              "einsum.subscripts: axes with the same letter must have the same extent, got 3 and 4 for 'j'. "
              "Broadcast axes of extent 1 first, or use another letter");
}

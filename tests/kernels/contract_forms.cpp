#include "kernels/contract_cases.h"
#include <gtest/gtest.h>

// Products alone: every order of axes, extents that no tile divides, symbols bound again and again. Small integers: the result has to be
// right to the last bit whatever the order of the sums.

namespace scalide::contract_test {
namespace {

/// One kernel with symbolic extents, bound to many shapes.
void expect_symbolic(const Form &form) {
    Kernel kernel(parse_program(form.text(), "k"));
    const std::vector<std::array<int64_t, 3>> shapes = {{1, 1, 1},    {2, 3, 1},    {3, 2, 15},   {15, 17, 16}, {16, 16, 17},
                                                        {17, 15, 2},  {63, 65, 3},  {64, 64, 64}, {65, 63, 65}, {100, 100, 100},
                                                        {1, 100, 63}, {100, 1, 64}, {5, 200, 0},  {7, 300, 33}};
    for (const auto &[m, n, k] : shapes) {
        const int64_t batch = form.batched ? 1 + (m + n) % 3 : 1;
        expect_product(kernel, form, {batch, m, n, k, form.lhs_transposed, form.rhs_transposed},
                       {{"m", m}, {"n", n}, {"k", k}, {"b", batch}});
    }
}

class Orders : public testing::TestWithParam<int> {
protected:
    Form form() const {
        Form form;
        form.lhs_transposed = GetParam() & 1;
        form.rhs_transposed = GetParam() & 2;
        form.batched = GetParam() & 4;
        return form;
    }
};

TEST_P(Orders, symbolic) { expect_symbolic(form()); }

TEST_P(Orders, known_extents) {
    for (const auto &[m, n, k] : std::vector<std::array<int, 3>>{{65, 300, 33}, {100, 10, 64}, {32, 64, 0}}) {
        Form known = form();
        known.m = std::to_string(m);
        known.n = std::to_string(n);
        known.k = std::to_string(k);
        known.batch = "2";
        Kernel kernel(parse_program(known.text(), "k"));
        expect_product(kernel, known, {known.batched ? 2 : 1, m, n, k, known.lhs_transposed, known.rhs_transposed}, {});
    }
}

INSTANTIATE_TEST_SUITE_P(contract, Orders, testing::Range(0, 8));

} // namespace
} // namespace scalide::contract_test

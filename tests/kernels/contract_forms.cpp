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

/// One kernel with numbers in its shapes. Returns what it multiplied.
Product expect_known(Form form, int m, int n, int k) {
    form.m = std::to_string(m);
    form.n = std::to_string(n);
    form.k = std::to_string(k);
    form.batch = "2";
    Kernel kernel(parse_program(form.text(), "k"));
    const Product product{form.batched ? 2 : 1, m, n, k, form.lhs_transposed, form.rhs_transposed};
    expect_product(kernel, form, product, {});
    return product;
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
    for (const auto &[m, n, k] : std::vector<std::array<int, 3>>{{65, 300, 33}, {100, 10, 64}, {32, 64, 0}}) expect_known(form(), m, n, k);
}

/// Sums of several blocks, whose last one is shorter: tiles add one block after the other, and left operands may be transposed first.
TEST_P(Orders, long_sums) {
    const Form symbolic = form();
    Kernel any(parse_program(symbolic.text(), "k"));
    for (const auto &[m, n, k] : std::vector<std::array<int, 3>>{{37, 70, 2100}, {200, 90, 3072}, {48, 20, 2500}}) {
        const Product product = expect_known(form(), m, n, k);
        if (m == 200) expect_product(any, symbolic, product, {{"m", m}, {"n", n}, {"k", k}, {"b", product.batch}});
    }
}

INSTANTIATE_TEST_SUITE_P(contract, Orders, testing::Range(0, 8));

} // namespace
} // namespace scalide::contract_test

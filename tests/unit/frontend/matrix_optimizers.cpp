#include "frontend/optimizers.h"
#include "frontend/quantized_columns.h"
#include "support/fragments/fragment_run.h"
#include "words_of.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// Matrix roots, orthogonalized matrices, and messages. tests/training compares Muon with optax and Shampoo with its formula in f64.
using namespace scalide;

namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix &a, const Matrix &b) {
    Matrix c(a.size(), std::vector<double>(b[0].size()));
    for (size_t i = 0; i < a.size(); i++)
        for (size_t k = 0; k < b.size(); k++)
            for (size_t j = 0; j < b[0].size(); j++) c[i][j] += a[i][k] * b[k][j];
    return c;
}

/// A symmetric matrix with these eigenvalues: its eigenvectors are the columns of a Householder reflection.
Matrix symmetric(const std::vector<double> &eigenvalues) {
    const size_t n = eigenvalues.size();
    Matrix q(n, std::vector<double>(n)), scaled = q;
    double norm = 0;
    for (size_t i = 0; i < n; i++) norm += std::pow(static_cast<double>(i) + 1, 2);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            q[i][j] = (i == j ? 1 : 0) - 2 * static_cast<double>((i + 1) * (j + 1)) / norm;
            scaled[i][j] = q[i][j] * eigenvalues[j];
        }
    return product(scaled, q);
}

Array array_of(const Matrix &matrix) {
    Array array{Dtype::f32, {static_cast<int64_t>(matrix.size()), static_cast<int64_t>(matrix[0].size())}, {}};
    for (const std::vector<double> &row : matrix) array.data.insert(array.data.end(), row.begin(), row.end());
    return array;
}

/// Runs a function of one matrix.
std::map<std::string, Array> applied(const std::function<Tensor(const Tensor &)> &function, const Array &x) {
    FragmentRun run([&] {
        const Input<Tensor> input("x", f32, {x.shape.begin(), x.shape.end()});
        const Tensor result = function(input);
        Output<Tensor> y("y", f32, {result.shape().begin(), result.shape().end()});
        y = result;
    });
    for (const Node &node : run.program().nodes) EXPECT_TRUE(node.op != "dot_general" || node.scope == "amp_stop") << node.scope;
    return run.step({{"x", x}});
}

std::string error_of(const Dimensions &shape, const std::function<void(const Tensor &)> &body) {
    return words_of_error([&] { FragmentRun([&] { body(Input<Tensor>("x", f32, shape)); }); });
}

} // namespace

TEST(frontend, inverse_roots_of_matrices) {
    const std::vector<std::vector<double>> spectra{
        {1, 1, 1}, {3, 0.5, 20, 1}, {1e-3, 1, 0.1, 0.01, 0.5}, {1e6, 2e6, 1e4}, {1e-9, 2e-9, 5e-8}};
    for (const int64_t p : {1, 2, 3, 4, 6, 8})
        for (const std::vector<double> &eigenvalues : spectra) {
            std::vector<double> roots;
            for (const double value : eigenvalues) roots.push_back(std::pow(value, -1.0 / static_cast<double>(p)));
            const Array expected = array_of(symmetric(roots)), matrix = array_of(symmetric(eigenvalues));
            const Array got = applied([&](const Tensor &x) { return matrix_inverse_pth_root(x, p, 0); }, matrix)["y"];
            const double largest = *std::max_element(roots.begin(), roots.end());
            for (size_t i = 0; i < expected.data.size(); i++)
                EXPECT_NEAR(got.data[i], expected.data[i], 5e-4 * largest) << "p = " << p << ", element " << i << " of " << eigenvalues[0];
        }
}

/// A zero eigenvalue is the ridge: the root is large, but a number.
TEST(frontend, inverse_root_of_a_singular_matrix) {
    const Array got = applied([](const Tensor &x) { return matrix_inverse_pth_root(x, 4, 1e-4); }, array_of(symmetric({4, 0, 1})))["y"];
    const double ridge = 1e-4 * std::sqrt(17.0);
    const Array expected = array_of(symmetric({std::pow(4 + ridge, -0.25), std::pow(ridge, -0.25), std::pow(1 + ridge, -0.25)}));
    for (size_t i = 0; i < expected.data.size(); i++) EXPECT_NEAR(got.data[i], expected.data[i], 0.01 * std::pow(ridge, -0.25));
    const Array zero = applied([](const Tensor &x) { return matrix_inverse_pth_root(x, 2); }, array_of(Matrix(2, {0, 0})))["y"];
    for (const double value : zero.data) EXPECT_TRUE(std::isfinite(value));
}

/// After five iterations with the coefficients of Muon, singular values are between 0.68 and 1.13.
TEST(frontend, orthogonalized_matrices) {
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{3, 5}, {5, 3}, {4, 4}, {1, 6}}) {
        Array x{Dtype::f32, shape, {}};
        for (int64_t i = 0; i < shape[0] * shape[1]; i++) x.data.push_back(std::sin(static_cast<double>(3 * i * i + i)));
        const Array y = applied([](const Tensor &m) { return orthogonalize_via_newton_schulz(m); }, x)["y"];
        Matrix rows(shape[0], std::vector<double>(shape[1])), columns(shape[1], std::vector<double>(shape[0]));
        for (int64_t i = 0; i < shape[0]; i++)
            for (int64_t j = 0; j < shape[1]; j++) rows[i][j] = columns[j][i] = y.data[i * shape[1] + j];
        const Matrix gram = shape[0] <= shape[1] ? product(rows, columns) : product(columns, rows);
        for (size_t i = 0; i < gram.size(); i++) {
            EXPECT_GT(gram[i][i], 0.4);
            EXPECT_LT(gram[i][i], 1.3);
            for (size_t j = 0; j < i; j++) EXPECT_LT(std::fabs(gram[i][j]), 0.4);
        }
    }
}

TEST(frontend, matrix_errors) {
    EXPECT_EQ(error_of({2, 3}, [](const Tensor &x) { matrix_inverse_pth_root(x, 2); }),
              "matrix_inverse_pth_root: the matrix must be square, got [2, 3]");
    EXPECT_EQ(error_of({2, 2}, [](const Tensor &x) { matrix_inverse_pth_root(x, 0); }),
              "matrix_inverse_pth_root: p must be positive, got 0");
    EXPECT_EQ(error_of({"n", "n"}, [](const Tensor &x) { matrix_inverse_pth_root(x, 2); }),
              "matrix_inverse_pth_root: the extents must be numbers, got [n, n]. Use a GeneratorParam as the extent");
    EXPECT_EQ(error_of({2}, [](const Tensor &x) { orthogonalize_via_newton_schulz(x); }),
              "orthogonalize_via_newton_schulz: x must be a matrix, got [2]");
    EXPECT_EQ(error_of({2, 3}, [](const Tensor &x) { quantize_columns(x, i8, true); }),
              "quantize_columns: a diagonal needs a square matrix, got [2, 3]. Set extract_diagonal to false");
    EXPECT_EQ(error_of({2, 3}, [](const Tensor &x) { quantize_columns(x, u8); }), "quantize_columns: the dtype must be i8 or i16, got u8");
    EXPECT_EQ(error_of({}, [](const Tensor &x) { quantize_columns(x, i8); }), "quantize_columns: x must have an axis, got []");
}

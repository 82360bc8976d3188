#pragma once

// Special functions of f64 that <cmath> lacks, to about 1e-13, with LAX's values at poles and edges.

namespace scalide {

double erf_inv(double x);
double digamma(double x);
/// The Hurwitz zeta function: the sum of (q + i)^-x over i = 0, 1 ...
double zeta(double x, double q);
/// The regularized incomplete gamma functions P (igamma) and Q = 1 - P, of positive a.
double igamma(double a, double x);
double igammac(double a, double x);
double regularized_incomplete_beta(double a, double b, double x);
/// Modified Bessel functions of the first kind times e^-|x|.
double bessel_i0e(double x);
double bessel_i1e(double x);

} // namespace scalide

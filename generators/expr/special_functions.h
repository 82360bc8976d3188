#pragma once

// Special functions in f64 that <cmath> does not have, with an error of about 1e-13 and the values of LAX at poles and limits.

namespace scalide {

double erf_inv(double x);
double digamma(double x);
/// The Hurwitz zeta function: the sum of (q + i)^-x over i = 0, 1 ...
double zeta(double x, double q);
/// The regularized incomplete gamma functions P (igamma) and Q = 1 - P, of positive a.
double igamma(double a, double x);
double igammac(double a, double x);
double regularized_incomplete_beta(double a, double b, double x);
/// Modified Bessel functions of the first kind, multiplied by e^-|x|.
double bessel_i0e(double x);
double bessel_i1e(double x);

} // namespace scalide

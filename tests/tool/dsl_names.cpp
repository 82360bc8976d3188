// The functions of the DSL beside `using namespace std` and the whole C and C++ library: a call without a namespace is not ambiguous.
#include <bits/stdc++.h>

#include <scalide/generator.h>

using namespace std;
using namespace scalide;

class Unqualified : public Generator<Unqualified> {
public:
    Input<Tensor> x{"x", f32, {"b", 8}}, y{"y", f32, {"b", 8}};
    Input<Tensor> n{"n", i32, {"b", 8}}, bits{"bits", boolean, {"b", 8}}, key{"key", u32, {2}};
    Output<Tensor> spread{"spread", f32, {"b"}}, halves{"halves", f32, {"b", 2, 4}}, larger{"larger", f32, {"b", 8}};

    void generate() override {
        spread = stddev(x, {1});
        halves = reshape(x, {"b", 2, 4});
        larger = select_n(x > y, {y, x});
        elementwise();
        whole();
    }

private:
    void elementwise() {
        const Tensor h = logistic(abs(x)) + tanh(y);
        Tensor sum = acos(h) + acosh(h) + asin(h) + asinh(h) + atan(h) + atan2(h, y) + atanh(h) + cbrt(h) + ceil(h) + cos(h) + cosh(h) +
                     digamma(h) + div(h, y) + erf(h) + erf_inv(h) + erfc(h) + exp(h) + exp2(h) + expm1(h) + floor(h) + lgamma(h) + log(h) +
                     log1p(h) + log2(h) + neg(h) + nextafter(h, y) + pow(h, y) + reciprocal(h) + rem(h, y) + round(h) + rsqrt(h) + sign(h) +
                     sin(h) + sinh(h) + sqrt(h) + square(h) + tan(h) + relu(h) + gelu(h) + silu(h) + softplus(h) + zeta(h, y) +
                     igamma(h, y) + logaddexp(h, y) + integer_pow(h, 3) + convert_element_type(clz(n), f32) + elu(h) + sub(h, y) +
                     mul(h, y) + add(h, y);
        // std has function templates of these names whose arguments are of one exact type, and classes complex and slice.
        sum = sum + scalide::max(h, y) + scalide::min(h, y) + scalide::clamp(0.0, h, 1.0);
        const Tensor some = and_(or_(eq(h, y), ne(h, y)), xor_(lt(h, y), not_(ge(h, y))));
        sum = sum + select_n(some, {h, y}) + select_n(is_finite(h), {h, y});
    }

    void whole() {
        const vector<Tensor> means{mean(x, {1}), var(x, {1}), reduce_sum(x, {1}), logsumexp(x, {1}),
                                   mean(softmax(x) - log_softmax(x), {1})};
        const vector<Tensor> moved{transpose(rev(x, {1}), {1, 0}),
                                   sort({x})[0],
                                   cumsum(x, 1),
                                   broadcast(x, {3}),
                                   concatenate({x, y}, 1),
                                   pad(x, 0, {0, 1}, {0, 1}),
                                   take(x, argmax(x, 0), 0),
                                   scalide::slice(x, {0, 0}, {"b", 4})};
        const vector<Tensor> made{iota({"b", 8}, 1), full({"b", 8}, 1), normal(key, {"b", 8}), uniform(key, {"b", 8}), top_k(x, 2)[0]};
        const Tensor pairs = reshape(x, {"b", 4, 2});
        const vector<Tensor> numbers{real(pairs), imag(pairs), conj(pairs)};
    }
};
SCALIDE_REGISTER_GENERATOR(Unqualified, unqualified)

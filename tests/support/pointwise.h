#pragma once
#include <Halide.h>
#include <functional>

namespace scalide::test {

/// A compiled loop out[i] = body(in[i]) over 32-bit words, vectorized like a map kernel.
class Pointwise {
public:
    using Body = std::function<Halide::Expr(const Halide::Expr &)>;

    /// `body` takes a UInt(32) and returns an integer of at most 32 bits, a bool, or an f32, whose bits are stored.
    explicit Pointwise(const Body &body) {
        Halide::Expr result = body(in_(x_));
        bool is_f32 = result.type() == Halide::Float(32);
        out_(x_) = is_f32 ? Halide::reinterpret<uint32_t>(result) : Halide::cast<uint32_t>(result);
        out_.vectorize(x_, 16, Halide::TailStrategy::GuardWithIf);
        target_ = Halide::get_jit_target_from_environment();
        out_.compile_jit(target_);
    }

    std::vector<uint32_t> operator()(const std::vector<uint32_t> &words) {
        std::vector<uint32_t> results(words.size());
        run(words, results);
        return results;
    }

    /// Writes the results into existing memory.
    void run(const std::vector<uint32_t> &words, std::vector<uint32_t> &results) {
        auto size = static_cast<int>(words.size());
        in_.set(Halide::Buffer<uint32_t>(const_cast<uint32_t *>(words.data()), size)); // only read
        Halide::Buffer<uint32_t> out(results.data(), size);
        out_.realize(out, target_);
    }

private:
    Halide::Var x_{"x"};
    Halide::ImageParam in_{Halide::UInt(32), 1};
    Halide::Func out_{"pointwise"};
    Halide::Target target_;
};

} // namespace scalide::test

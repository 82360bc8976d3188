#include "frontend/fragments.h"
#include "frontend/optimizers.h"
#include "frontend/quantized_columns.h"
#include "frontend/tracer.h"
#include "ir/words.h"
#include <cmath>

/// Optimizers that multiply gradients by matrices.
namespace scalide {

namespace {

using namespace fragments;

using Updates = std::vector<Tensor>;
using Parameter = OptimizerStep::Parameter;

/// Of the distance of m to the identity. In exact arithmetic it becomes smaller in each iteration. Far from the identity, rounding may
/// hide that.
constexpr double root_tolerance = 1e-6, is_far = 0.1, far_growth = 1.2;

Tensor frobenius_norm(const Tensor &x) { return sqrt(reduce("reduce_sum", square(x))); }

Tensor identity(const Extent &extent) { return to(identity_mask(extent), Dtype::f32); }

void check_static(const std::string &subject, const Extents &shape) {
    for (const Extent &extent : shape)
        if (!extent.is_static())
            throw UserError({{}, subject, "the extents must be numbers", to_string(shape), "Use a GeneratorParam as the extent"});
}

/// Returns x^n of a square matrix, n from 1 on.
Tensor matrix_power(const Tensor &x, int64_t n) {
    const auto product = [](const Tensor &a, const Tensor &b) { return contract(a, b, 1, 0); };
    Tensor result, square = x;
    for (; n > 0; n /= 2) {
        if (n % 2 == 1) result = result.is_assigned() ? product(result, square) : square;
        if (n > 1) square = product(square, square);
    }
    return result;
}

Tensor distance_to(const Tensor &one, const Tensor &m) { return frobenius_norm(m - one); }

/// A part of a tensor: its first element and extent on each axis.
struct Block {
    std::vector<int64_t> first, extent;
};

std::vector<Block> blocks_of(const Extents &shape, int64_t block_size) {
    std::vector<Block> blocks(1);
    for (const Extent &extent : shape) {
        std::vector<Block> finer;
        for (const Block &block : blocks)
            for (int64_t first = 0; first < extent.value(); first += block_size) {
                finer.push_back(block);
                finer.back().first.push_back(first);
                finer.back().extent.push_back(std::min(block_size, extent.value() - first));
            }
        blocks = finer;
    }
    return blocks;
}

Tensor slice_of(const Tensor &x, const Block &block) {
    std::vector<int64_t> limit = block.first;
    for (size_t i = 0; i < limit.size(); i++) limit[i] += block.extent[i];
    return apply("slice", {x}, {{"start", to_attribute(block.first)}, {"limit", to_attribute(limit)}});
}

/// Puts blocks together, in the order of blocks_of().
Tensor joined_blocks(std::vector<Tensor> blocks, const Extents &shape, int64_t block_size) {
    for (auto axis = static_cast<int64_t>(shape.size()) - 1; axis >= 0; axis--) {
        const auto count = static_cast<size_t>((shape[axis].value() + block_size - 1) / block_size);
        std::vector<Tensor> coarser;
        for (size_t i = 0; i < blocks.size(); i += count) {
            const std::vector<Operand> parts(blocks.begin() + static_cast<int64_t>(i), blocks.begin() + static_cast<int64_t>(i + count));
            coarser.push_back(count == 1 ? blocks[i] : apply("concatenate", parts, {{"dimension", axis}}));
        }
        blocks = coarser;
    }
    return blocks.at(0);
}

/// Contracts x with itself over all axes but one.
Tensor statistic_of(const Tensor &x, int64_t axis) {
    std::vector<int64_t> others;
    for (int64_t other = 0; other < x.rank(); other++)
        if (other != axis) others.push_back(other);
    return apply("dot_general", {x, x}, {{"contract", to_attribute(AxisPairs(others, others))}, {"batch", to_attribute(no_axis_pairs)}});
}

/// A state in f32, or quantized by column, and its value before the update.
class KeptArray {
public:
    /// With `diagonal`, the first value is this number times the identity. Otherwise it is zero.
    KeptArray(OptimizerStep &step, const std::string &name, const Parameter &parameter, const Extents &shape, std::optional<Dtype> dtype,
              std::optional<double> diagonal = {})
        : dtype_(shape.empty() ? std::nullopt : dtype) {
        const auto add = [&](const std::string &part, const Type &type, const Initializer &initial = initializers::zeros()) {
            states_.push_back(&step.add_state(name + part, parameter, type, initial));
            return Tensor(states_.back()->value());
        };
        if (!dtype_) {
            const Initializer first = [=](const Tensor &, const Type &type) { return diagonal.value_or(0) * identity(type.shape[0]); };
            value_ = add("", {Dtype::f32, shape}, diagonal ? first : initializers::zeros());
            return;
        }
        QuantizedColumns quantized{add("", {*dtype_, shape}), add(".bucket_size", {Dtype::f32, {shape.begin() + 1, shape.end()}})};
        if (diagonal) quantized.diagonal = add(".diagonal", {Dtype::f32, {shape[0]}}, initializers::constant(*diagonal));
        value_ = dequantize_columns(quantized);
    }

    const Tensor &value() const { return value_; }

    void assign(OptimizerStep &step, const Tensor &value) {
        if (!dtype_) return step.assign(*states_[0], value);
        const QuantizedColumns quantized = quantize_columns(value, *dtype_, states_.size() == 3);
        step.assign(*states_[0], quantized.values);
        step.assign(*states_[1], quantized.bucket_size);
        if (states_.size() == 3) step.assign(*states_[2], quantized.diagonal);
    }

private:
    std::optional<Dtype> dtype_; ///< of the integers
    std::vector<State<Tensor> *> states_;
    Tensor value_;
};

class ShampooUpdate {
public:
    ShampooUpdate(OptimizerStep &step, const Shampoo &options) : step_(step), options_(options) {}

    Tensor of(const Parameter &parameter, const Tensor &g) {
        check_static(parameter.name, parameter.type.shape);
        const Tensor grafted = graft(parameter, g), preconditioned = precondition(parameter, g);
        const Tensor factor = frobenius_norm(grafted) / (frobenius_norm(preconditioned) + 1e-25);
        const auto decayed = [&](const Tensor &x) { return options_.weight_decay == 0 ? x : x + options_.weight_decay * parameter.value; };
        const Tensor matrix_update = decayed(preconditioned * factor), graft_update = decayed(grafted);
        const Tensor matrix_momentum = momentum("momentum", parameter, matrix_update);
        const Tensor graft_momentum = momentum("diagonal_momentum", parameter, graft_update);
        const Tensor starts = step_.count() >= options_.start_preconditioning_step;
        const Tensor chosen = where(starts, matrix_momentum, graft_momentum);
        return options_.nesterov ? weight() * where(starts, matrix_update, graft_update) + options_.beta1 * chosen : chosen;
    }

private:
    double weight() const { return options_.moving_average_for_momentum ? 1 - options_.beta1 : 1; }

    Tensor momentum(const std::string &name, const Parameter &parameter, const Tensor &update) {
        KeptArray state(step_, name, parameter, parameter.type.shape, options_.momentum_dtype);
        const Tensor sum = options_.beta1 * state.value() + weight() * update;
        state.assign(step_, sum);
        return sum;
    }

    Tensor graft(const Parameter &parameter, const Tensor &g) {
        if (options_.graft_type == Grafting::sgd) return g;
        State<Tensor> &state = step_.add_state("diagonal_statistics", parameter, {Dtype::f32, parameter.type.shape});
        const bool is_sum = options_.graft_type == Grafting::adagrad || options_.beta2 == 1;
        const Tensor sum = is_sum ? state + square(g) : options_.beta2 * state + (1 - options_.beta2) * square(g);
        step_.assign(state, sum);
        return g / (sqrt(sum) + options_.diagonal_epsilon);
    }

    Tensor precondition(const Parameter &parameter, const Tensor &g) {
        const Extents &shape = parameter.type.shape;
        if (shape.empty()) return g;
        std::vector<Tensor> results;
        for (const Block &block : blocks_of(shape, options_.block_size)) {
            const std::string place = "statistics." + std::to_string(results.size()) + ".";
            results.push_back(precondition_block(parameter, place, slice_of(g, block)));
        }
        return joined_blocks(results, shape, options_.block_size);
    }

    /// A product with the root of axis 0 puts this axis last. After all axes, the order is that of the gradient again.
    Tensor precondition_block(const Parameter &parameter, const std::string &place, const Tensor &g) {
        const AmpStop stop;
        const int64_t p = options_.exponent_override > 0 ? options_.exponent_override : 2 * g.rank();
        Tensor result = g;
        for (int64_t axis = 0; axis < g.rank(); axis++) {
            const Extent extent = g.shape()[axis];
            const double epsilon = options_.matrix_epsilon;
            KeptArray state(step_, place + std::to_string(axis), parameter, {extent, extent}, options_.statistics_dtype, epsilon);
            const Tensor own = statistic_of(g, axis);
            const Tensor sum = options_.beta2 == 1 ? state.value() + own : options_.beta2 * state.value() + (1 - options_.beta2) * own;
            state.assign(step_, sum);
            result = contract(result, matrix_inverse_pth_root(sum, p, epsilon, options_.root_iterations), 0, 0);
        }
        return result;
    }

    OptimizerStep &step_;
    const Shampoo &options_;
};

} // namespace

Tensor orthogonalize_via_newton_schulz(const Tensor &x, const std::array<double, 3> &ns_coeffs, int64_t ns_steps, double eps,
                                       const std::source_location &where) {
    return at(where, [&] {
        const Extents shape = x.shape();
        if (shape.size() != 2) throw UserError({{}, "orthogonalize_via_newton_schulz", "x must be a matrix", to_string(shape), ""});
        check_static("orthogonalize_via_newton_schulz", shape);
        const AmpStop stop;
        // The smaller of the two products. The function is the same for the transpose.
        const bool is_tall = shape[0].value() > shape[1].value();
        const int64_t axis = is_tall ? 0 : 1;
        Tensor result = x / (frobenius_norm(x) + eps);
        for (int64_t i = 0; i < ns_steps; i++) {
            const Tensor a = contract(result, result, axis, axis);
            const Tensor b = ns_coeffs[1] * a + ns_coeffs[2] * contract(a, a, 1, 0);
            result = ns_coeffs[0] * result + (is_tall ? contract(result, b, 1, 0) : contract(b, result, 1, 0));
        }
        return result;
    });
}

Optimizer scale_by_muon(const Muon &options) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Tensor n = safe_increment(step.count());
        const auto bias = [&](const Tensor &count) { return 1 - pow(options.beta, to(count, Dtype::f32)); };
        const Tensor correction = bias(n), next_correction = options.nesterov ? bias(safe_increment(n)) : Tensor();
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const Tensor &g = gradients[i];
            const Parameter &parameter = step.parameters()[i];
            State<Tensor> &mu = step.add_state("mu", parameter, {options.mu_dtype.value_or(parameter.type.dtype), parameter.type.shape});
            const Tensor average = (1 - options.beta) * g + options.beta * to(mu, Dtype::f32);
            step.assign(mu, average);
            const Tensor m = options.nesterov ? options.beta * (average / next_correction) + (1 - options.beta) * (g / correction)
                                              : average / correction;
            const Tensor x = orthogonalize_via_newton_schulz(m, options.ns_coeffs, options.ns_steps, options.eps);
            updates.push_back(options.adaptive ? reduce("reduce_sum", m * x) * x : x);
        }
        return updates;
    });
}

Optimizer muon(const Muon &options) {
    const Optimizer by_shape([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const Extents &shape = step.parameters()[i].type.shape;
            const auto rows = static_cast<double>(shape[0].value()), columns = static_cast<double>(shape[1].value());
            const double factor = options.consistent_rms ? std::sqrt(std::max(rows, columns)) * *options.consistent_rms
                                                         : std::sqrt(std::max(1.0, columns / rows));
            updates.push_back(factor * gradients[i]);
        }
        return updates;
    });
    const Optimizer matrices =
        chain({scale_by_muon(options), by_shape, add_decayed_weights(options.weight_decay, options.weight_decay_mask),
               scale_by_learning_rate(options.learning_rate)});
    const Optimizer others = adamw({.learning_rate = options.adam_learning_rate.value_or(options.learning_rate),
                                    .b1 = options.adam_b1,
                                    .b2 = options.adam_b2,
                                    .eps = options.eps,
                                    .eps_root = options.adam_eps_root,
                                    .mu_dtype = options.mu_dtype,
                                    .weight_decay = options.adam_weight_decay,
                                    .nesterov = options.nesterov});
    return partition([](const std::string &, const Type &type) { return type.rank() == 2; }, matrices, others);
}

Tensor matrix_inverse_pth_root(const Tensor &matrix, int64_t p, double ridge_epsilon, int64_t iterations,
                               const std::source_location &where) {
    return at(where, [&] {
        const Extents shape = matrix.shape();
        if (shape.size() != 2 || !(shape[0] == shape[1]))
            throw UserError({{}, "matrix_inverse_pth_root", "the matrix must be square", to_string(shape), ""});
        if (p < 1) throw UserError({{}, "matrix_inverse_pth_root", "p must be positive", std::to_string(p), ""});
        check_static("matrix_inverse_pth_root", shape);
        const AmpStop stop;
        const auto order = static_cast<double>(p);
        const Tensor one = identity(shape[0]);
        const Tensor damped = matrix + ridge_epsilon * max(frobenius_norm(matrix), 1e-16) * one;
        const Tensor z = (1 + order) / (2 * frobenius_norm(damped));
        const double tolerance = root_tolerance * std::sqrt(static_cast<double>(shape[0].value()));
        Tensor m = damped * z, h = one * pow(z, 1 / order), error = distance_to(one, m), goes_on = error > tolerance;
        for (int64_t i = 0; i < iterations; i++) {
            const Tensor factor = (1 + 1 / order) * one - m / order;
            const Tensor next = contract(matrix_power(factor, p), m, 1, 0), next_error = distance_to(one, next);
            goes_on = logical_and(goes_on, next_error < error * fragments::where(error < is_far, scalar(1), scalar(far_growth)));
            h = fragments::where(goes_on, contract(h, factor, 1, 0), h);
            m = fragments::where(goes_on, next, m);
            error = fragments::where(goes_on, next_error, error);
            goes_on = logical_and(goes_on, error > tolerance);
        }
        return h;
    });
}

Optimizer shampoo(const Shampoo &options) {
    const Optimizer preconditioned([=](OptimizerStep &step, const Updates &gradients) {
        ShampooUpdate update(step, options);
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) updates.push_back(update.of(step.parameters()[i], gradients[i]));
        return updates;
    });
    return chain({preconditioned, scale_by_learning_rate(options.learning_rate)});
}

} // namespace scalide

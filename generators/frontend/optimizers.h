#pragma once
#include "frontend/generator.h"
#include "frontend/learning_rates.h"
#include <memory>

/// Optimizers, as compositions of transformations of gradients with the names and formulas of optax 0.2.5. An optimizer is a program
/// fragment: its state is in States of the program, and all of it runs in the step.
///
///     const std::vector<State<Tensor> *> parameters = states();
///     const Optimizer optimizer = chain({clip_by_global_norm(1), adamw({.learning_rate = 1e-3, .weight_decay = 0.1})});
///     optimizer.apply(grad(loss, values_of(parameters)), parameters);
///
/// Gradients, parameters and state are converted to f32 for the arithmetic. State has the dtype of its parameter, and is rounded once per
/// update.
namespace scalide {

/// Returns the values of states, for grad(): `grad(loss, values_of(states()))`.
std::vector<Tensor> values_of(const std::vector<State<Tensor> *> &states);

/// Chooses parameters by their name and type: `[](const std::string &name, const Type &type) { return type.rank() > 1; }`.
using ParameterMask = std::function<bool(const std::string &name, const Type &type)>;

/// One update of an optimizer, for a transformation of your own. It has the parameters and declares state. Tensors are f32.
class OptimizerStep {
public:
    /// A parameter of the program.
    struct Parameter {
        std::string name;
        Type type;    ///< of the state
        Tensor value; ///< before the update, in f32
    };

    OptimizerStep(std::string name, std::vector<Parameter> parameters, const Tensor &accepted);

    /// Returns the parameters, in the order of the gradients.
    const std::vector<Parameter> &parameters() const { return parameters_; }
    /// Returns the number of updates before this one, an i32 scalar. The first call declares the state `<optimizer>.count`.
    Tensor count();
    /// Returns the value of a schedule in this update.
    Operand value(const Schedule &schedule);
    /// Declares the state `<optimizer>.<name>`. If the name is taken, a number is added: trace1.
    State<Tensor> &add_state(const std::string &name, const Type &type, const Initializer &initial = initializers::zeros());
    /// Declares the state `<optimizer>.<name>.<parameter>`.
    State<Tensor> &add_state(const std::string &name, const Parameter &parameter, const Type &type,
                             const Initializer &initial = initializers::zeros());
    /// Assigns a state. The value is converted to the dtype of the state. If the update is refused, the state keeps its value.
    void assign(State<Tensor> &state, const Tensor &value);
    /// Returns this step for some of the parameters.
    OptimizerStep of(const std::vector<size_t> &parameters) const;
    /// Returns this step for an inner optimizer that updates its state only if the condition, a bool scalar, is true. The inner optimizer
    /// has a count of its own.
    OptimizerStep when(const Tensor &condition) const;

private:
    struct Level; ///< a condition, with the count of the updates that met it

    std::string name_;
    std::vector<Parameter> parameters_;
    std::shared_ptr<std::set<std::string>> names_;
    std::shared_ptr<Level> level_;
};

/// An optimizer, or a part of one: it transforms gradients to updates, which are added to the parameters
/// (optax.GradientTransformation).
class Optimizer {
public:
    /// Gets one f32 tensor for each parameter, and returns as many.
    using Transformation = std::function<std::vector<Tensor>(OptimizerStep &step, const std::vector<Tensor> &gradients)>;

    explicit Optimizer(Transformation transformation) : transformation_(std::move(transformation)) {}

    /// Updates the parameters: adds the transformed gradients to them. Declares the state of the optimizer, with names that begin with
    /// `name`; `name` is also the scope of the operators. Call states() before, because it also lists the state of optimizers. Throws
    /// UserError if the gradients do not fit the parameters.
    void apply(const std::vector<Tensor> &gradients, const std::vector<State<Tensor> *> &parameters, const std::string &name = "optimizer",
               const std::source_location &where = std::source_location::current()) const;

    /// Updates the parameters if `finite`, a bool scalar, is true. Otherwise parameters and all states keep their values, the count too.
    void apply_if(const Tensor &finite, const std::vector<Tensor> &gradients, const std::vector<State<Tensor> *> &parameters,
                  const std::string &name = "optimizer", const std::source_location &where = std::source_location::current()) const;

    /// Transforms gradients, for an optimizer that contains this one.
    std::vector<Tensor> operator()(OptimizerStep &step, const std::vector<Tensor> &gradients) const;

private:
    Transformation transformation_;
};

/// Applies optimizers one after the other (optax.chain).
Optimizer chain(const std::vector<Optimizer> &optimizers);
/// Applies an optimizer to the parameters that the mask chooses. Other gradients pass unchanged (optax.masked).
Optimizer masked(const Optimizer &inner, const ParameterMask &mask);
/// Applies `chosen` to the parameters that the mask chooses, and `others` to the others (optax.partition with two labels).
Optimizer partition(const ParameterMask &mask, const Optimizer &chosen, const Optimizer &others);

/// Multiplies updates by a number or a schedule (optax.scale, optax.scale_by_schedule).
Optimizer scale(const Schedule &factor);
/// Multiplies updates by -learning_rate (optax.scale_by_learning_rate).
Optimizer scale_by_learning_rate(const Schedule &learning_rate);
/// Limits each element to [-max_delta, max_delta] (optax.clip).
Optimizer clip(double max_delta);
/// If the norm of all updates together, sqrt(sum of squares), is not less than max_norm, divides by it and multiplies by max_norm
/// (optax.clip_by_global_norm).
Optimizer clip_by_global_norm(double max_norm);
/// Divides each tensor by max(1, root mean square / threshold) (optax.clip_by_block_rms).
Optimizer clip_by_block_rms(double threshold);
/// Adds weight_decay times the parameter to the updates of chosen parameters, all by default (optax.add_decayed_weights).
Optimizer add_decayed_weights(const Schedule &weight_decay, const ParameterMask &mask = {});
/// Keeps t = update + decay * t in the state `trace`. Returns t, or update + decay * t with the new t for nesterov (optax.trace).
/// Without accumulator_dtype, the state has the dtype of the parameter.
Optimizer trace(double decay, bool nesterov = false, std::optional<Dtype> accumulator_dtype = {});
/// Replaces updates by their average decay * average + (1 - decay) * update, kept in the state `ema`; debias divides by 1 - decay^count
/// (optax.ema).
Optimizer ema(double decay, bool debias = true, std::optional<Dtype> accumulator_dtype = {});
/// Multiplies each tensor by the ratio of the norms of parameter and update; by 1 if one of them is 0 (optax.scale_by_trust_ratio).
Optimizer scale_by_trust_ratio(double min_norm = 0, double trust_coefficient = 1, double eps = 0);
/// Multiplies each tensor by the root mean square of its parameter, at least min_scale (optax.scale_by_param_block_rms).
Optimizer scale_by_param_block_rms(double min_scale = 1e-3);

/// Options of sgd().
struct Sgd {
    Schedule learning_rate;
    std::optional<double> momentum = {};
    bool nesterov = false;
    std::optional<Dtype> accumulator_dtype = {}; ///< of the momentum; by default the dtype of the parameter
};

/// Returns stochastic gradient descent, -learning_rate * g, optionally with momentum (optax.sgd). State: `trace`, with momentum.
Optimizer sgd(const Sgd &options);

/// Options of adam() and scale_by_adam().
struct Adam {
    Schedule learning_rate = 1; ///< scale_by_adam() does not use it
    double b1 = 0.9, b2 = 0.999;
    double eps = 1e-8;                  ///< added to the root
    double eps_root = 0;                ///< added inside of the root
    std::optional<Dtype> mu_dtype = {}; ///< of the first moment; by default the dtype of the parameter
    bool nesterov = false;
};

/// Keeps mu = b1 * mu + (1 - b1) * g and nu = b2 * nu + (1 - b2) * g * g. Returns m / (sqrt(v + eps_root) + eps), with m = mu / (1 - b1^n)
/// and v = nu / (1 - b2^n) in update n = 1, 2 ... (optax.scale_by_adam). With nesterov, m is b1 * mu / (1 - b1^(n + 1)) + (1 - b1) * g /
/// (1 - b1^n). eps is added in f32, so that 1e-8 works for f16 parameters. State: `mu`, `nu`, `count`.
Optimizer scale_by_adam(const Adam &options);
/// Is scale_by_adam() with a learning rate (optax.adam).
Optimizer adam(const Adam &options);

/// Options of adamw().
struct AdamW {
    Schedule learning_rate;
    double b1 = 0.9, b2 = 0.999;
    double eps = 1e-8;                  ///< added to the root
    double eps_root = 0;                ///< added inside of the root
    std::optional<Dtype> mu_dtype = {}; ///< of the first moment; by default the dtype of the parameter
    Schedule weight_decay = 1e-4;
    ParameterMask mask = {}; ///< the parameters that decay; by default all
    bool nesterov = false;
};

/// Is adam() with decoupled weight decay: -learning_rate * (Adam's update + weight_decay * parameter) (optax.adamw).
Optimizer adamw(const AdamW &options);

/// Options of rmsprop() and scale_by_rms().
struct RmsProp {
    Schedule learning_rate = 1; ///< scale_by_rms() does not use it
    double decay = 0.9, eps = 1e-8;
    double initial_scale = 0; ///< the first value of the averages
    bool eps_in_sqrt = true;  ///< adds eps inside of the root
    bool centered = false;    ///< divides by the standard deviation instead
    std::optional<double> momentum = {};
    bool nesterov = false;
    bool bias_correction = false; ///< divides the averages by 1 - decay^n
};

/// Returns g / sqrt(nu + eps), with nu = decay * nu + (1 - decay) * g * g (optax.scale_by_rms; optax.scale_by_stddev if centered). State:
/// `nu`; `mu` if centered.
Optimizer scale_by_rms(const RmsProp &options);
/// Is scale_by_rms() with a learning rate, and then momentum (optax.rmsprop).
Optimizer rmsprop(const RmsProp &options);

/// Options of lion().
struct Lion {
    Schedule learning_rate;
    double b1 = 0.9, b2 = 0.99;
    std::optional<Dtype> mu_dtype = {}; ///< by default the dtype of the parameter
    Schedule weight_decay = 1e-3;
    ParameterMask mask = {}; ///< the parameters that decay; by default all
};

/// Returns -learning_rate * (sign(b1 * mu + (1 - b1) * g) + weight_decay * parameter), with mu = b2 * mu + (1 - b2) * g afterwards
/// (optax.lion). State: `mu`.
Optimizer lion(const Lion &options);

/// Options of lamb().
struct Lamb {
    Schedule learning_rate;
    double b1 = 0.9, b2 = 0.999;
    double eps = 1e-6;   ///< added to the root
    double eps_root = 0; ///< added inside of the root
    Schedule weight_decay = 0;
    ParameterMask mask = {}; ///< the parameters that decay; by default all
};

/// Is adamw() with scale_by_trust_ratio() before the learning rate (optax.lamb).
Optimizer lamb(const Lamb &options);

/// Options of adafactor() and scale_by_factored_rms().
struct Adafactor {
    std::optional<Schedule> learning_rate = {};
    int64_t min_dim_size_to_factor = 128; ///< a tensor with two axes of this extent has factored statistics
    double decay_rate = 0.8;
    int64_t decay_offset = 0; ///< the count of the first step, for fine-tuning
    bool multiply_by_parameter_scale = true;
    std::optional<double> clipping_threshold = 1.0;
    std::optional<double> momentum = {};
    Dtype dtype_momentum = Dtype::f32;
    std::optional<Schedule> weight_decay_rate = {};
    double eps = 1e-30;
    bool factored = true;
    ParameterMask weight_decay_mask = {}; ///< the parameters that decay; by default all
};

/// Divides by the root of averages of g * g + eps, with decay 1 - (n - decay_offset)^-decay_rate in update n (optax.scale_by_factored_rms).
/// A tensor with two axes of extent at least min_dim_size_to_factor keeps only the means over each of its two largest axes: `v_row` over
/// the largest, `v_col` over the next. Others keep `v`. The extents must be numbers.
Optimizer scale_by_factored_rms(const Adafactor &options);
/// Returns Adafactor: factored averages, block clipping, learning rate, scale of the parameter, momentum, weight decay
/// (optax.adafactor).
Optimizer adafactor(const Adafactor &options);

/// The coefficients of Muon's iterations.
inline constexpr std::array<double, 3> newton_schulz_coefficients{3.4445, -4.7750, 2.0315};

/// Options of muon() and scale_by_muon().
struct Muon {
    Schedule learning_rate = 1; ///< scale_by_muon() does not use it
    std::array<double, 3> ns_coeffs = newton_schulz_coefficients;
    int64_t ns_steps = 5;
    double beta = 0.95, eps = 1e-8;
    Schedule weight_decay = 0;
    ParameterMask weight_decay_mask = {}; ///< the matrices that decay; by default all
    std::optional<Dtype> mu_dtype = {};   ///< by default the dtype of the parameter
    bool nesterov = true;
    bool adaptive = false; ///< multiplies by the sum of the products with the update before
    double adam_b1 = 0.9, adam_b2 = 0.999, adam_eps_root = 0;
    Schedule adam_weight_decay = 0;
    std::optional<Schedule> adam_learning_rate = {}; ///< by default learning_rate
    std::optional<double> consistent_rms = {};       ///< multiplies by this and the root of the larger extent
};

/// Returns an approximation of the nearest matrix with orthogonal rows or columns: x / (norm + eps), and then ns_steps times
/// c0 * x + (c1 * a + c2 * a * a) * x with a = x * transpose(x) (Newton-Schulz iteration,
/// optax.contrib.orthogonalize_via_newton_schulz). The products are in the scope `amp_stop`. Throws UserError if x is not a matrix.
Tensor orthogonalize_via_newton_schulz(const Tensor &x, const std::array<double, 3> &ns_coeffs = newton_schulz_coefficients,
                                       int64_t ns_steps = 5, double eps = 1e-8,
                                       const std::source_location &where = std::source_location::current());
/// Keeps mu = beta * mu + (1 - beta) * g. Returns the orthogonalized mu / (1 - beta^n) of matrices; with nesterov, of
/// beta * mu / (1 - beta^(n + 1)) + (1 - beta) * g / (1 - beta^n) (optax.contrib.scale_by_muon). State: `mu`, `count`.
Optimizer scale_by_muon(const Muon &options);
/// Is scale_by_muon() for matrices, times sqrt(max(1, columns / rows)), with weight decay and the learning rate; other parameters use
/// adamw() (optax.contrib.muon).
Optimizer muon(const Muon &options);

/// The update whose norm Shampoo takes over.
enum class Grafting : uint8_t { sgd, adagrad, rmsprop };

/// Options of shampoo(), with the names and defaults of Distributed Shampoo.
struct Shampoo {
    Schedule learning_rate;
    int64_t block_size = 1024; ///< longer axes are divided into blocks of this extent
    double beta1 = 0.9;        ///< of the momentum
    double beta2 = 0.999;      ///< of the statistics; 1: their sum
    double diagonal_epsilon = 1e-10;
    double matrix_epsilon = 1e-6; ///< times the identity: the first statistics. Also relative to their norm: what is added before the root
    double weight_decay = 0;
    int64_t start_preconditioning_step = 5; ///< before this count, the update of `graft_type` is used
    bool nesterov = true;
    int64_t exponent_override = 0; ///< p of the inverse p-th roots; 0: twice the number of axes
    Grafting graft_type = Grafting::sgd;
    bool moving_average_for_momentum = false; ///< momentum adds (1 - beta1) * update instead of the update
    int64_t root_iterations = 30;
    std::optional<Dtype> statistics_dtype = {}; ///< i16 or i8: column-quantized, with an f32 diagonal; by default f32
    std::optional<Dtype> momentum_dtype = {};   ///< i16 or i8: column-quantized; by default f32
};

/// Returns the inverse p-th root of a symmetric matrix that is positive definite, after it adds ridge_epsilon * norm * identity. Coupled
/// Newton iterations: with z = (1 + p) / (2 * norm), m = z * matrix and h = z^(1 / p) * identity, each step multiplies h by
/// t = (1 + 1 / p) * identity - m / p and m by t^p, until m is near the identity or gets no nearer. All iterations are in the program,
/// in the scope `amp_stop`. Throws UserError if the matrix is not square, its extents are symbols, or p is not positive.
Tensor matrix_inverse_pth_root(const Tensor &matrix, int64_t p, double ridge_epsilon = 1e-6, int64_t iterations = 30,
                               const std::source_location &where = std::source_location::current());

/// Returns Shampoo: each axis of each block has statistics, s = beta2 * s + (1 - beta2) * (g contracted with itself over the other axes).
/// The gradient is multiplied by their inverse p-th roots along each axis, and gets the norm of the grafted update. Then come weight decay,
/// momentum and the learning rate. The roots are computed in each step. State: `statistics`, `momentum`, `diagonal_momentum`, and
/// `diagonal_statistics` for adagrad and rmsprop. A quantized state has the further arrays `bucket_size`
/// and, of statistics, `diagonal`. Extents must be numbers.
Optimizer shampoo(const Shampoo &options);

/// Options of multi_steps().
struct MultiSteps {
    Schedule every_k = 1; ///< the number of microbatches; a schedule gets the number of updates
    bool use_grad_mean = true;
    bool skip_not_finite = false; ///< leaves out microbatches whose gradients are not finite (optax.skip_not_finite)
};

/// Accumulates gradients, and applies `inner` to their mean (or sum) in each k-th step (optax.MultiSteps). Other steps add 0, and the state
/// of `inner` does not change. State: `mini_step`, `gradient_step`, `acc_grads` in f32.
Optimizer multi_steps(const Optimizer &inner, const MultiSteps &options);

/// Applies `inner` if all gradients are finite; otherwise adds 0 and keeps its state. After more than max_consecutive_errors such steps in
/// a row, applies it all the same (optax.apply_if_finite). State: `notfinite_count`, `last_finite`, `total_notfinite`.
Optimizer apply_if_finite(const Optimizer &inner, int64_t max_consecutive_errors);

} // namespace scalide

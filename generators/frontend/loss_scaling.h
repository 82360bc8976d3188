#pragma once
#include "frontend/generator.h"

/// Loss scaling: the loss is multiplied by a number before the gradients are computed, and the gradients are divided by it, so that small
/// gradients do not become zero in f16. A scaler is a program fragment: its state is in States of the program, and all of it runs in the
/// step.
///
///     LossScaler scaler = flax_dynamic_scale({.growth_interval = 1000});
///     const auto [finite, value, gradients] = scaler.value_and_grad(loss, values_of(parameters));
///     optimizer.apply_if(finite, gradients, parameters);
namespace scalide {

/// Returns a bool scalar: true if no element of any tensor is infinite or NaN (jmp.all_finite). Tensors that are not floats are finite.
Tensor all_finite(const std::vector<Tensor> &tensors, const std::source_location &where = std::source_location::current());

/// Returns the first tensors if the condition, a bool scalar, is true, and otherwise the second (jmp.select_tree).
std::vector<Tensor> select_tree(const Tensor &condition, const std::vector<Tensor> &yes, const std::vector<Tensor> &no,
                                const std::source_location &where = std::source_location::current());

/// What LossScaler::value_and_grad() returns.
struct ScaledGradients {
    Tensor finite;                 ///< bool scalar: the update may be applied
    Tensor value;                  ///< the loss, scaled and unscaled
    std::vector<Tensor> gradients; ///< unscaled
};

/// The dtype in which a LossScaler multiplies or divides.
enum class ScaleDtype : uint8_t { f32, own };

/// What a LossScaler does: data, for scalers of your own.
struct LossScaleRule {
    /// A scalar of the state. The first one is the scale, of dtype f32.
    struct Scalar {
        std::string name;
        Dtype dtype;
        double initial;
    };
    /// Returns the next values of the state. `finite` is a bool scalar.
    using Adjust = std::function<std::vector<Tensor>(const std::vector<Tensor> &state, const Tensor &finite)>;

    std::vector<Scalar> state = {};
    double fixed_scale = 1; ///< the scale if there is no state
    Adjust adjust = {};
    ScaleDtype scaled_in = ScaleDtype::own; ///< own: the scale is converted to the dtype of the loss
    ScaleDtype unscaled_in = ScaleDtype::f32;
    bool unscales_by_product = false; ///< multiplies by 1 / scale
    bool tests_value_and_aux = false; ///< the value and the auxiliary results must be finite, too
    int64_t redo_on_nan = 0;          ///< further attempts with the adjusted scale, each with a gradient of its own
};

/// Scales a loss and unscales its gradients. Declare it as a member or in generate(). Its first use declares its state, with names that
/// begin with `name`.
class LossScaler {
public:
    explicit LossScaler(LossScaleRule rule, std::string name) : rule_(std::move(rule)), name_(std::move(name)) {}

    /// Returns the loss and its gradients, computed with a scaled loss, and adjusts the scale. The results are f32 unless the rule says
    /// otherwise. `aux` are further results of the model: they are not scaled, and some rules test whether they are finite. Call states()
    /// before, because it also lists the state of scalers. Throws UserError if the loss is not a float scalar.
    ScaledGradients value_and_grad(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux = {},
                                   const std::source_location &where = std::source_location::current());

    /// Does the same for gradients alone: an infinite loss does not count.
    ScaledGradients grad(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux = {},
                         const std::source_location &where = std::source_location::current());

    /// Returns the scale of this step, an f32 scalar.
    Tensor loss_scale(const std::source_location &where = std::source_location::current());
    /// Returns x times the scale.
    Tensor scale(const Tensor &x, const std::source_location &where = std::source_location::current());
    /// Returns tensors divided by the scale.
    std::vector<Tensor> unscale(const std::vector<Tensor> &tensors, const std::source_location &where = std::source_location::current());
    /// Adjusts the scale: `finite`, a bool scalar, says whether the gradients of this step were finite. value_and_grad() calls it.
    void adjust(const Tensor &finite, const std::source_location &where = std::source_location::current());

private:
    using Values = std::vector<Tensor>;

    void declare();
    Values values();
    Tensor scale_of(const Values &state) const;
    Tensor scaled(const Tensor &x, const Values &state) const;
    Tensor unscaled(const Tensor &x, const Values &state) const;
    ScaledGradients attempts(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux, bool tests_value);
    ScaledGradients attempt(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux, bool tests_value,
                            const Values &state) const;
    void assign(const Values &state);

    LossScaleRule rule_;
    std::string name_;
    std::vector<State<Tensor> *> states_;
};

/// Options of dynamic_scaler(), with the names of jaxamp's DynamicScalerState.
struct DynamicScalerState {
    int64_t patience = 2000;  ///< how many finite steps increase the scale
    double adjust_factor = 2; ///< what the scale is multiplied or divided by
    double scaler = 32768;    ///< the first scale
    /// How often a step whose results are not finite is repeated with a smaller scale. Each attempt is one more gradient in the program,
    /// and all of them run in each step. jaxamp has 10 for values and gradients.
    int64_t redo_on_nan = 0;
};

/// Is jaxamp's dynamic_scale_value_and_grad and dynamic_scale_grad. Values, gradients and auxiliary results must be finite. After
/// `patience` finite steps, the next one multiplies the scale by adjust_factor; a step that is not finite divides it. The scale has no
/// bounds. State: `scaler`, `count`, `total_resets`.
LossScaler dynamic_scaler(const DynamicScalerState &options, const std::string &name = "loss_scale");

/// Options of flax_dynamic_scale().
struct FlaxDynamicScale {
    double growth_factor = 2;
    double backoff_factor = 0.5;
    int64_t growth_interval = 2000;
    double scale = 65536;                           ///< the first scale
    std::optional<double> minimum_scale = 0x1p-126; ///< empty: no minimum
};

/// Is flax.training.dynamic_scale.DynamicScale. The gradients must be finite. After growth_interval finite steps, the next one multiplies
/// the scale by growth_factor, up to the largest f32; a step that is not finite multiplies it by backoff_factor. State: `scale`,
/// `fin_steps`.
LossScaler flax_dynamic_scale(const FlaxDynamicScale &options, const std::string &name = "loss_scale");

/// Options of dynamic_loss_scale(), with the names of jmp's DynamicLossScale.
struct DynamicLossScale {
    double loss_scale = 32768; ///< the first scale
    int64_t period = 2000;
    double factor = 2;
    double min_loss_scale = 1;
};

/// Is jmp.DynamicLossScale: in each period-th finite step in a row, the scale is multiplied by `factor` if the result is finite; a step
/// that is not finite divides it, down to min_loss_scale. Gradients keep their dtype. State: `loss_scale`, `counter`.
LossScaler dynamic_loss_scale(const DynamicLossScale &options, const std::string &name = "loss_scale");
/// Is jmp.StaticLossScale: the scale does not change. Gradients keep their dtype.
LossScaler static_loss_scale(double loss_scale);
/// Is jmp.NoOpLossScale: nothing is scaled. Gradients keep their dtype.
LossScaler no_op_loss_scale();

} // namespace scalide

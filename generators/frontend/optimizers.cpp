#include "frontend/optimizers.h"
#include "frontend/fragments.h"
#include "frontend/loss_scaling.h"
#include "frontend/tracer.h"
#include "ir/words.h"

namespace scalide {

namespace {

using namespace fragments;

using Updates = std::vector<Tensor>;

Dimensions dimensions_of(const Extents &shape) { return {shape.begin(), shape.end()}; }

/// Returns the parameters. Refuses what does not fit the gradients.
std::vector<OptimizerStep::Parameter> described(const Updates &gradients, const std::vector<State<Tensor> *> &states) {
    if (gradients.size() != states.size())
        throw UserError({{},
                         "optimizer",
                         "there must be one gradient for each parameter",
                         std::to_string(gradients.size()) + " gradients and " + std::to_string(states.size()) + " parameters",
                         "Call states() before you declare other states"});
    const Tracer &tracer = Tracer::current();
    std::vector<OptimizerStep::Parameter> parameters;
    for (size_t i = 0; i < states.size(); i++) {
        const std::vector<Assignment> values = tracer.assignments_of(*states[i]);
        const std::string name = tracer.program().value_name(values.front().value);
        const Type type{states[i]->dtype(), states[i]->shape()};
        if (!is_float(type.dtype)) throw UserError({{}, name, "a parameter must be a float", to_string(type), "Leave it out"});
        if (!(gradients[i].shape() == type.shape))
            throw UserError({{}, name, "the gradient must have the shape " + to_string(type.shape), to_string(gradients[i].shape()), ""});
        parameters.push_back({name, type, to(*states[i], Dtype::f32)});
    }
    return parameters;
}

/// Applies a function to each tensor.
template<typename Function>
Optimizer each(const Function &function) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) updates.push_back(function(gradients[i], step.parameters()[i]));
        return updates;
    });
}

bool is_chosen(const ParameterMask &mask, const OptimizerStep::Parameter &parameter) {
    return !mask || mask(parameter.name, parameter.type);
}

/// Applies an optimizer to some of the gradients, in place.
void apply_to(const Optimizer &optimizer, const std::vector<size_t> &places, const OptimizerStep &step, Updates &gradients) {
    if (places.empty()) return;
    OptimizerStep part = step.of(places);
    Updates chosen;
    for (const size_t place : places) chosen.push_back(gradients[place]);
    chosen = optimizer(part, chosen);
    for (size_t i = 0; i < places.size(); i++) gradients[places[i]] = chosen[i];
}

/// The numbers of the parameters that the mask chooses, and of the others.
std::pair<std::vector<size_t>, std::vector<size_t>> divided(const ParameterMask &mask, const OptimizerStep &step) {
    std::pair<std::vector<size_t>, std::vector<size_t>> places;
    for (size_t i = 0; i < step.parameters().size(); i++)
        (is_chosen(mask, step.parameters()[i]) ? places.first : places.second).push_back(i);
    return places;
}

} // namespace

std::vector<Tensor> values_of(const std::vector<State<Tensor> *> &states) {
    std::vector<Tensor> values;
    for (const State<Tensor> *state : states) values.push_back(*state);
    return values;
}

struct OptimizerStep::Level {
    Tensor accepted; ///< empty: always
    Tensor count;    ///< empty: not declared yet
};

OptimizerStep::OptimizerStep(std::string name, std::vector<Parameter> parameters, const Tensor &accepted)
    : name_(std::move(name)), parameters_(std::move(parameters)), names_(std::make_shared<std::set<std::string>>()),
      level_(std::make_shared<Level>(Level{accepted, {}})) {}

Tensor OptimizerStep::count() {
    if (!level_->count.is_assigned()) {
        State<Tensor> &state = add_state("count", Type{Dtype::i32, {}});
        level_->count = Tensor(state.value());
        assign(state, safe_increment(state));
    }
    return level_->count;
}

Operand OptimizerStep::value(const Schedule &schedule) { return schedule.is_constant() ? schedule.constant() : schedule(count()); }

State<Tensor> &OptimizerStep::add_state(const std::string &name, const Type &type, const Initializer &initial) {
    std::string free = name;
    for (int i = 1; !names_->insert(free).second; i++) free = name + std::to_string(i);
    return scalide::add_state(name_ + "." + free, type.dtype, dimensions_of(type.shape), initial);
}

State<Tensor> &OptimizerStep::add_state(const std::string &name, const Parameter &parameter, const Type &type, const Initializer &initial) {
    std::string free = name;
    for (int i = 1; !names_->insert(free + "." + parameter.name).second; i++) free = name + std::to_string(i);
    return scalide::add_state(name_ + "." + free + "." + parameter.name, type.dtype, dimensions_of(type.shape), initial);
}

void OptimizerStep::assign(State<Tensor> &state, const Tensor &value) {
    const Tensor rounded = to(value, state.dtype());
    state = level_->accepted.is_assigned() ? where(level_->accepted, rounded, state) : rounded;
}

OptimizerStep OptimizerStep::of(const std::vector<size_t> &parameters) const {
    OptimizerStep part = *this;
    part.parameters_.clear();
    for (const size_t place : parameters) part.parameters_.push_back(parameters_[place]);
    return part;
}

OptimizerStep OptimizerStep::when(const Tensor &condition) const {
    OptimizerStep inner = *this;
    const Tensor &outer = level_->accepted;
    inner.level_ = std::make_shared<Level>(Level{outer.is_assigned() ? logical_and(outer, condition) : condition, {}});
    return inner;
}

std::vector<Tensor> Optimizer::operator()(OptimizerStep &step, const std::vector<Tensor> &gradients) const {
    Updates updates = transformation_(step, gradients);
    if (updates.size() != gradients.size())
        throw UserError({{},
                         "optimizer",
                         "a transformation must return one update for each of the " + std::to_string(gradients.size()) + " gradients",
                         std::to_string(updates.size()),
                         ""});
    return updates;
}

void Optimizer::apply(const std::vector<Tensor> &gradients, const std::vector<State<Tensor> *> &parameters, const std::string &name,
                      const std::source_location &where) const {
    apply_if({}, gradients, parameters, name, where);
}

void Optimizer::apply_if(const Tensor &finite, const std::vector<Tensor> &gradients, const std::vector<State<Tensor> *> &parameters,
                         const std::string &name, const std::source_location &where) const {
    at(where, [&] {
        const Scope scope(name);
        OptimizerStep step(name, described(gradients, parameters), finite);
        Updates updates;
        for (const Tensor &gradient : gradients) {
            const Tensor wide = to(gradient, Dtype::f32);
            // A refused gradient may be infinite or NaN. Zeros keep these values out of scales that the operators choose.
            updates.push_back(finite.is_assigned() ? fragments::where(finite, wide, 0) : wide);
        }
        updates = (*this)(step, updates);
        for (size_t i = 0; i < parameters.size(); i++) step.assign(*parameters[i], step.parameters()[i].value + updates[i]);
    });
}

Optimizer chain(const std::vector<Optimizer> &optimizers) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates = gradients;
        for (const Optimizer &optimizer : optimizers) updates = optimizer(step, updates);
        return updates;
    });
}

Optimizer masked(const Optimizer &inner, const ParameterMask &mask) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates = gradients;
        apply_to(inner, divided(mask, step).first, step, updates);
        return updates;
    });
}

Optimizer partition(const ParameterMask &mask, const Optimizer &chosen, const Optimizer &others) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates = gradients;
        const auto [first, second] = divided(mask, step);
        apply_to(chosen, first, step, updates);
        apply_to(others, second, step, updates);
        return updates;
    });
}

Optimizer scale(const Schedule &factor) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Operand value = step.value(factor);
        Updates updates;
        for (const Tensor &gradient : gradients) updates.push_back(value * gradient);
        return updates;
    });
}

Optimizer scale_by_learning_rate(const Schedule &learning_rate) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Operand rate = step.value(learning_rate);
        const Operand factor = rate.is_number ? Operand(-rate.number) : Operand(-rate.tensor);
        Updates updates;
        for (const Tensor &gradient : gradients) updates.push_back(factor * gradient);
        return updates;
    });
}

Optimizer clip(double max_delta) {
    return each([=](const Tensor &g, const auto &) { return apply("clamp", {-max_delta, g, max_delta}); });
}

Optimizer clip_by_global_norm(double max_norm) {
    return Optimizer([=](OptimizerStep &, const Updates &gradients) {
        Tensor sum;
        for (const Tensor &gradient : gradients) {
            const Tensor squares = reduce("reduce_sum", square(gradient));
            sum = sum.is_assigned() ? sum + squares : squares;
        }
        if (!sum.is_assigned()) return gradients;
        // Two scalars for all tensors. x / 1 * 1 is x, so this is the selection of optax.
        const Tensor norm = sqrt(sum), is_small = norm < max_norm, one = scalar(1);
        const Tensor divisor = where(is_small, one, norm), factor = where(is_small, one, scalar(max_norm));
        Updates updates;
        for (const Tensor &gradient : gradients) updates.push_back(gradient / divisor * factor);
        return updates;
    });
}

Optimizer clip_by_block_rms(double threshold) {
    return each([=](const Tensor &g, const auto &) { return g / max(1, sqrt(reduce("mean", square(g))) / threshold); });
}

Optimizer add_decayed_weights(const Schedule &weight_decay, const ParameterMask &mask) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Operand decay = step.value(weight_decay);
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const OptimizerStep::Parameter &parameter = step.parameters()[i];
            updates.push_back(is_chosen(mask, parameter) ? gradients[i] + decay * parameter.value : gradients[i]);
        }
        return updates;
    });
}

Optimizer multi_steps(const Optimizer &inner, const MultiSteps &options) {
    return Optimizer([=](OptimizerStep &outer, Updates gradients) {
        const Tensor used = options.skip_not_finite ? all_finite(gradients) : Tensor();
        OptimizerStep step = used.is_assigned() ? outer.when(used) : outer;
        for (Tensor &gradient : gradients)
            if (used.is_assigned()) gradient = where(used, gradient, 0);
        State<Tensor> &mini_step = step.add_state("mini_step", Type{Dtype::i32, {}});
        State<Tensor> &gradient_step = step.add_state("gradient_step", Type{Dtype::i32, {}});
        const Operand every = options.every_k(gradient_step);
        const Tensor k = every.is_number ? scalar(every.number, Dtype::i32) : to(every.tensor, Dtype::i32);
        Tensor emit = eq(mini_step, k - 1);
        if (used.is_assigned()) emit = logical_and(emit, used);
        Updates sums;
        for (size_t i = 0; i < gradients.size(); i++) {
            const OptimizerStep::Parameter &parameter = step.parameters()[i];
            State<Tensor> &sum = step.add_state("acc_grads", parameter, {Dtype::f32, parameter.type.shape});
            const Tensor n = to(mini_step, Dtype::f32) + 1;
            const Tensor added = options.use_grad_mean ? sum + (gradients[i] - sum) / n : sum + gradients[i];
            sums.push_back(added);
            step.assign(sum, where(emit, 0, added));
        }
        OptimizerStep update = step.when(emit);
        Updates updates = inner(update, sums);
        for (Tensor &each_update : updates) each_update = where(emit, each_update, 0);
        step.assign(gradient_step, where(emit, safe_increment(gradient_step), gradient_step));
        step.assign(mini_step, where(emit, 0, safe_increment(mini_step)));
        return updates;
    });
}

Optimizer apply_if_finite(const Optimizer &inner, int64_t max_consecutive_errors) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        State<Tensor> &errors = step.add_state("notfinite_count", Type{Dtype::i32, {}});
        State<Tensor> &last = step.add_state("last_finite", Type{Dtype::boolean, {}}, initializers::ones());
        State<Tensor> &total = step.add_state("total_notfinite", Type{Dtype::i32, {}});
        const Tensor finite = all_finite(gradients), count = where(finite, 0, safe_increment(errors));
        const Tensor applied = logical_or(finite, count > max_consecutive_errors);
        Updates inputs;
        for (const Tensor &gradient : gradients) inputs.push_back(where(applied, gradient, 0));
        OptimizerStep update = step.when(applied);
        Updates updates = inner(update, inputs);
        for (Tensor &each_update : updates) each_update = where(applied, each_update, 0);
        step.assign(errors, count);
        step.assign(last, finite);
        step.assign(total, where(finite, total, safe_increment(total)));
        return updates;
    });
}

} // namespace scalide

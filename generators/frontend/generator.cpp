#include "frontend/generator.h"
#include "frontend/tracer.h"
#include "ir/dtype_advice.h"
#include "ir/words.h"
#include "rulebook/nearest.h"
#include "transforms/analysis/splice.h"
#include "transforms/calls/bind_symbols.h"
#include <algorithm>
#include <charconv>
#include <limits>

namespace scalide {

namespace {

thread_local GeneratorBase *generator_under_construction = nullptr;
thread_local const Parameters *given_parameters = nullptr;
thread_local std::vector<ParameterDescription> *known_parameters = nullptr;

struct Registered {
    GeneratorFactory factory;
    GeneratorProgram program;
};

std::multimap<std::string, Registered> &registry() {
    static std::multimap<std::string, Registered> generators;
    return generators;
}

constexpr const char *no_generators = "This executable contains no generators; the name of a program file ends in .scl";

[[noreturn]] void refuse_parameter(const std::string &name, const std::string &requirement, const std::string &text,
                                   const std::string &way_out = "") {
    throw UserError({{}, "parameter." + name, "must be " + requirement, "'" + text + "'", way_out});
}

Type make_type(Dtype dtype, const Dimensions &shape) {
    Type type{dtype, {}};
    for (const Dimension &dimension : shape) type.shape.push_back(dimension.extent);
    return type;
}

Tensor declare_argument(const std::string &name, Dtype dtype, const Dimensions &shape, bool inout, const std::source_location &where,
                        Supply supply = Supply::run) {
    return at(where, [&] {
        return Tracer::current().add_argument(name, make_type(dtype, shape), {-1, false, inout, {}, location_of(where), {}, supply});
    });
}

/// While it exists, it provides the parameters of a generator under construction. The generator's constructor may throw.
class ParameterScope {
public:
    ParameterScope(const Parameters &given, std::vector<ParameterDescription> &known)
        : outer_given_(given_parameters), outer_known_(known_parameters) {
        given_parameters = &given;
        known_parameters = &known;
    }
    ~ParameterScope() {
        given_parameters = outer_given_;
        known_parameters = outer_known_;
    }
    ParameterScope(const ParameterScope &) = delete;

private:
    const Parameters *outer_given_;
    std::vector<ParameterDescription> *outer_known_;
};

struct Constructed {
    std::unique_ptr<GeneratorBase> generator;
    std::vector<ParameterDescription> parameters;
};

Constructed construct(const GeneratorFactory &factory, const std::string &name, const Parameters &parameters) {
    Constructed made;
    const ParameterScope scope(parameters, made.parameters);
    made.generator = factory();
    std::vector<std::string> names;
    for (const ParameterDescription &parameter : made.parameters) names.push_back(parameter.name);
    for (const auto &[parameter, text] : parameters) {
        if (std::ranges::find(names, parameter) != names.end()) continue;
        const std::string near = nearest(parameter, names), all = names.empty() ? "It has no parameters" : "Parameters: " + joined(names);
        throw UserError(statement({}, "generator '" + name + "' has no parameter '" + parameter + "'",
                                  near.empty() ? all : "Did you mean '" + near + "'? " + all));
    }
    return made;
}

const Registered &find_generator(const std::string &name) {
    const auto [first, last] = registry().equal_range(name);
    const auto count = std::distance(first, last);
    if (count == 0) {
        const std::vector<std::string> known = generator_names();
        throw UserError(unknown_name({}, "generator", name, known.empty() ? no_generators : suggestion(name, known)));
    }
    if (count > 1) throw UserError(statement({}, "generator '" + name + "' is registered " + std::to_string(count) + " times"));
    return first->second;
}

/// Calls a function that runs code of the user. Reports an exception that this code throws.
template<typename Function>
auto running(const std::string &name, const Function &function) {
    try {
        return function();
    } catch (const UserError &) {
        throw;
    } catch (const InternalError &) {
        throw;
    } catch (const std::exception &error) {
        throw UserError(statement({}, "generator '" + name + "' failed: generate() threw an exception: " + error.what()));
    }
}

struct Traced {
    Program program;
    std::vector<GeneratorBase::Declaration> declarations; ///< their tensors are of the past
};

Traced trace_generator(const GeneratorFactory &factory, const std::string &name, const Parameters &parameters, const Rulebook &rulebook) {
    Tracer tracer(rulebook, name);
    Traced traced;
    running(name, [&] {
        const std::unique_ptr<GeneratorBase> generator = construct(factory, name, parameters).generator;
        generator->finish();
        traced.declarations = generator->declarations();
    });
    traced.program = std::move(tracer.program());
    std::erase_if(traced.declarations, [](const GeneratorBase::Declaration &declared) { return declared.argument < 0; });
    return traced;
}

/// Returns the program that computes the first values of these states.
Program initial_state_program(const std::string &name, const std::vector<GeneratorBase::Declaration> &states, const Rulebook &rulebook) {
    Tracer tracer(rulebook, name);
    Program &program = tracer.program();
    const Tensor key = tracer.add_argument("key", {Dtype::u32, {2}}, {});
    for (size_t i = 0; i < states.size(); i++) {
        const GeneratorBase::Declaration &state = states[i];
        if (!state.initializer) continue;
        at(state.where, [&] {
            const Tensor number =
                apply("full", {}, {{"shape", to_attribute(Extents())}, {"fill_value", static_cast<double>(i)}, {"dtype", "i32"}});
            const Tensor first = running(name, [&] { return state.initializer(apply("random_fold_in", {key, number}), state.type); });
            const Type &type = program.type(first.value());
            if (!(type == state.type))
                throw UserError(
                    {{}, subject_of(name, state.name), "the initializer must return " + to_string(state.type), to_string(type), ""});
            program.results.push_back({state.name, first.value()});
        });
    }
    if (program.results.empty())
        throw UserError(statement({}, "generator '" + name + "' has no state with an initializer",
                                  "Pass one to a State, such as initializers::zeros()"));
    return std::move(program);
}

} // namespace

std::optional<std::string> take_parameter(const ParameterDescription &parameter) {
    if (known_parameters) known_parameters->push_back(parameter);
    if (!given_parameters || !given_parameters->contains(parameter.name)) return {};
    return given_parameters->at(parameter.name);
}

template<typename T>
std::string parameter_type() {
    if (std::is_floating_point_v<T>) return "a number";
    return "an integer in [" + std::to_string(std::numeric_limits<T>::min()) + ", " + std::to_string(std::numeric_limits<T>::max()) + "]";
}

template<>
std::string parameter_type<bool>() {
    return "one of false, true";
}

template<>
std::string parameter_type<std::string>() {
    return "a text";
}

template<>
std::string parameter_type<Dtype>() {
    return "a dtype such as f32, bf16, f8_e4m3fn";
}

template<typename T>
std::string parameter_text(const T &value) {
    char text[32];
    return {text, std::to_chars(text, std::end(text), value).ptr};
}

template<>
std::string parameter_text(const bool &value) {
    return value ? "true" : "false";
}

template<>
std::string parameter_text(const std::string &value) {
    return value;
}

template<>
std::string parameter_text(const Dtype &value) {
    return std::string(to_string(value));
}

template<typename T>
T parse_parameter(const std::string &name, const std::string &text) {
    T value{};
    const char *end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) refuse_parameter(name, parameter_type<T>(), text);
    return value;
}

#define SCALIDE_NUMBER_PARAMETER(type)                                                                                                     \
    template type parse_parameter(const std::string &, const std::string &);                                                               \
    template std::string parameter_text(const type &);                                                                                     \
    template std::string parameter_type<type>();
SCALIDE_NUMBER_PARAMETER(signed char)
SCALIDE_NUMBER_PARAMETER(unsigned char)
SCALIDE_NUMBER_PARAMETER(short)
SCALIDE_NUMBER_PARAMETER(unsigned short)
SCALIDE_NUMBER_PARAMETER(int)
SCALIDE_NUMBER_PARAMETER(long)
SCALIDE_NUMBER_PARAMETER(long long)
SCALIDE_NUMBER_PARAMETER(unsigned)
SCALIDE_NUMBER_PARAMETER(unsigned long)
SCALIDE_NUMBER_PARAMETER(unsigned long long)
SCALIDE_NUMBER_PARAMETER(float)
SCALIDE_NUMBER_PARAMETER(double)
#undef SCALIDE_NUMBER_PARAMETER

template<>
bool parse_parameter(const std::string &name, const std::string &text) {
    return parse_word_parameter(name, text, {"false", "true"}) == 1;
}

template<>
std::string parse_parameter(const std::string &, const std::string &text) {
    return text;
}

template<>
Dtype parse_parameter(const std::string &name, const std::string &text) {
    const std::optional<Dtype> dtype = parse_dtype(text);
    if (!dtype) refuse_parameter(name, parameter_type<Dtype>(), text, dtype_advice(text));
    return *dtype;
}

size_t parse_word_parameter(const std::string &name, const std::string &text, const std::vector<std::string> &words) {
    std::string known;
    for (size_t i = 0; i < words.size(); i++) {
        if (words[i] == text) return i;
        known += (known.empty() ? "" : ", ") + words[i];
    }
    refuse_parameter(name, "one of " + known, text);
}

Input<Tensor>::Input(const std::string &name, Dtype dtype, const Dimensions &shape, const std::source_location &where)
    : Tensor(declare_argument(name, dtype, shape, false, where)) {}

Constant<Tensor>::Constant(const std::string &name, Dtype dtype, const Dimensions &shape, const std::source_location &where)
    : Tensor(declare_argument(name, dtype, shape, false, where, Supply::constant)) {}

AssignedTensor::AssignedTensor(const std::string &name, const Type &type, const Tensor &initial, const std::source_location &where,
                               const Initializer &initializer, const std::string &merge)
    : Tensor(initial), generator_(&GeneratorBase::current()), declaration_(generator_->declarations_.size()) {
    const int last = static_cast<int>(Tracer::current().program().arguments.size()) - 1;
    generator_->declarations_.push_back({this, name, type, initial.is_assigned() ? last : -1, where, where, initializer, merge});
    if (initial.is_assigned()) Tracer::current().declare_state(*this);
}

AssignedTensor::AssignedTensor(AssignedTensor &&other) noexcept
    : Tensor(other), generator_(other.generator_), declaration_(other.declaration_) {
    generator_->declarations_[declaration_].tensor = this;
    other.generator_ = nullptr;
}

AssignedTensor::~AssignedTensor() {
    if (!generator_) return;
    GeneratorBase::Declaration &declaration = generator_->declarations_[declaration_];
    declaration.last = *this;
    declaration.tensor = nullptr;
}

void AssignedTensor::assign(const TensorUse &use) {
    at(use.where, [&] {
        Tracer::current().refuse_in_region("assign an Output, a State or a Statistic",
                                           "Return the value from the function, and assign the result of the loop or the branch");
        const Tensor assigned(use.tensor.value()); // not a copy, which would be the same State as use.tensor
        GeneratorBase::Declaration *declaration = generator_ ? &generator_->declarations_[declaration_] : nullptr;
        if (declaration) declaration->where = use.where;
        if (!declaration || declaration->merge.empty())
            Tracer::current().assign(*this, assigned.value());
        else if (declaration->merged.is_assigned())
            declaration->merged = apply(declaration->merge, {declaration->merged, assigned});
        else
            declaration->merged = assigned;
    });
}

State<Tensor>::State(const std::string &name, Dtype dtype, const Dimensions &shape, const std::source_location &where)
    : AssignedTensor(name, make_type(dtype, shape), declare_argument(name, dtype, shape, true, where), where) {}

State<Tensor>::State(const std::string &name, Dtype dtype, const Dimensions &shape, const Initializer &initial,
                     const std::source_location &where)
    : AssignedTensor(name, make_type(dtype, shape), declare_argument(name, dtype, shape, true, where), where, initial) {}

State<Tensor> &State<Tensor>::operator=(const TensorUse &value) {
    assign(value);
    return *this;
}

Statistic<Tensor>::Statistic(const std::string &name, Dtype dtype, const Dimensions &shape, const Initializer &initial,
                             const std::string &merge, const std::source_location &where)
    : AssignedTensor(name, make_type(dtype, shape), declare_argument(name, dtype, shape, true, where), where, initial, merge) {
    if (merge.empty()) throw UserError({location_of(where), name, "merge must be an operator of two operands", "''", "Write \"max\""});
}

Statistic<Tensor> &Statistic<Tensor>::operator=(const TensorUse &value) {
    assign(value);
    return *this;
}

Output<Tensor>::Output(const std::string &name, Dtype dtype, const Dimensions &shape, const std::source_location &where)
    : AssignedTensor(name, make_type(dtype, shape), {}, where) {}

Output<Tensor> &Output<Tensor>::operator=(const TensorUse &value) {
    assign(value);
    return *this;
}

void check_tensor_count(const std::string &name, int64_t count, const std::source_location &where) {
    if (count < 0) throw UserError({location_of(where), name, "the number of tensors must not be negative", std::to_string(count), ""});
}

void check_tensor_index(const std::string &name, size_t count, const TensorIndex &index) {
    if (index.index >= 0 && index.index < static_cast<int64_t>(count)) return;
    throw UserError({location_of(index.where), name, "the index must be less than the number of tensors, " + std::to_string(count),
                     std::to_string(index.index), ""});
}

GeneratorBase::GeneratorBase() : outer_(generator_under_construction) { generator_under_construction = this; }

GeneratorBase::~GeneratorBase() { generator_under_construction = outer_; }

GeneratorBase &GeneratorBase::current() {
    internal_check(generator_under_construction, "Input, State and Output are members of a Generator");
    return *generator_under_construction;
}

std::vector<State<Tensor> *> GeneratorBase::states() const {
    std::vector<State<Tensor> *> states;
    for (const Declaration &declaration : declarations_)
        if (declaration.argument >= 0 && declaration.merge.empty() && declaration.tensor)
            states.push_back(static_cast<State<Tensor> *>(declaration.tensor));
    return states;
}

/// An output needs its own name: a binding finds the arrays of a program by their names.
void GeneratorBase::check_output_names(const Program &program) const {
    std::map<std::string, std::string> others; // name -> what has it
    for (const Argument &argument : program.arguments) others[program.value_name(argument.value)] = argument.inout ? "a state" : "an input";
    for (const Declaration &declared : declarations_) {
        if (declared.argument >= 0) continue;
        const auto [other, is_new] = others.emplace(declared.name, "another output");
        if (!is_new)
            throw UserError(statement(location_of(declared.declared),
                                      "the output " + subject_of(program.name, declared.name) + " has the name of " + other->second,
                                      "Rename one of them"));
    }
}

void GeneratorBase::finish() {
    generate();
    Program &program = Tracer::current().program();
    check_output_names(program);
    std::vector<Result> states;
    for (const Declaration &declared : declarations_) {
        const Location where = location_of(declared.where);
        const std::string subject = subject_of(program.name, declared.name);
        if (!declared.value().is_assigned()) throw UserError({where, subject, "must be assigned in generate()", "no assignment", ""});
        const ValueId value = declared.value().value();
        if (!(program.type(value) == declared.type))
            throw UserError(
                {where, subject, "must have the declared type " + to_string(declared.type), to_string(program.type(value)), ""});
        (declared.argument < 0 ? program.results : states).push_back({declared.name, value, false, declared.argument});
    }
    program.results.insert(program.results.end(), states.begin(), states.end());
}

State<Tensor> &add_state(const std::string &name, Dtype dtype, const Dimensions &shape, const Initializer &initial,
                         const std::source_location &where) {
    return GeneratorBase::current().added_states_.emplace_back(name, dtype, shape, initial, where);
}

int register_generator(const std::string &name, GeneratorFactory factory, GeneratorProgram program) {
    registry().emplace(name, Registered{std::move(factory), program});
    return 0;
}

std::vector<std::string> generator_names() {
    std::vector<std::string> names;
    for (const auto &[name, factory] : registry()) names.push_back(name);
    return names;
}

CalledGenerator::CalledGenerator(std::string name, std::vector<std::pair<std::string, Tensor>> outputs)
    : name_(std::move(name)), outputs_(std::move(outputs)) {
    if (outputs_.size() == 1) Tensor::operator=(outputs_[0].second);
}

Tensor CalledGenerator::output(const std::string &name, const std::source_location &where) const {
    std::vector<std::string> names;
    for (const auto &[known, tensor] : outputs_) {
        if (known == name) return tensor;
        names.push_back(known);
    }
    throw UserError(unknown_name(location_of(where), "output of '" + name_ + "'", name, suggestion(name, names)));
}

AssignedTensor *GeneratorBase::add_like(const Declaration &state, const std::string &prefix, const std::source_location &where) {
    const Dimensions shape(state.type.shape.begin(), state.type.shape.end());
    if (state.merge.empty()) return &added_states_.emplace_back(prefix + state.name, state.type.dtype, shape, state.initializer, where);
    return &added_statistics_.emplace_back(prefix + state.name, state.type.dtype, shape, state.initializer, state.merge, where);
}

CalledGenerator call_generator(const GeneratorFactory &factory, const std::string &name, const std::vector<Tensor> &inputs,
                               const Parameters &parameters, const std::source_location &where) {
    return at(where, [&] {
        Tracer &tracer = Tracer::current();
        GeneratorBase &generator = GeneratorBase::current();
        if (!generator.called_.insert(name).second)
            throw UserError(statement({}, "two calls of generators have the name '" + name + "'", "Give each call another name"));
        Program &program = tracer.program();
        const auto [called, states] = trace_generator(factory, name, parameters, tracer.builder().rulebook());
        const auto wanted = std::ranges::count(called.arguments, false, &Argument::inout);
        if (wanted != static_cast<ptrdiff_t>(inputs.size()))
            throw UserError({{}, name, "the number of inputs must be " + std::to_string(wanted), std::to_string(inputs.size()), ""});
        Node call{"call", {}, {}, {}, tracer.scope().empty() ? name : tracer.scope() + "/" + name, Role::primal, tracer.location()};
        std::vector<AssignedTensor *> added;
        std::vector<Type> types;
        auto input = inputs.begin();
        for (const Argument &argument : called.arguments) {
            if (argument.inout) added.push_back(generator.add_like(states[added.size()], name + ".", where));
            call.operands.push_back(argument.inout ? added.back()->value() : (input++)->value());
            types.push_back(program.type(call.operands.back()));
        }
        const Program bound = bind_symbols(call, called, types, program.symbols);
        program.programs.insert(program.programs.end(), called.programs.begin(), called.programs.end());
        const std::vector<ValueId> results = append_body(program, bound, call);
        std::vector<std::pair<std::string, Tensor>> outputs;
        auto state = added.begin();
        for (size_t i = 0; i < results.size(); i++) {
            if (called.results[i].argument < 0)
                outputs.emplace_back(called.results[i].name, Tensor(results[i]));
            else
                (*state++)->assign(TensorUse(Tensor(results[i]), where));
        }
        return CalledGenerator(name, std::move(outputs));
    });
}

std::vector<ParameterDescription> generator_parameters(const std::string &name, const Rulebook &rulebook) {
    const GeneratorFactory &factory = find_generator(name).factory;
    Tracer tracer(rulebook, name);
    return running(name, [&] { return construct(factory, name, {}).parameters; });
}

Program run_generator(const std::string &name, const Parameters &parameters, const Rulebook &rulebook) {
    const auto &[factory, kind] = find_generator(name);
    Traced traced = trace_generator(factory, name, parameters, rulebook);
    return kind == GeneratorProgram::step ? std::move(traced.program) : initial_state_program(name, traced.declarations, rulebook);
}

} // namespace scalide

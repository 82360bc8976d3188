#pragma once
#include "frontend/initializers.h"
#include <concepts>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

/// Write a program as a C++ class, as in Halide. generate() describes the program; the tool `scalide` compiles it.
///
///     class Step : public scalide::Generator<Step> {
///     public:
///         GeneratorParam<int> hidden{"hidden", 128};
///         Input<Tensor> x{"x", f32, {"b", 64}};
///         State<Tensor> w{"w", f32, {64, hidden}};
///         Output<Tensor> loss{"loss", f32, {}};
///         void generate() { loss = mean(square(dot(x, w)), {0, 1}); w = w - 0.1 * grad(loss, w); }
///     };
///     SCALIDE_REGISTER_GENERATOR(Step, step)
namespace scalide {

inline constexpr Dtype f32 = Dtype::f32, f16 = Dtype::f16, bf16 = Dtype::bf16, i32 = Dtype::i32, i8 = Dtype::i8, u8 = Dtype::u8,
                       i16 = Dtype::i16, u16 = Dtype::u16, i64 = Dtype::i64, u32 = Dtype::u32, f8_e4m3fn = Dtype::f8_e4m3fn,
                       f8_e5m2 = Dtype::f8_e5m2, boolean = Dtype::boolean;

class GeneratorBase;
class CalledGenerator;
using GeneratorFactory = std::function<std::unique_ptr<GeneratorBase>()>;
using Parameters = std::map<std::string, std::string>; ///< name -> text, from the command line

/// A parameter as `scalide generators` lists it.
struct ParameterDescription {
    std::string name, type, default_value;
};

/// Returns the text of a generator parameter from the command line, if there is one. Records the parameter.
std::optional<std::string> take_parameter(const ParameterDescription &parameter);
/// Returns the text of a parameter's value: the text that parse_parameter converts to it.
template<typename T>
std::string parameter_text(const T &value);
template<>
std::string parameter_text(const bool &value);
template<>
std::string parameter_text(const std::string &value);
template<>
std::string parameter_text(const Dtype &value);
/// Returns the values that a parameter of type T has, in words.
template<typename T>
std::string parameter_type();
template<>
std::string parameter_type<bool>();
template<>
std::string parameter_type<std::string>();
template<>
std::string parameter_type<Dtype>();
/// Converts the text of a parameter to a value. T is an integer or float type, bool (true, false), std::string or Dtype (f16). Throws
/// UserError if the text is not exactly such a value.
template<typename T>
T parse_parameter(const std::string &name, const std::string &text);
template<>
bool parse_parameter(const std::string &name, const std::string &text);
template<>
std::string parse_parameter(const std::string &name, const std::string &text);
template<>
Dtype parse_parameter(const std::string &name, const std::string &text);
/// Returns the index of `text` in `words`. Throws UserError if it is not there.
size_t parse_word_parameter(const std::string &name, const std::string &text, const std::vector<std::string> &words);

/// A parameter of a generator. The build sets it: `-p hidden=256`, `-p bias=false`, `-p dtype=bf16`, or PARAMETERS in CMake. T is an
/// integer or float type, bool, std::string or Dtype.
template<typename T>
class GeneratorParam {
public:
    /// Declares a parameter with its name and default value. Throws UserError if the given text is not a value of type T.
    GeneratorParam(const std::string &name, T default_value) requires(!std::is_enum_v<T> || std::is_same_v<T, Dtype>)
        : value_(std::move(default_value)) {
        const auto text = take_parameter({name, parameter_type<T>(), parameter_text<T>(value_)});
        if (text) value_ = parse_parameter<T>(name, *text);
    }
    /// Declares a parameter with named values: `GeneratorParam<Mode> mode{"mode", Mode::fast, {{"fast", Mode::fast}, {"exact",
    /// Mode::exact}}}`. Throws UserError for another name.
    GeneratorParam(const std::string &name, T default_value, const std::map<std::string, T> &values) : value_(std::move(default_value)) {
        std::vector<std::string> words;
        std::string type = "one of", default_word;
        for (const auto &[word, value] : values) {
            type += (words.empty() ? " " : ", ") + word;
            if (value == value_) default_word = word;
            words.push_back(word);
        }
        const auto text = take_parameter({name, type, default_word});
        if (text) value_ = values.at(words[parse_word_parameter(name, *text, words)]);
    }
    operator const T &() const { return value_; }
    /// Returns the value of the parameter.
    const T &value() const { return value_; }

private:
    T value_;
};

template<typename T>
class Input;
template<typename T>
class Constant;
template<typename T>
class State;
template<typename T>
class Statistic;
template<typename T>
class Output;

/// An argument that the program only reads: `Input<Tensor> x{"x", f32, {"b", 64}}`.
template<>
class Input<Tensor> : public Tensor {
public:
    Input(const std::string &name, Dtype dtype, const Dimensions &shape,
          const std::source_location &where = std::source_location::current());
};

/// A tensor that generate() assigns: a State, a Statistic or an Output. It can be moved, so a std::vector can hold it.
class AssignedTensor : public Tensor {
public:
    AssignedTensor(AssignedTensor &&other) noexcept;
    ~AssignedTensor();

protected:
    /// `initial` is the last argument of the program for a State or a Statistic, and empty for an Output. `initializer` gives its first
    /// value, and `merge` is the operator that joins the values that a Statistic is assigned.
    AssignedTensor(const std::string &name, const Type &type, const Tensor &initial, const std::source_location &where,
                   const Initializer &initializer = {}, const std::string &merge = "");
    void assign(const TensorUse &use);

private:
    friend CalledGenerator call_generator(const GeneratorFactory &, const std::string &, const std::vector<Tensor> &, const Parameters &,
                                          const std::source_location &);
    GeneratorBase *generator_;
    size_t declaration_;
};

/// An argument that does not change between runs, such as the weights of inference: `Constant<Tensor> w{"w", f32, {64, 8}}`. What the
/// program computes from constants alone is computed once, when the program is bound. It has no gradient.
template<>
class Constant<Tensor> : public Tensor {
public:
    Constant(const std::string &name, Dtype dtype, const Dimensions &shape,
             const std::source_location &where = std::source_location::current());
};

/// An argument that the program updates in place, such as parameters. After a run it has the value that generate() assigned last. If
/// generate() assigns nothing, it does not change. The assigned tensor must have the declared dtype and shape.
template<>
class State<Tensor> : public AssignedTensor {
public:
    State(const std::string &name, Dtype dtype, const Dimensions &shape,
          const std::source_location &where = std::source_location::current());
    /// Declares a state with a first value. The program of SCALIDE_REGISTER_INITIAL_STATE computes it.
    State(const std::string &name, Dtype dtype, const Dimensions &shape, const Initializer &initial,
          const std::source_location &where = std::source_location::current());
    State(State &&) = default;
    State &operator=(const TensorUse &value);
    State &operator=(const State &value) { return *this = TensorUse(value); }
};

/// A state that the program overwrites with what it observes, such as a history of largest magnitudes: no optimizer updates it. states()
/// does not list it. It always reads as its value before the run. If generate() assigns it several values, such as one for each
/// microbatch, the operator `merge` joins them; with "max" each element becomes the largest of its values.
template<>
class Statistic<Tensor> : public AssignedTensor {
public:
    Statistic(const std::string &name, Dtype dtype, const Dimensions &shape, const Initializer &initial = initializers::zeros(),
              const std::string &merge = "max", const std::source_location &where = std::source_location::current());
    Statistic(Statistic &&) = default;
    Statistic &operator=(const TensorUse &value);
    Statistic &operator=(const Statistic &value) { return *this = TensorUse(value); }
};

/// A result of the program. generate() must assign it a tensor of the declared dtype and shape, otherwise the tool reports a UserError.
template<>
class Output<Tensor> : public AssignedTensor {
public:
    Output(const std::string &name, Dtype dtype, const Dimensions &shape,
           const std::source_location &where = std::source_location::current());
    Output(Output &&) = default;
    Output &operator=(const TensorUse &value);
    Output &operator=(const Output &value) { return *this = TensorUse(value); }
};

/// The number of a tensor in an array of tensors, with the place in the source that uses it.
struct TensorIndex {
    template<std::integral T>
    TensorIndex(T index, const std::source_location &where = std::source_location::current())
        : index(static_cast<int64_t>(index)), where(where) {}
    int64_t index;
    std::source_location where;
};

/// Throws UserError if a number of tensors is negative, or if a tensor does not exist.
void check_tensor_count(const std::string &name, int64_t count, const std::source_location &where);
void check_tensor_index(const std::string &name, size_t count, const TensorIndex &index);

/// Several tensors of one type: the base class of Input<Tensor[]>, State<Tensor[]> and Output<Tensor[]>. Converts to std::vector<Tensor>.
template<typename T>
class TensorArray {
public:
    /// Declares `count` tensors: name.0, name.1 ... In C, a field or a function of tensor 0 is called name_0.
    TensorArray(const std::string &name, int64_t count, Dtype dtype, const Dimensions &shape,
                const std::source_location &where = std::source_location::current())
        : name_(name) {
        check_tensor_count(name, count, where);
        for (int64_t i = 0; i < count; i++) tensors_.emplace_back(name + "." + std::to_string(i), dtype, shape, where);
    }
    /// Declares `count` states with first values.
    TensorArray(const std::string &name, int64_t count, Dtype dtype, const Dimensions &shape, const Initializer &initial,
                const std::source_location &where = std::source_location::current()) requires(std::is_same_v<T, State<Tensor>>)
        : name_(name) {
        check_tensor_count(name, count, where);
        for (int64_t i = 0; i < count; i++) tensors_.emplace_back(name + "." + std::to_string(i), dtype, shape, initial, where);
    }
    /// Returns one tensor. Throws UserError if it does not exist.
    T &operator[](const TensorIndex &index) {
        check_tensor_index(name_, tensors_.size(), index);
        return tensors_[index.index];
    }
    /// Returns the number of tensors.
    size_t size() const { return tensors_.size(); }
    auto begin() { return tensors_.begin(); }
    auto end() { return tensors_.end(); }
    operator std::vector<Tensor>() const { return {tensors_.begin(), tensors_.end()}; }

private:
    std::string name_;
    std::vector<T> tensors_;
};

/// Several inputs of one type: `Input<Tensor[]> w{"w", layers, f32, {64, 64}}`. `w[0]` is an Input<Tensor> with the name w.0.
template<>
class Input<Tensor[]> : public TensorArray<Input<Tensor>> {
    using TensorArray::TensorArray;
};

/// Several states of one type: `State<Tensor[]> w{"w", layers, f32, {64, 64}}`. `w[0]` is a State<Tensor> with the name w.0.
template<>
class State<Tensor[]> : public TensorArray<State<Tensor>> {
    using TensorArray::TensorArray;
};

/// Several results of one type. `y[0]` is an Output<Tensor> with the name y.0.
template<>
class Output<Tensor[]> : public TensorArray<Output<Tensor>> {
    using TensorArray::TensorArray;
};

/// The base class of all generators. Derive from Generator instead.
class GeneratorBase {
public:
    GeneratorBase();
    virtual ~GeneratorBase();
    /// Describes the program. Assigns every Output, and each State or Statistic that changes.
    virtual void generate() = 0;
    /// Runs generate() and adds outputs and states to the program. Throws UserError if an output is not assigned, or if a tensor has
    /// another type than declared.
    void finish();

    /// A State, a Statistic or an Output, and the value that it had at the end of its life.
    struct Declaration {
        AssignedTensor *tensor;
        std::string name;
        Type type;
        int argument; ///< -1: an output
        std::source_location declared;
        std::source_location where; ///< of the last assignment, or of the declaration
        Initializer initializer;    ///< may be empty
        std::string merge;          ///< empty: not a Statistic
        Tensor merged = {};         ///< the value of a Statistic after the run, if it is assigned
        Tensor last = {};

        const Tensor &value() const { return merged.is_assigned() ? merged : tensor ? *tensor : last; }
    };
    /// Returns all declarations, in their order.
    const std::vector<Declaration> &declarations() const { return declarations_; }

protected:
    /// Returns all states of this generator, in the order of their declaration. Statistics are not among them.
    std::vector<State<Tensor> *> states() const;

private:
    friend class AssignedTensor;
    friend State<Tensor> &add_state(const std::string &, Dtype, const Dimensions &, const Initializer &, const std::source_location &);
    friend CalledGenerator call_generator(const GeneratorFactory &, const std::string &, const std::vector<Tensor> &, const Parameters &,
                                          const std::source_location &);

    static GeneratorBase &current();
    void check_output_names(const Program &program) const;
    /// Adds a state or statistic of a called generator.
    AssignedTensor *add_like(const Declaration &state, const std::string &prefix, const std::source_location &where);
    std::vector<Declaration> declarations_;
    std::deque<State<Tensor>> added_states_;         ///< of layers and of generators that this one called
    std::deque<Statistic<Tensor>> added_statistics_; ///< of generators that this one called
    std::set<std::string> called_;                   ///< the names of these generators
    GeneratorBase *outer_;
};

/// Declares a state inside generate(), for layers that are functions. The generator keeps the state, and states() lists it. Throws
/// UserError if an argument has the name.
State<Tensor> &add_state(const std::string &name, Dtype dtype, const Dimensions &shape, const Initializer &initial = {},
                         const std::source_location &where = std::source_location::current());

/// The base class of a generator: `class Step : public Generator<Step>`. Its members are parameters, inputs, states and outputs.
template<typename T>
class Generator : public GeneratorBase {};

/// The outputs of a generator that another generator called. If there is one output, the object is this tensor.
class CalledGenerator : public Tensor {
public:
    CalledGenerator(std::string name, std::vector<std::pair<std::string, Tensor>> outputs);
    /// Returns an output by name. Throws UserError if the generator has no output of this name.
    Tensor output(const std::string &name, const std::source_location &where = std::source_location::current()) const;

private:
    std::string name_;
    std::vector<std::pair<std::string, Tensor>> outputs_;
};

/// Does the work of call().
CalledGenerator call_generator(const GeneratorFactory &factory, const std::string &name, const std::vector<Tensor> &inputs,
                               const Parameters &parameters, const std::source_location &where);

/// Runs generator T inside generate(): `h = call<Layer>("layer0", {h}, {{"width", "64"}})`. `inputs` are in the order of their declaration.
/// Symbols of T get the extents of the inputs. A state `w` of T becomes the state `layer0.w` of this generator, and states() lists it.
/// `layer0` is also the scope of the operators. Throws UserError if the inputs do not fit, or if two calls have one name.
template<typename T>
CalledGenerator call(const std::string &name, const std::vector<Tensor> &inputs, const Parameters &parameters = {},
                     const std::source_location &where = std::source_location::current()) {
    return call_generator([] { return std::make_unique<T>(); }, name, inputs, parameters, where);
}

/// What a registered program computes: the generator's own program, or the first values of its states.
enum class GeneratorProgram : uint8_t { step, initial_state };

/// Registers a program of a generator with its name. If two programs have one name, run_generator throws UserError for it.
int register_generator(const std::string &name, GeneratorFactory factory, GeneratorProgram program = GeneratorProgram::step);
/// Returns the names of all registered generators, sorted.
std::vector<std::string> generator_names();
/// Returns the parameters of a registered generator, in the order of their declaration. Throws UserError for an unknown name.
std::vector<ParameterDescription> generator_parameters(const std::string &name, const Rulebook &rulebook);
/// Runs a registered generator and returns its program. Throws UserError for an unknown name or parameter, for an output that is not
/// assigned, and for a tensor with another type than declared.
Program run_generator(const std::string &name, const Parameters &parameters, const Rulebook &rulebook);

} // namespace scalide

/// Registers generator class `type` with the program name `name`. Use it once for each generator, outside of any namespace.
#define SCALIDE_REGISTER_GENERATOR(type, name)                                                                                             \
    static const int scalide_registered_##name = scalide::register_generator(#name, [] { return std::make_unique<type>(); });

/// Registers the program `name` that computes the first values of the states of generator class `type`: `name(key: u32[2])` has one result
/// for each state or statistic with an Initializer. State number i, from 0 on, gets the key random_fold_in(key, i).
#define SCALIDE_REGISTER_INITIAL_STATE(type, name)                                                                                         \
    static const int scalide_registered_##name = scalide::register_generator(                                                              \
        #name, [] { return std::make_unique<type>(); }, scalide::GeneratorProgram::initial_state);

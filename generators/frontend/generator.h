#pragma once
#include "frontend/tensor.h"
#include <functional>
#include <map>
#include <optional>

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
                       i16 = Dtype::i16, u16 = Dtype::u16, u32 = Dtype::u32, f8_e4m3fn = Dtype::f8_e4m3fn, f8_e5m2 = Dtype::f8_e5m2,
                       boolean = Dtype::boolean;

class GeneratorBase;
using Parameters = std::map<std::string, std::string>; ///< name -> text, from the command line

/// Returns the text of a generator parameter from the command line, if there is one. Marks the parameter as known.
std::optional<std::string> take_parameter(const std::string &name);
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
        if (const auto text = take_parameter(name)) value_ = parse_parameter<T>(name, *text);
    }
    /// Declares a parameter with named values: `GeneratorParam<Mode> mode{"mode", Mode::fast, {{"fast", Mode::fast}, {"exact",
    /// Mode::exact}}}`. Throws UserError for another name.
    GeneratorParam(const std::string &name, T default_value, const std::map<std::string, T> &values) : value_(std::move(default_value)) {
        std::vector<std::string> words;
        for (const auto &[word, value] : values) words.push_back(word);
        if (const auto text = take_parameter(name)) value_ = values.at(words[parse_word_parameter(name, *text, words)]);
    }
    operator const T &() const { return value_; }
    /// Returns the value of the parameter.
    const T &value() const { return value_; }

private:
    T value_;
};

/// One extent of a declared shape: a number, the name of a symbol ("b"), an expression over symbols, or a GeneratorParam.
struct Dimension {
    Dimension(int value) : extent(value) {}
    Dimension(const char *symbol) : extent(Extent::symbol(symbol)) {}
    Dimension(Extent value) : extent(std::move(value)) {}
    template<typename T>
    Dimension(const GeneratorParam<T> &param) : extent(static_cast<int64_t>(static_cast<T>(param))) {}
    Extent extent;
};

template<typename T>
class Input;
template<typename T>
class State;
template<typename T>
class Output;

/// An argument that the program only reads: `Input<Tensor> x{"x", f32, {"b", 64}}`.
template<>
class Input<Tensor> : public Tensor {
public:
    Input(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape);
};

/// An argument that the program updates in place, such as parameters. After a run it has the value that generate() assigned last. If
/// generate() assigns nothing, it does not change. The assigned tensor must have the declared dtype and shape.
template<>
class State<Tensor> : public Tensor {
public:
    State(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape);
    State &operator=(const Tensor &tensor);
    State(const State &) = delete;
};

/// A result of the program. generate() must assign it a tensor of the declared dtype and shape, otherwise the tool reports a UserError.
template<>
class Output<Tensor> : public Tensor {
public:
    Output(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape);
    Output &operator=(const Tensor &tensor);
    Output(const Output &) = delete;

private:
    friend class GeneratorBase;
    std::string name_;
    Type type_;
};

/// The base class of all generators. Derive from Generator instead.
class GeneratorBase {
public:
    GeneratorBase();
    virtual ~GeneratorBase();
    /// Describes the program. Assigns every Output, and each State that changes.
    virtual void generate() = 0;
    /// Runs generate() and adds outputs and states to the program. Throws UserError if an output is not assigned, or if a tensor has
    /// another type than declared.
    void finish();

protected:
    /// Returns all State members of this generator, in the order of their declaration.
    const std::vector<State<Tensor> *> &states() const { return states_; }

private:
    friend class Input<Tensor>;
    friend class State<Tensor>;
    friend class Output<Tensor>;
    static GeneratorBase &current();
    std::vector<State<Tensor> *> states_;
    std::vector<int> state_arguments_;
    std::vector<Output<Tensor> *> outputs_;
    GeneratorBase *outer_;
};

/// The base class of a generator: `class Step : public Generator<Step>`. Its members are parameters, inputs, states and outputs.
template<typename T>
class Generator : public GeneratorBase {};

using GeneratorFactory = std::function<std::unique_ptr<GeneratorBase>()>;
/// Registers a generator with the name of its program. If two generators have one name, run_generator throws UserError for it.
int register_generator(const std::string &name, GeneratorFactory factory);
/// Returns the names of all registered generators, sorted.
std::vector<std::string> generator_names();
/// Runs a registered generator and returns its program. Throws UserError for an unknown name or parameter, for an output that is not
/// assigned, and for a tensor with another type than declared.
Program run_generator(const std::string &name, const Parameters &parameters, const Rulebook &rulebook);

} // namespace scalide

/// Registers generator class `type` with the program name `name`. Use it once for each generator, outside of any namespace.
#define SCALIDE_REGISTER_GENERATOR(type, name)                                                                                             \
    static const int scalide_registered_##name = scalide::register_generator(#name, [] { return std::make_unique<type>(); });

#pragma once
#include "frontend/tensor.h"
#include <functional>
#include <map>
#include <optional>

/// The Halide-style way to write a program:
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

/// The text of a generator parameter given from outside, nothing where none was; marks the parameter as known.
std::optional<std::string> take_parameter(const std::string &name);
/// The value of such a text, exactly. Throws UserError. For integers and floats of C++, bool (true, false), std::string and Dtype (f16).
template<typename T>
T parse_parameter(const std::string &name, const std::string &text);
template<>
bool parse_parameter(const std::string &name, const std::string &text);
template<>
std::string parse_parameter(const std::string &name, const std::string &text);
template<>
Dtype parse_parameter(const std::string &name, const std::string &text);
/// The place in `words` of the one that is given. Throws UserError.
size_t parse_word_parameter(const std::string &name, const std::string &text, const std::vector<std::string> &words);

/// A value that is chosen when the program is generated: `-p hidden=256`, `-p bias=false`, `-p dtype=bf16`.
template<typename T>
class GeneratorParam {
public:
    GeneratorParam(const std::string &name, T default_value) requires(!std::is_enum_v<T> || std::is_same_v<T, Dtype>)
        : value_(std::move(default_value)) {
        if (const auto text = take_parameter(name)) value_ = parse_parameter<T>(name, *text);
    }
    /// One of a few: `GeneratorParam<Mode> mode{"mode", Mode::fast, {{"fast", Mode::fast}, {"exact", Mode::exact}}}`.
    GeneratorParam(const std::string &name, T default_value, const std::map<std::string, T> &values) : value_(std::move(default_value)) {
        std::vector<std::string> words;
        for (const auto &[word, value] : values) words.push_back(word);
        if (const auto text = take_parameter(name)) value_ = values.at(words[parse_word_parameter(name, *text, words)]);
    }
    operator const T &() const { return value_; }
    const T &value() const { return value_; }

private:
    T value_;
};

/// One extent of a declared shape: a number, a symbol's name, an expression over symbols, a GeneratorParam.
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

/// An argument that is only read.
template<>
class Input<Tensor> : public Tensor {
public:
    Input(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape);
};

/// An argument that the program overwrites: what is assigned last is what it holds afterwards (itself when nothing is).
template<>
class State<Tensor> : public Tensor {
public:
    State(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape);
    State &operator=(const Tensor &tensor);
    State(const State &) = delete;
};

/// A new array.
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

class GeneratorBase {
public:
    GeneratorBase();
    virtual ~GeneratorBase();
    virtual void generate() = 0;
    /// Runs generate() and writes outputs and states into the tracer's program.
    void finish();

protected:
    /// Every State of this generator, in order of declaration.
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

template<typename T>
class Generator : public GeneratorBase {};

using GeneratorFactory = std::function<std::unique_ptr<GeneratorBase>()>;
/// Makes a generator known under the name of its program. Two of one name: UserError when one of them is asked for.
int register_generator(const std::string &name, GeneratorFactory factory);
/// The names, sorted.
std::vector<std::string> generator_names();
/// Runs the registered generator and returns its program. Throws UserError for an unknown name or parameter, and for an output that
/// was not assigned or has another type than declared.
Program run_generator(const std::string &name, const Parameters &parameters, const Rulebook &rulebook);

} // namespace scalide

#define SCALIDE_REGISTER_GENERATOR(type, name)                                                                                             \
    static const int scalide_registered_##name = scalide::register_generator(#name, [] { return std::make_unique<type>(); });

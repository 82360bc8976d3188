#pragma once
#include "frontend/tensor.h"
#include <functional>

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

/// The text of a generator parameter given from outside, or `fallback`; marks it as used.
std::string take_parameter(const std::string &name, const std::string &fallback);
int64_t parse_integer_parameter(const std::string &name, const std::string &text);
double parse_number_parameter(const std::string &name, const std::string &text);

/// A value that is chosen when the program is generated: `-p hidden=256`.
template<typename T>
class GeneratorParam {
public:
    GeneratorParam(const std::string &name, T default_value) {
        const std::string text = take_parameter(name, std::to_string(default_value));
        if constexpr (std::is_integral_v<T>) {
            value_ = static_cast<T>(parse_integer_parameter(name, text));
        } else {
            value_ = static_cast<T>(parse_number_parameter(name, text));
        }
    }
    operator T() const { return value_; }

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

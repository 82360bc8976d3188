#include "frontend/generator.h"
#include "frontend/tracer.h"
#include "ir/words.h"
#include "rulebook/nearest.h"
#include <charconv>
#include <limits>
#include <set>

namespace scalide {

namespace {

thread_local GeneratorBase *generator_under_construction = nullptr;
thread_local const Parameters *given_parameters = nullptr;
thread_local std::set<std::string> *known_parameters = nullptr;

std::multimap<std::string, GeneratorFactory> &registry() {
    static std::multimap<std::string, GeneratorFactory> generators;
    return generators;
}

constexpr const char *no_generators = "This executable contains no generators; the name of a program file ends in .scl";

[[noreturn]] void refuse_parameter(const std::string &name, const std::string &requirement, const std::string &text) {
    throw UserError({{}, "parameter." + name, "must be " + requirement, "'" + text + "'", ""});
}

/// Returns the requirement for a text of this type, for messages.
template<typename T>
std::string number_words() {
    if (std::is_floating_point_v<T>) return "a number";
    return "an integer in [" + std::to_string(std::numeric_limits<T>::min()) + ", " + std::to_string(std::numeric_limits<T>::max()) + "]";
}

Type make_type(Dtype dtype, std::initializer_list<Dimension> shape) {
    Type type{dtype, {}};
    for (const Dimension &dimension : shape) type.shape.push_back(dimension.extent);
    return type;
}

/// While it exists, it provides the parameters of a generator under construction. The generator's constructor may throw.
class ParameterScope {
public:
    ParameterScope(const Parameters &given, std::set<std::string> &known) : outer_given_(given_parameters), outer_known_(known_parameters) {
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
    std::set<std::string> *outer_known_;
};

std::unique_ptr<GeneratorBase> construct(const GeneratorFactory &factory, const std::string &name, const Parameters &parameters) {
    std::set<std::string> known;
    const ParameterScope scope(parameters, known);
    std::unique_ptr<GeneratorBase> generator = factory();
    for (const auto &[parameter, text] : parameters) {
        if (!known.contains(parameter)) {
            const std::vector<std::string> names(known.begin(), known.end());
            const std::string near = nearest(parameter, names),
                              all = names.empty() ? "It has no parameters" : "Parameters: " + joined(names);
            throw UserError(statement({}, "generator '" + name + "' has no parameter '" + parameter + "'",
                                      near.empty() ? all : "Did you mean '" + near + "'? " + all));
        }
    }
    return generator;
}

} // namespace

std::optional<std::string> take_parameter(const std::string &name) {
    if (known_parameters) known_parameters->insert(name);
    if (!given_parameters || !given_parameters->contains(name)) return {};
    return given_parameters->at(name);
}

template<typename T>
T parse_parameter(const std::string &name, const std::string &text) {
    T value{};
    const char *end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) refuse_parameter(name, number_words<T>(), text);
    return value;
}

template signed char parse_parameter(const std::string &, const std::string &);
template unsigned char parse_parameter(const std::string &, const std::string &);
template short parse_parameter(const std::string &, const std::string &);
template unsigned short parse_parameter(const std::string &, const std::string &);
template int parse_parameter(const std::string &, const std::string &);
template long parse_parameter(const std::string &, const std::string &);
template long long parse_parameter(const std::string &, const std::string &);
template unsigned parse_parameter(const std::string &, const std::string &);
template unsigned long parse_parameter(const std::string &, const std::string &);
template unsigned long long parse_parameter(const std::string &, const std::string &);
template float parse_parameter(const std::string &, const std::string &);
template double parse_parameter(const std::string &, const std::string &);

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
    if (!dtype) refuse_parameter(name, "a dtype such as f32, bf16, f8_e4m3fn", text);
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

Input<Tensor>::Input(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape)
    : Tensor(Tracer::current().add_argument(name, make_type(dtype, shape), {})) {}

State<Tensor>::State(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape)
    : Tensor(Tracer::current().add_argument(name, make_type(dtype, shape), {-1, false, true})) {
    GeneratorBase &generator = GeneratorBase::current();
    generator.states_.push_back(this);
    generator.state_arguments_.push_back(static_cast<int>(Tracer::current().program().arguments.size()) - 1);
}

State<Tensor> &State<Tensor>::operator=(const Tensor &tensor) {
    Tensor::operator=(Tensor(tensor.value()));
    return *this;
}

Output<Tensor>::Output(const std::string &name, Dtype dtype, std::initializer_list<Dimension> shape)
    : name_(name), type_(make_type(dtype, shape)) {
    GeneratorBase::current().outputs_.push_back(this);
}

Output<Tensor> &Output<Tensor>::operator=(const Tensor &tensor) {
    Tensor::operator=(Tensor(tensor.value()));
    return *this;
}

GeneratorBase::GeneratorBase() : outer_(generator_under_construction) { generator_under_construction = this; }

GeneratorBase::~GeneratorBase() { generator_under_construction = outer_; }

GeneratorBase &GeneratorBase::current() {
    internal_check(generator_under_construction, "Input, State and Output are members of a Generator");
    return *generator_under_construction;
}

void GeneratorBase::finish() {
    generate();
    Program &program = Tracer::current().program();
    const auto expect = [&](const std::string &name, const Type &declared, const Tensor &tensor) {
        const Type &type = program.type(tensor.value());
        if (type == declared) return;
        throw UserError({{}, subject_of(program.name, name), "must have the declared type " + to_string(declared), to_string(type), ""});
    };
    for (const Output<Tensor> *output : outputs_) {
        if (output->value_ < 0) {
            throw UserError({{}, subject_of(program.name, output->name_), "must be assigned in generate()", "no assignment", ""});
        }
        expect(output->name_, output->type_, *output);
        program.results.push_back({output->name_, output->value()});
    }
    for (size_t i = 0; i < states_.size(); i++) {
        const ValueId argument = program.arguments[state_arguments_[i]].value;
        const std::string &name = program.value_name(argument);
        expect(name, program.type(argument), *states_[i]);
        program.results.push_back({name, states_[i]->value(), false, state_arguments_[i]});
    }
}

int register_generator(const std::string &name, GeneratorFactory factory) {
    registry().emplace(name, std::move(factory));
    return 0;
}

std::vector<std::string> generator_names() {
    std::vector<std::string> names;
    for (const auto &[name, factory] : registry()) names.push_back(name);
    return names;
}

Program run_generator(const std::string &name, const Parameters &parameters, const Rulebook &rulebook) {
    const auto [first, last] = registry().equal_range(name);
    const auto count = std::distance(first, last);
    if (count == 0) {
        const std::vector<std::string> known = generator_names();
        throw UserError(unknown_name({}, "generator", name, known.empty() ? no_generators : suggestion(name, known)));
    }
    if (count > 1) throw UserError(statement({}, "generator '" + name + "' is registered " + std::to_string(count) + " times"));
    Tracer tracer(rulebook, name);
    try {
        construct(first->second, name, parameters)->finish();
    } catch (const UserError &) {
        throw;
    } catch (const InternalError &) {
        throw;
    } catch (const std::exception &error) { // thrown by the user's own code
        throw UserError(statement({}, "generator '" + name + "' failed: generate() threw an exception: " + error.what()));
    }
    return std::move(tracer.program());
}

} // namespace scalide

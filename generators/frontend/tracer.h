#pragma once
#include "frontend/tensor.h"

namespace scalide {

/// The program under construction of this thread. One lives while a generator is built and run.
class Tracer {
public:
    Tracer(const Rulebook &rulebook, const std::string &program_name);
    ~Tracer();
    Tracer(const Tracer &) = delete;

    /// The innermost one of this thread. Throws UserError when there is none: tensors exist only inside a generator.
    static Tracer &current();

    Program &program() { return program_; }
    /// Another one for each tracer of the thread, from 1 on.
    int number() const { return number_; }
    Builder &builder() { return builder_; }
    const std::string &scope() const { return scope_; }
    void set_scope(const std::string &scope);

    Tensor add_argument(const std::string &name, const Type &type, const Argument &like);

private:
    Program program_;
    Builder builder_;
    std::string scope_;
    Tracer *outer_;
    int number_;
};

/// The program of `function` on arguments of these names and types, with results c0, c1 ...; traced inside of the current one, which gets
/// the sub-programs that it needs.
Program trace_program(const std::string &name, const std::vector<std::pair<std::string, Type>> &arguments,
                      const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &function);

} // namespace scalide

#pragma once
#include "frontend/tensor.h"

namespace scalide {

/// The program under construction in this thread. A tracer lives while a generator is constructed and run.
class Tracer {
public:
    Tracer(const Rulebook &rulebook, const std::string &program_name);
    ~Tracer();
    Tracer(const Tracer &) = delete;

    /// Returns the innermost tracer of this thread. Throws UserError outside of a generator: tensors exist only there.
    static Tracer &current();

    Program &program() { return program_; }
    /// Returns the number of this tracer, from 1 on. Each tracer of a thread has another number.
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

/// Traces `function` for arguments with these names and types. Returns its program, with results c0, c1 ... Sub-programs that it needs are
/// added to the current program.
Program trace_program(const std::string &name, const std::vector<std::pair<std::string, Type>> &arguments,
                      const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &function);

} // namespace scalide

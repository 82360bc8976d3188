#pragma once
#include "frontend/tensor.h"

namespace scalide {

/// A value of a State, and the line that declared or assigned it.
struct Assignment {
    ValueId value;
    Location where;
};

/// The program under construction in this thread. A tracer lives while a generator is constructed and run.
class Tracer {
public:
    Tracer(const Rulebook &rulebook, const std::string &program_name);
    /// Traces a region of a node of `outer` (ir/regions.h).
    explicit Tracer(Tracer &outer);
    ~Tracer();
    Tracer(const Tracer &) = delete;

    /// Returns the innermost tracer of this thread. Throws UserError outside of a generator: tensors exist only there.
    static Tracer &current();
    /// Returns true while a function that the user called runs.
    static bool is_placed();

    Program &program() { return program_; }
    const Program &program() const { return program_; }
    /// Returns the number of this tracer, from 1 on. Each tracer of a thread has another number.
    int number() const { return number_; }
    Builder &builder() { return builder_; }
    const std::string &scope() const { return scope_; }
    void set_scope(const std::string &scope);
    /// The place in the user's source of the function that runs, if one runs. New nodes get it.
    const Location &location() const { return location_; }
    void set_location(const Location &location);

    /// Returns a node with the scope and the location of the tracer.
    Node stamped(const std::string &op, Attributes attributes = {}) const;

    Tensor add_argument(const std::string &name, const Type &type, const Argument &like);
    /// Makes the symbol `name` the number of ranks of a group, and returns it.
    Extent declare_group(const std::string &name);

    /// Returns the value of a tensor of an enclosing program in this region: an argument, which is added at its first use. `number` is the
    /// tracer of the tensor. Empty if this is no region of that program.
    std::optional<ValueId> capture(int number, ValueId value);
    /// Returns the values of the enclosing program that capture() added as arguments, in their order.
    const std::vector<ValueId> &captured() const { return captured_; }

    /// Makes a tensor a State whose first value is its present value, an argument.
    void declare_state(Tensor &tensor);
    /// Throws UserError in a region: `action` has an effect outside of the region.
    void refuse_in_region(const std::string &action, const std::string &way_out) const;
    /// Gives a tensor another value. If it is a State, its earlier values are kept for gradients.
    void assign(Tensor &tensor, ValueId value);
    /// Returns the values that a State had, from the first to the last. Empty for other tensors.
    std::vector<Assignment> assignments_of(const Tensor &tensor) const;

private:
    void stamp();

    Program program_;
    Builder builder_;
    std::string scope_;
    Location location_;
    std::map<ValueId, std::vector<Assignment>> assignments_; ///< by the argument of the state
    Tracer *outer_;
    int number_;
    bool is_region_ = false;
    std::vector<ValueId> captured_;
    std::map<ValueId, ValueId> captures_; ///< the argument of each of them
};

/// Returns a place in the source of a user.
Location location_of(const std::source_location &where);

/// Adds the place and the scope of the current tracer to an error of a function that was called at `where`.
[[noreturn]] void rethrow_at(const UserError &error, const Location &where);

/// Runs a function of the DSL that the user called at `where`. New nodes get this place, and errors name it. A function that the DSL itself
/// calls keeps the line of the user's call. A function that the user passed has a tracer of its own, and so places of its own.
template<typename Function>
auto at(const std::source_location &where, const Function &function) {
    if (Tracer::is_placed()) return function();
    try {
        struct Placed {
            Tracer &tracer;
            ~Placed() { tracer.set_location({}); }
        } placed{Tracer::current()};
        placed.tracer.set_location(location_of(where));
        return function();
    } catch (const UserError &error) {
        rethrow_at(error, location_of(where));
    }
}

/// Traces `function` for arguments with these names and types. Returns its program, with results c0, c1 ... Sub-programs that it needs are
/// added to the current program.
Program trace_program(const std::string &name, const std::vector<std::pair<std::string, Type>> &arguments,
                      const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &function);

} // namespace scalide

#pragma once
#include "ir/program.h"

namespace scalide {

/// What can be told of the values of a program while it grows: which node makes them, and which are one number throughout.
class Facts {
public:
    explicit Facts(const Program &program) : program_(program) {}

    /// The node that makes `value`; nullptr for an argument. Valid until the next node is added.
    const Node *producer(ValueId value);
    /// The same when its operator is `op`.
    const Node *producer(ValueId value, std::string_view op);
    /// The number that every element of `value` is.
    std::optional<double> splat(ValueId value);
    /// The rank-0 value that `value` is a broadcast of, `value` itself when it has rank 0; -1 when there is none.
    ValueId scalar_source(ValueId value);
    /// True when no element can be -0, so that adding 0 changes no bit.
    bool never_negative_zero(ValueId value);
    /// True when no element can be below 0, nor -0; NaN it may be. Scales never are: arguments that are a `scale of x` are taken at their
    /// word.
    bool never_negative(ValueId value);

    const Program &program() const { return program_; }

private:
    struct Fact {
        int node = -1;
        std::optional<double> splat;
        bool never_negative_zero = false, never_negative = false;
    };

    const Fact &fact(ValueId value);
    void learn_arguments();
    void learn(const Node &node);
    void learn_sign(const Node &node, Fact &fact) const;

    const Program &program_;
    size_t nodes_seen_ = 0;
    std::vector<Fact> facts_;
};

/// True for 2^k, k an integer, whose reciprocal is a normal f32 too.
bool is_power_of_two(double value);

} // namespace scalide

#pragma once
#include "ir/program.h"

namespace scalide {

/// Facts about the values of a program while it grows: the node that computes a value, its sign, and whether all elements are one number.
class Facts {
public:
    explicit Facts(const Program &program) : program_(program) {}

    /// Returns the node that computes `value`, or nullptr for an argument. The pointer is valid until the next node is added.
    const Node *producer(ValueId value);
    /// Returns the same node if its operator is `op`, otherwise nullptr.
    const Node *producer(ValueId value, std::string_view op);
    /// Returns the one number that all elements of `value` are.
    std::optional<double> splat(ValueId value);
    /// Returns the rank-0 value of which `value` is a broadcast, or `value` itself if it has rank 0. Returns -1 if there is none.
    ValueId scalar_source(ValueId value);
    /// True if no element can be -0. Adding 0 then changes no bit.
    bool never_negative_zero(ValueId value);
    /// True if no element can be below 0 or -0; NaN is possible. Arguments that are a `scale of x` are trusted to be non-negative.
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

/// True for 2^k with an integer k, if the reciprocal is a normal f32 too.
bool is_power_of_two(double value);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include <map>

namespace scalide {

/// Returns the operand whose values the node only stores in another form: rounded, widened, reshaped, or multiplied or divided by a scalar
/// (a scale). Returns -1 if the node computes.
ValueId formed_operand(const Program &program, const std::vector<int> &producers, const Node &node);

/// The tensor of the user's program from which a value of a later pass comes: its rounded or rescaled copy, or its amax.
struct Origin {
    std::string tensor; ///< an argument of the program, or a value of the source
    Location location;  ///< of the argument or of the node
    bool is_argument = false;
};

/// Finds the origins of values in a program of base operators.
class Origins {
public:
    explicit Origins(const Program &program);
    Origin of(ValueId value) const;

private:
    const Program &program_;
    const std::vector<int> producers_;
    std::vector<int> arguments_; ///< by value: the index of the argument; -1: it is no argument
};

/// Returns the origins of all values by name. A result of the program has its own name.
std::map<std::string, Origin> origins_by_name(const Program &program);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include <map>

namespace scalide {

/// The operand of which a node makes another form: rounded, widened, reshaped, times or over a number of rank 0 (a scale). -1: it computes.
ValueId formed_operand(const Program &program, const std::vector<int> &producers, const Node &node);

/// The tensor that a user knows and that a value of a later pass is a form of: rounded, rescaled, its largest magnitude.
struct Origin {
    std::string tensor; ///< an argument of the program or a value of the source
    Location location;  ///< of the argument or of the node
    bool is_argument = false;
};

/// The origins of values of a program of base operators.
class Origins {
public:
    explicit Origins(const Program &program);
    Origin of(ValueId value) const;

private:
    const Program &program_;
    const std::vector<int> producers_;
    std::vector<int> arguments_; ///< by value: its number; -1: it is none
};

/// The origins of all values by name. A result of the program is known by its own name.
std::map<std::string, Origin> origins_by_name(const Program &program);

} // namespace scalide

#include "rulebook/random_key.h"
#include "rulebook/check_rule.h"
#include <algorithm>

namespace scalide {

ValueId random_key(const Program &program, const std::string &name) {
    const auto found =
        std::ranges::find(program.arguments, name, [&](const Argument &argument) { return program.value_name(argument.value); });
    const std::string got = found == program.arguments.end() ? "none" : to_string(program.type(found->value));
    if (got != to_string(Type{Dtype::u32, {2}}))
        throw UserError({{},
                         program.name + "." + name,
                         "must be an argument u32[2], from which random rounding draws",
                         got,
                         "Add it, another at every run, name another with key in the policy, or give the operator a state of the policy as "
                         "its second operand"});
    return found->value;
}

bool takes_key(const Rule &rule) {
    return rule.operands.size() == 2 && rule.operands[1].operand_class == OperandClass::bits && find_attribute(rule, "stream");
}

} // namespace scalide

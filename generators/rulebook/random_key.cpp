#include "rulebook/random_key.h"
#include "rulebook/check_rule.h"
#include <algorithm>

namespace scalide {

ValueId random_key(const Program &program, const std::string &name) {
    const auto found =
        std::ranges::find(program.arguments, name, [&](const Argument &argument) { return program.value_name(argument.value); });
    if (found == program.arguments.end())
        throw UserError({{},
                         program.name,
                         "random rounding needs an argument '" + name + "' of type u32[2]",
                         "",
                         "Add it and pass other bits in each run, name another argument with 'key' in the policy, or give the operator a "
                         "state of the policy as its second operand"});
    const Type &type = program.type(found->value), wanted{Dtype::u32, {2}};
    if (type != wanted)
        throw UserError({{}, program.name + "." + name, "the key of random rounding must be " + to_string(wanted), to_string(type), ""});
    return found->value;
}

bool takes_key(const Rule &rule) {
    return rule.operands.size() == 2 && rule.operands[1].operand_class == OperandClass::bits && find_attribute(rule, "stream");
}

} // namespace scalide

#include "interpret/composite.h"
#include "rulebook/instance.h"

namespace scalide {

Program program_of_value(const Rulebook &rulebook, const Rule &rule, const std::vector<Type> &operands, const Attributes &attributes) {
    Program program;
    program.name = rule.op;
    Builder builder(rulebook, program);
    std::vector<ScaledValue> values;
    for (const Type &type : operands) {
        values.push_back({add_value(program, "x", type)});
        program.arguments.push_back({values.back().value});
    }
    Attributes complete = attributes;
    infer_result_types(rule, operands, complete, rule.location);
    const std::vector<ValueId> results = Instance(builder, rule, values, complete).value();
    for (size_t i = 0; i < results.size(); i++) program.results.push_back({rule.result_name(i), results[i]});
    return program;
}

} // namespace scalide

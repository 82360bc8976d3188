#include "interpret/law_check.h"

namespace scalide {

void check_vector(LawCheck &check, const CheckVector &vector) {
    constexpr double tolerance = 1e-12; // test vectors have all the digits of an f64
    const LawCase law_case = vector_case(check.rule, vector);
    const std::vector<Array> results = interpret(program_of(law_case, check.rulebook), full_values(law_case), check.rulebook, Mode::real);
    for (size_t i = 0; i < results.size(); i++) {
        const std::string name = check.rule.result_name(i);
        const auto found = vector.values.find(name);
        if (found == vector.values.end()) continue;
        const Array expected{results[i].dtype, {static_cast<int64_t>(found->second.size())}, found->second};
        if (expected.data.size() != results[i].data.size())
            check.fail("check.vectors",
                       "the number of values of '" + name + "' must be that of the result, " + std::to_string(results[i].data.size()),
                       std::to_string(expected.data.size()));
        else if (const auto difference = find_difference(results[i], expected, tolerance, 0))
            check.fail("check.vectors", "the value must equal the expected value of the vector",
                       describe(law_case, name, results[i].shape, *difference));
    }
}

} // namespace scalide

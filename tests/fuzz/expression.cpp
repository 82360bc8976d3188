#include "expr/expression.h"
#include "fuzz/target.h"
#include <cstdlib>

// What parses prints, and what is printed parses to the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    try {
        const Expression expression = parse_expression(to_text(data, size), {"fuzz", 1, 1});
        if (!equal(expression, parse_expression(to_string(expression), {"printed", 1, 1}))) std::abort();
    } catch (const UserError &) {
    }
    return 0;
}

#include "fuzz/target.h"
#include "ir/text.h"
#include "ir/verify.h"
#include <cstdlib>

// The verifier takes any program that parses, or says why not; what it takes prints, and what is printed parses to an equal program.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    try {
        const Program program = parse_program(to_text(data, size), "fuzz.scl");
        verify(program, "");
        if (!equal(program, parse_program(to_string(program), "printed.scl"))) std::abort();
    } catch (const UserError &) {
    }
    return 0;
}

#include "fuzz/target.h"
#include "ir/text.h"
#include "ir/verify.h"
#include <cstdlib>

// A text that parses prints, and what is printed parses to an equal program; the verifier takes any program or says why not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    try {
        const Program program = parse_program(to_text(data, size), "fuzz.scl");
        if (!equal(program, parse_program(to_string(program), "printed.scl"))) std::abort();
        verify(program, "");
    } catch (const UserError &) {
    }
    return 0;
}

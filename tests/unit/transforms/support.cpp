#include "support.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/analysis/passes.h"
#include <sstream>

namespace scalide {

Program typed(const std::string &text) {
    const Program program = infer_types(parse_program("program p" + text, "t.scl"), rules());
    verify(program, "");
    return program;
}

std::string body(const Program &program) {
    std::istringstream text(to_string(program));
    std::string line, lines;
    while (std::getline(text, line)) {
        if (line.starts_with("  ")) lines += line.substr(2) + "\n";
    }
    return lines;
}

std::string simplified(const std::string &text) {
    const Program program = simplify(typed(text), rules());
    verify(program, "simplify");
    return body(program);
}

} // namespace scalide

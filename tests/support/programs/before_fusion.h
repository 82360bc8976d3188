#pragma once
#include "ir/text.h"
#include "support/programs/rules.h"
#include "transforms/analysis/passes.h"

namespace scalide {

/// Returns the program that `fuse` receives, with the dtypes of the text.
inline Program before_fusion(const std::string &text) {
    return simplify(expand(simplify(infer_types(parse_program(text, "test"), rules()), rules()), rules()), rules());
}

} // namespace scalide

#pragma once
#include "ir/text.h"
#include "support/programs/rules.h"
#include "transforms/passes.h"

namespace scalide {

/// A program as `fuse` gets it, in the dtypes that its text says.
inline Program before_fusion(const std::string &text) {
    return simplify(expand(simplify(infer_types(parse_program(text, "test"), rules()), rules()), rules()), rules());
}

} // namespace scalide

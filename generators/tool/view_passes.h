#pragma once
#include "ir/print.h"
#include "rulebook/rulebook.h"
#include "transforms/pipeline.h"
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace scalide {

/// A pass with the programs before and after it. The text before the first pass is the program as it was read.
struct PassChange {
    std::string pass;
    bool of_kernels = false; ///< the pass changes kernels, each alone; the lines are the texts of all kernels
    std::vector<PrintedLine> before, after;
};

/// Runs all passes up to the kernels of the main program, and the passes of the kernels. Their texts are the dumps of --dump-after.
std::vector<PassChange> record_passes(const Program &program, const Rulebook &rulebook, CompileOptions options);

/// Returns `lines` (text, number of the file, line, column), `files`, and for each pass its name, the numbers of its lines before and
/// after, and the `script` that turns one into the other: pairs of "=", "-" or "+" and a number of lines.
nlohmann::ordered_json to_json(const std::vector<PassChange> &passes);

} // namespace scalide

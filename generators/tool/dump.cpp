#include "tool/dump.h"
#include "ir/regions.h"
#include "transforms/pipeline.h"

namespace scalide {

namespace {

/// Names the saturation of each conversion that assign_numerics has placed. There it needs no attribute, but a conversion that is read from
/// a text is one of the program, which does not saturate.
Program with_named_saturation(Program program) {
    for (Program &kernel : program.programs) kernel = with_named_saturation(std::move(kernel));
    for (Node &node : program.nodes) {
        rewrite_regions(node, program, [](Program region) { return with_named_saturation(std::move(region)); });
        if (node.op != "convert_element_type" || node.attributes.contains("overflow")) continue;
        const Dtype dtype = program.type(node.results[0]).dtype;
        if (is_float(dtype) && is_narrow(dtype)) node.attributes["overflow"] = "saturate";
    }
    return program;
}

} // namespace

Program as_dumped(const std::string &pass, const Program &after) { return has_formats(pass) ? with_named_saturation(after) : after; }

} // namespace scalide

#include "transforms/fuse_shown.h"
#include <algorithm>
#include <array>

namespace scalide {

namespace {

struct ShownPart {
    std::string_view part, suffix;
};

constexpr std::array<ShownPart, 3> shown_parts = {{{"whole", ""}, {"its_data", ".data"}, {"its_scale", ".scale"}}};

std::string shown_name(const Node &node) {
    const std::string &part = node.attributes.at("part").word;
    return node.attributes.at("label").word + std::string(std::ranges::find(shown_parts, part, &ShownPart::part)->suffix);
}

/// `value`, or where no kernel could store it as it is, in f32.
ValueId storable(Program &program, ValueId value) {
    const Type &type = program.type(value);
    if (type.dtype != Dtype::f64) return value;
    Node convert;
    convert.op = "convert_element_type";
    convert.operands = {value};
    convert.attributes["dtype"] = std::string("f32");
    return add_node(program, convert, {{Dtype::f32, type.shape}})[0];
}

} // namespace

Program add_shown_results(const Program &program) {
    Program shown = program;
    for (const Node &node : program.nodes)
        if (node.op == "debug_callback") shown.results.push_back({shown_name(node), storable(shown, node.results[0])});
    return shown;
}

void drop_shown_results(Program &program, size_t count) {
    for (size_t i = count; i < program.results.size(); i++) {
        const auto &[name, value, scaled, argument, part] = program.results[i];
        if (!program.names.contains(program.values, name)) rename_value(program, value, name);
    }
    program.results.resize(count);
}

} // namespace scalide

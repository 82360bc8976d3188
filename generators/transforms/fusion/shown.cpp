#include "transforms/fusion/shown.h"
#include "ir/words.h"
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

/// Returns `value`, converted to f32 if it is f64, because kernels cannot store f64.
ValueId storable(Program &program, ValueId value) {
    const Type &type = program.type(value);
    if (type.dtype != Dtype::f64) return value;
    Node convert;
    convert.op = "convert_element_type";
    convert.operands = {value};
    convert.attributes["dtype"] = std::string("f32");
    return add_node(program, convert, {{Dtype::f32, type.shape}})[0];
}

/// Attribute of a program between add_shown_results() and drop_shown_results(): the labels of its last results.
constexpr const char *shown_setting = "shown";

} // namespace

Program add_shown_results(const Program &program) {
    Program shown = program;
    Attribute names{std::vector<Attribute>()};
    int number = 0;
    const auto fresh = [&] {
        std::string name;
        do {
            name = "shown." + std::to_string(number++);
        } while (std::ranges::find(program.results, name, &Result::name) != program.results.end());
        return name;
    };
    for (const Node &node : program.nodes) {
        if (node.op != "debug_callback") continue;
        const ValueId value = storable(shown, node.results[0]);
        shown.results.push_back({fresh(), value});
        names.list.push_back(shown_name(node));
    }
    if (!names.list.empty()) shown.attributes[shown_setting] = std::move(names);
    return shown;
}

void drop_shown_results(Program &program) {
    const auto setting = program.attributes.find(shown_setting);
    if (setting == program.attributes.end()) return;
    const std::vector<Attribute> names = setting->second.list;
    program.attributes.erase(shown_setting);
    const size_t count = program.results.size() - names.size();
    for (size_t i = 0; i < names.size(); i++) {
        const ValueId value = program.results[count + i].value;
        const std::string &name = names[i].word;
        if (is_name(name)) rename_value(program, value, name);
    }
    program.results.resize(count);
}

} // namespace scalide

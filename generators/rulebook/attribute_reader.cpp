#include "rulebook/attribute_types.h"
#include "rulebook/rule_reader.h"

namespace scalide {

namespace {

AttributeSpec read_spec(const std::string &name, const YamlValue &value) {
    AttributeSpec spec;
    spec.name = name;
    spec.location = value.location();
    if (value.is_text()) {
        spec.type = value.word(attribute_type_names());
    } else {
        const YamlFields fields = value.fields({{"type", Key::required}, {"of"}, {"default"}, {"optional"}, {"hint"}});
        spec.type = fields.find("type")->word(attribute_type_names());
        if (const YamlValue *of = fields.find("of")) spec.choices = of->texts();
        if (const YamlValue *fallback = fields.find("default")) spec.default_value = fallback->attribute();
        if (const YamlValue *optional = fields.find("optional")) spec.optional = optional->flag();
        if (const YamlValue *hint = fields.find("hint")) spec.hint = hint->text();
    }
    if ((spec.type == "word" || spec.type == "padding") == spec.choices.empty())
        value.fail(spec.choices.empty() ? "'type: " + spec.type + "' needs 'of: [...]', the list of words"
                                        : "'of' needs 'type: word' or 'type: padding'");
    if (spec.optional && spec.default_value) value.fail_relation("cannot have both 'default' and", "optional");
    const bool is_promoted = spec.type == "dtype" && spec.default_value && *spec.default_value == Attribute("promoted");
    if (!spec.default_value || is_promoted) return spec;
    const std::string problem = misfit(spec, *spec.default_value);
    if (!problem.empty()) value.called(value.path() + ".default").fail(problem, to_string(*spec.default_value));
    return spec;
}

} // namespace

std::vector<AttributeSpec> read_attribute_specs(const YamlValue &value) {
    std::vector<AttributeSpec> specs;
    for (const auto &[name, spec] : value.entries()) specs.push_back(read_spec(name, spec));
    return specs;
}

} // namespace scalide

#include "rulebook/complete_attributes.h"
#include "rulebook/attribute_types.h"
#include "rulebook/check_rule.h"
#include "rulebook/nearest.h"
#include "rulebook/promotion.h"
#include "rulebook/static_value.h"
#include <algorithm>

namespace scalide {

namespace {

class Completion {
public:
    Completion(const Rule &rule, const AttributeSpec &spec, const std::vector<Type> &operands, const Location &where)
        : rule_(rule), spec_(spec), operands_(operands), where_(where) {}

    Attribute complete(const Attribute *given) const {
        if (!given && !spec_.default_value) fail("missing attribute", "");
        const Attribute value = given ? *given : *spec_.default_value;
        if (!given && spec_.type == "dtype" && value == Attribute("promoted"))
            return operands_.empty() ? value : Attribute(std::string(to_string(promoted_dtype(operands_))));
        const std::string problem = misfit(spec_, value);
        if (!problem.empty()) fail(problem, to_string(value), spec_.hint);
        const auto form = forms().find(spec_.type);
        return form == forms().end() ? value : (this->*form->second)(value);
    }

private:
    using Form = Attribute (Completion::*)(const Attribute &) const;
    static const std::map<std::string, Form> &forms() {
        static const std::map<std::string, Form> forms = {{"axis", &Completion::axis},
                                                          {"axes", &Completion::axes},
                                                          {"permutation", &Completion::permutation},
                                                          {"axis_pairs", &Completion::axis_pairs},
                                                          {"shape", &Completion::extents},
                                                          {"extent", &Completion::extent}};
        return forms;
    }

    [[noreturn]] void fail(const std::string &requirement, const std::string &got, const std::string &way_out = "") const {
        throw UserError({where_, rule_.op + "." + spec_.name, requirement, got, way_out});
    }

    /// Returns the axis of operand `side`, counted from the front. Without operands, the axis stays as it is, and the constraints check it.
    int64_t counted_from_front(int64_t axis, size_t side) const {
        if (side >= operands_.size()) return axis;
        const int rank = operands_[side].rank();
        if (axis < -rank || axis >= rank) fail("axes must be less than the rank " + std::to_string(rank), std::to_string(axis));
        return axis < 0 ? axis + rank : axis;
    }

    std::vector<int64_t> distinct(const Attribute &value, size_t side) const {
        std::vector<int64_t> axes;
        for (const int64_t axis : to_integers(value)) axes.push_back(counted_from_front(axis, side));
        std::vector<int64_t> sorted = axes;
        std::ranges::sort(sorted);
        if (std::ranges::adjacent_find(sorted) != sorted.end()) fail("axes must be different", to_string(value));
        return axes;
    }

    Attribute axis(const Attribute &value) const { return counted_from_front(value.integer.value(), 0); }

    Attribute axes(const Attribute &value) const {
        std::vector<int64_t> axes = distinct(value, 0);
        std::ranges::sort(axes);
        return to_attribute(axes);
    }

    Attribute permutation(const Attribute &value) const { return to_attribute(distinct(value, 0)); }

    Attribute axis_pairs(const Attribute &value) const {
        const std::vector<Attribute> sides =
            value.list.empty() ? std::vector<Attribute>(2, to_attribute(std::vector<int64_t>())) : value.list;
        if (sides[0].list.size() != sides[1].list.size()) fail("must list the same number of axes of both operands", to_string(value));
        return std::vector<Attribute>{to_attribute(distinct(sides[0], 0)), to_attribute(distinct(sides[1], 1))};
    }

    Attribute extent(const Attribute &value) const { return to_extent(value); }

    Attribute extents(const Attribute &value) const { return to_attribute(to_extents(value)); }

    const Rule &rule_;
    const AttributeSpec &spec_;
    const std::vector<Type> &operands_;
    const Location &where_;
};

} // namespace

void complete_attributes(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where) {
    for (const auto &[name, value] : attributes) {
        if (find_attribute(rule, name)) continue;
        std::vector<std::string> names;
        for (const AttributeSpec &spec : rule.attributes) names.push_back(spec.name);
        throw UserError(unknown_name(where, "attribute", rule.op + "." + name,
                                     names.empty() ? "'" + rule.op + "' has no attributes" : suggestion(name, names)));
    }
    for (const AttributeSpec &spec : rule.attributes) {
        const auto given = attributes.find(spec.name);
        if (spec.optional && given == attributes.end()) continue;
        attributes[spec.name] = Completion(rule, spec, operands, where).complete(given == attributes.end() ? nullptr : &given->second);
    }
}

} // namespace scalide

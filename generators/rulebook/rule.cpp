#include "rulebook/rule.h"
#include <algorithm>

namespace scalide {

namespace {

template<typename Spec>
int index_of(const std::vector<Spec> &specs, const std::string &name) {
    const auto found = std::ranges::find(specs, name, &Spec::name);
    return found == specs.end() ? -1 : static_cast<int>(found - specs.begin());
}

} // namespace

bool Rule::is_plain() const { return std::ranges::all_of(results, &ResultSpec::plain); }

std::string Rule::result_name(size_t index) const {
    const ResultSpec &spec = result(index);
    return spec.each ? spec.name + std::to_string(index) : spec.name;
}

const std::vector<Expression> &Rule::scale_of(const std::string &strategy) const {
    for (const std::string &key : {strategy, std::string("l2"), std::string()}) {
        const auto found = scale.find(key);
        if (found != scale.end()) return found->second;
    }
    throw InternalError("internal error: rule " + op + " has no scale");
}

int Rule::operand_index(const std::string &name) const { return index_of(operands, name); }

int Rule::result_index(const std::string &name) const { return index_of(results, name); }

} // namespace scalide

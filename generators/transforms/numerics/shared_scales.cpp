#include "transforms/numerics/shared_scales.h"
#include "ir/regions.h"

namespace scalide {

namespace {

void fill_groups(Program &program, const Rulebook &rulebook, const Attribute &groups) {
    for (Node &node : program.nodes) {
        rewrite_regions(node, program, [&](Program region) {
            fill_groups(region, rulebook, groups);
            return region;
        });
        const Rule *rule = rulebook.find(node.op);
        if (rule == nullptr) continue;
        for (const AttributeSpec &attribute : rule->attributes)
            if (attribute.type == "groups" && node.attributes[attribute.name].list.empty()) node.attributes[attribute.name] = groups;
    }
}

} // namespace

void share_scales(Program &program, const Rulebook &rulebook) {
    Extents groups;
    for (const Symbol &symbol : program.symbols)
        if (symbol.source == SymbolSource::ranks) groups.push_back(Extent::symbol(symbol.name));
    if (!groups.empty()) fill_groups(program, rulebook, to_attribute(groups));
}

} // namespace scalide

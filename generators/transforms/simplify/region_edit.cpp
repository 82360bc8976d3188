#include "transforms/simplify/region_edit.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "transforms/analysis/splice.h"
#include <algorithm>
#include <numeric>

namespace scalide {

namespace {

template<typename List>
void erase_at(List &list, size_t i) {
    list.erase(list.begin() + static_cast<ptrdiff_t>(i));
}

} // namespace

RegionEdit::RegionEdit(const Node &source, std::vector<bool> is_read, Builder &into, Facts &known)
    : node(source), builder(into), facts(known), is_read_(std::move(is_read)), given_(is_read_.size(), -1), same_(is_read_.size()),
      original_(is_read_.size()), stacks_(is_read_.size(), -1) {
    std::iota(same_.begin(), same_.end(), 0);
    std::iota(original_.begin(), original_.end(), 0);
    for (const Region &region : source.regions) regions.push_back(*region);
}

bool RegionEdit::is_loop() const { return find_region_kind(node.op)->is_loop; }

ValueId RegionEdit::operand(size_t argument) const {
    return body().arguments[argument].supply == Supply::step ? -1 : node.operands[operand_of(node, body(), argument)];
}

bool RegionEdit::is_capture(size_t argument) const { return scalide::is_capture(body().arguments[argument]); }

void RegionEdit::drop_argument(size_t argument) { erase_argument(node, regions, argument); }

void RegionEdit::drop_result(size_t result) {
    const int carry = body().results[result].argument;
    if (carry >= 0) body().arguments[static_cast<size_t>(carry)].inout = false;
    for (Program &region : regions)
        if (!is_loop() || &region == &body()) erase_at(region.results, result);
    erase_at(original_, result);
}

void RegionEdit::give(size_t result, ValueId value) {
    given_[original_[result]] = value;
    drop_result(result);
}

void RegionEdit::merge_results(size_t result, size_t same) {
    same_[original_[result]] = original_[same];
    if (is_read(result)) is_read_[original_[same]] = true;
    drop_result(result);
}

size_t RegionEdit::add_capture(ValueId operand, const std::string &name) {
    node.operands.push_back(operand);
    for (Program &region : regions) region.arguments.push_back({.value = add_value(region, name, builder.type(operand))});
    return argument_count() - 1;
}

ValueId RegionEdit::step_numbers() {
    const Extents shape{node.attributes.at("length").integer};
    return builder.add_one("iota", {}, {{"dtype", std::string("i32")}, {"shape", to_attribute(shape)}, {"dimension", int64_t(0)}});
}

size_t RegionEdit::add_element(ValueId operand, const std::string &name) {
    Type type = builder.type(operand);
    type.shape.erase(type.shape.begin());
    node.operands.push_back(operand);
    body().arguments.push_back({.value = add_value(body(), name, type), .supply = Supply::each});
    return argument_count() - 1;
}

ValueId RegionEdit::add_stack(ValueId value) {
    const auto is_same = [&](const Result &result) { return result.argument < 0 && result.value == value; };
    const auto result = static_cast<size_t>(std::ranges::find_if(body().results, is_same) - body().results.begin());
    if (result == result_count()) {
        add_result(body(), body().value_name(value), value);
        original_.push_back(is_read_.size());
        same_.push_back(is_read_.size());
        is_read_.push_back(true);
        given_.push_back(-1);
        stacks_.push_back(-1);
    }
    const size_t original = original_[result];
    is_read_[original] = true;
    if (stacks_[original] < 0) {
        const Type type = stacked(body().type(value), node.attributes.at("length").integer);
        stacks_[original] = add_value(builder.program(), body().value_name(value), type);
    }
    return stacks_[original];
}

void RegionEdit::add_after(const std::function<void()> &add) {
    std::vector<Node> &nodes = builder.program().nodes;
    const auto first = static_cast<ptrdiff_t>(nodes.size());
    add();
    after_.insert(after_.end(), nodes.begin() + first, nodes.end());
    nodes.erase(nodes.begin() + first, nodes.end());
}

void RegionEdit::make_step(size_t argument) {
    erase_at(node.operands, operand_of(node, body(), argument));
    body().arguments[argument].supply = Supply::step;
}

void RegionEdit::make_capture(size_t argument, ValueId operand) {
    node.operands[operand_of(node, body(), argument)] = operand;
    Argument &made = body().arguments[argument];
    made.supply = Supply::run;
    body().values[made.value].type = builder.type(operand);
}

void RegionEdit::replace_argument(Program &region, size_t argument,
                                  const std::function<ValueId(Builder &builder, ValueId argument)> &make) {
    const ValueId old = region.arguments[argument].value;
    scalide::replace_argument(region, builder.rulebook(), old, node, [&](Builder &inner) { return make(inner, old); });
}

void RegionEdit::remove_dead_nodes() {
    for (Program &region : regions) region = scalide::remove_dead_nodes(std::move(region));
}

std::vector<ValueId> RegionEdit::finish(const std::vector<Value> &made) {
    if (result_count() > 0) {
        node.regions.clear();
        for (Program &region : regions) node.regions.push_back(std::make_shared<const Program>(std::move(region)));
        node.results.clear();
        for (const size_t original : original_) {
            ValueId &result = given_[original] = stacks_[original];
            if (result < 0) result = add_value(builder.program(), made[original].name, made[original].type, made[original].part);
            node.results.push_back(result);
        }
        builder.program().nodes.push_back(std::move(node));
    }
    for (Node &after : after_) builder.program().nodes.push_back(std::move(after));
    std::vector<ValueId> values;
    for (size_t i = 0; i < made.size(); i++) {
        size_t same = i;
        while (same_[same] != same) same = same_[same];
        values.push_back(given_[same]);
    }
    return values;
}

} // namespace scalide

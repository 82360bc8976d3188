#include "transforms/numerics/statistics_sites.h"
#include "expr/base_operators.h"
#include "ir/dtype.h"
#include "ir/regions.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/origins.h"
#include "transforms/numerics/policy_match.h"
#include <algorithm>
#include <set>
#include <utility>

namespace scalide {

namespace {

/// True for a conversion to a format with fewer bits than the operand. The format of block scales has only powers of two.
bool narrows(const Program &program, const Node &node) {
    if (node.op != "convert_element_type") return false;
    const Dtype to = program.type(node.results[0]).dtype, from = program.type(node.operands[0]).dtype;
    return is_float(to) && is_float(from) && is_narrow(to) && !is_narrow(from) && format_of(to).mantissa_bits > 0;
}

bool is_matmul(const Node &node) { return node.op == "dot_general" || node.op == "conv_general_dilated"; }

class Sites {
public:
    Sites(const Program &program, const Directions &directions, const Rulebook &rulebook, const std::map<std::string, NamedTensor> &source)
        : program_(program), rulebook_(rulebook), source_(source), directions_(directions), origins_(program, directions_),
          producers_(producers(program)), readers_(program.values.size()) {
        for (size_t value = 0; value < program.values.size(); value++)
            by_name_.emplace(program.values[value].name, static_cast<ValueId>(value));
        for (const Node &node : program.nodes)
            for (size_t i = 0; i < node.operands.size(); i++) readers_[node.operands[i]].push_back({&node, i});
    }

    std::vector<StatisticsSite> find() {
        for (const Argument &argument : program_.arguments) add_argument(argument);
        add_nodes();
        for (const Result &result : program_.results) add_result(result);
        drop_repeated();
        return std::move(sites_);
    }

    std::vector<StatisticsSite> find_in_body() {
        is_body_ = true;
        add_nodes();
        drop_repeated();
        return std::move(sites_);
    }

private:
    struct Reader {
        const Node *node;
        size_t operand;
    };

    void add_nodes() {
        find_products();
        find_names();
        for (const Node &node : program_.nodes) {
            if (narrows(program_, node)) add_rounded(node);
            if (is_matmul(node)) add_matmul(node);
            for (const ValueId result : node.results) add_computed(node, result);
        }
    }

    bool is_array(ValueId value) const { return is_float(program_.type(value).dtype) && size_of(program_.type(value).dtype) <= 4; }

    const Node *producer(ValueId value) const { return producers_[value] < 0 ? nullptr : &program_.nodes[producers_[value]]; }

    NamedTensor source_of(const std::string &tensor, const Node *node) const {
        const auto found = source_.find(tensor);
        if (found != source_.end()) return found->second;
        return node == nullptr ? NamedTensor() : NamedTensor{node->op, node->scope, directions_.of(*node), node->location};
    }

    /// The value without moves and broadcasts.
    ValueId unmoved(ValueId value) const {
        for (const Node *node = producer(value); node != nullptr && moves_one_array(*node); node = producer(value))
            value = node->operands[0];
        return value;
    }

    /// Of a conversion, its operand; of another value, the value without moves and limits. The value itself: it is no copy.
    ValueId copied(ValueId value) const {
        const Node *node = producer(value);
        return node != nullptr && node->op == "convert_element_type" ? node->operands[0] : unlimited(unmoved(value));
    }

    /// The tensor itself, without moves, conversions and limits.
    ValueId root_of(ValueId value) const {
        for (ValueId before = copied(value); before != value; before = copied(value)) value = before;
        return value;
    }

    /// The node that makes the tensor: of a sum times the scales of its operands, the matmul.
    const Node *maker_of(ValueId root) const {
        const auto matmul = matmuls_.find(root);
        return matmul == matmuls_.end() ? producer(root) : matmul->second;
    }

    void find_products() {
        for (const Node &node : program_.nodes) {
            if (!is_matmul(node) || (!is_data(node.operands[0]) && !is_data(node.operands[1]))) continue;
            const ValueId product = times_scales(node.results[0]);
            products_.emplace(node.results[0], product);
            if (product >= 0) matmuls_.emplace(root_of(product), &node);
        }
    }

    void find_names() {
        for (const Node &node : program_.nodes)
            for (const ValueId result : node.results)
                if (source_.contains(program_.value_name(result)) && is_array(result)) named_.try_emplace(root_of(result), result);
    }

    bool is_constant_factor(ValueId value) const {
        const Node *node = producer(unmoved(value));
        return node != nullptr && node->op == "constant";
    }

    Extent elements_of(ValueId value) const { return element_count(program_.type(value).shape); }

    /// The first tensor of the user that is a copy of the value, perhaps moved. Empty: there is none.
    std::string moved_name(ValueId root) const {
        const auto found = named_.find(root);
        return found != named_.end() && elements_of(root) == elements_of(found->second) ? program_.value_name(found->second) : "";
    }

    /// A tensor of the user whose name a pass lost, if only one can be it: with the same operator, place and number of elements. x / 4 may
    /// have become x * 0.25. Empty: there is none, or there are several.
    std::string lost_name(const Node &maker, ValueId root) const {
        const auto is_same_op = [&](const std::string &op) {
            return op == maker.op || (maker.op == "mul" && op == "div") || (maker.op == "div" && op == "mul");
        };
        std::string found;
        for (const auto &[tensor, named] : source_) {
            const bool is_same = is_same_op(named.op) && named.scope == maker.scope && named.direction == directions_.of(maker) &&
                                 named.location.line == maker.location.line && named.location.column == maker.location.column &&
                                 named.location.file == maker.location.file && named.elements == elements_of(root);
            if (!is_same || by_name_.contains(tensor)) continue;
            if (!found.empty()) return "";
            found = tensor;
        }
        return found;
    }

    /// A tensor without a name of the user has the name of its operator. Several such tensors have numbers. A tensor times a constant is
    /// another tensor.
    void name(StatisticsSite &site) {
        const ValueId root = root_of(site.value);
        const Node *maker = maker_of(root);
        const bool is_product = maker != nullptr && (maker->op == "mul" || maker->op == "div") &&
                                (is_constant_factor(maker->operands[0]) || is_constant_factor(maker->operands[1]));
        if (is_product && site.tensor != program_.value_name(root) && site.scale < 0 && site.factor < 0 &&
            !source_.contains(program_.value_name(root)))
            site.tensor = maker->scope + (maker->scope.empty() ? "" : "/") + maker->op;
        if (maker == nullptr || source_.contains(site.tensor)) return;
        const std::string moved = moved_name(root);
        if (const std::string lost = moved.empty() ? lost_name(*maker, root) : moved; !lost.empty()) {
            site.tensor = lost;
            site.source.op = source_.at(lost).op;
            return;
        }
        std::vector<ValueId> &same = roots_[site.tensor];
        const auto number = std::ranges::find(same, root) - same.begin();
        if (number == std::ssize(same)) same.push_back(root);
        if (number > 0) site.tensor += "." + std::to_string(number + 1);
    }

    void add(StatisticsSite site) {
        name(site);
        const auto [known, is_new] = index_.try_emplace({site.tensor, site.format}, sites_.size());
        if (is_new) return sites_.push_back(std::move(site));
        StatisticsSite &before = sites_[known->second];
        before.is_stored |= site.is_stored;
        if (before.use.empty()) before.use = site.use;
    }

    /// The value is the tensor itself, and nothing rounds it here.
    StatisticsSite plain(const std::string &tensor, ValueId value, const std::string &use) const {
        return {.tensor = tensor,
                .source = source_of(tensor, maker_of(root_of(value))),
                .use = use,
                .format = program_.type(value).dtype,
                .value = value,
                .data = value,
                .stored = value};
    }

    void add_argument(const Argument &argument) {
        const Value &value = program_.values[argument.value];
        if (argument.initial || value.part.is_scale() || argument.part.is_scale() || !is_array(argument.value)) return;
        StatisticsSite site = plain(argument.part.array(value.name), argument.value, "argument");
        site.is_argument = true;
        site.source.location = argument.location;
        if (argument.part.kind == ArrayPart::Kind::data) site.scale = scale_of_argument(argument);
        site.is_data = site.scale >= 0;
        add(std::move(site));
    }

    /// The scale directly follows the data. A scale with axes belongs to rows or blocks.
    ValueId scale_of_argument(const Argument &argument) const {
        const ValueId scale = (&argument + 1)->value;
        return program_.type(scale).is_scalar() ? scale : -1;
    }

    void add_rounded(const Node &node) {
        const ValueId stored = node.results[0];
        const Origin origin = origins_.of(stored);
        StatisticsSite site = plain(origin.tensor, node.operands[0], "");
        site.format = program_.type(stored).dtype;
        site.stored = stored;
        site.data = unlimited(node.operands[0]);
        for (ValueId value = node.operands[0]; value != site.data;) {
            const Node &before = *producer(value);
            const bool is_random = before.op == "round_by_bits";
            (is_random ? site.rounds_at_random : site.makes_infinities_finite) = true;
            value = is_random ? before.operands[0] : limited_operand(program_, producers_, before)->operand;
        }
        site.makes_infinities_finite |= overflow_of(node.attributes) == Overflow::clip;
        find_scale(node, site);
        const Origin undivided = origins_.of(site.value);
        if (!source_.contains(site.tensor) && source_.contains(undivided.tensor)) {
            site.tensor = undivided.tensor;
            site.source = source_of(site.tensor, nullptr);
        }
        const Reader reader = reader_of(stored);
        if (reader.node != nullptr) {
            site.use = is_matmul(*reader.node) ? use_of(reader) : "stored";
            if (!reader.node->scope.empty()) site.source.scope = reader.node->scope;
            if (site.source.op.empty()) site.source.location = reader.node->location; // an argument has no line of its own
            site.source.direction = directions_.of(*reader.node);
        }
        add(std::move(site));
    }

    /// Returns the value before it is limited to the numbers of a format, and before it is rounded by bits.
    ValueId unlimited(ValueId value) const {
        while (const Node *node = producer(value)) {
            const auto limited = limited_operand(program_, producers_, *node);
            if (!limited && node->op != "round_by_bits") break;
            value = limited ? limited->operand : node->operands[0];
        }
        return value;
    }

    ValueId scalar_before(ValueId value) const {
        const Node *node = producer(value);
        if (node != nullptr && node->op == "broadcast_in_dim") value = node->operands[0];
        return program_.type(value).is_scalar() ? value : -1;
    }

    /// A value that is a component of a scaled tensor was divided by its scale, or multiplied by the inverse.
    void find_scale(const Node &conversion, StatisticsSite &site) const {
        site.value = site.data;
        bool is_data = program_.values[conversion.results[0]].part.kind == ArrayPart::Kind::data;
        for (ValueId value = conversion.operands[0]; value >= 0; value = limited_before(value))
            is_data |= program_.values[value].part.kind == ArrayPart::Kind::data;
        const Node *node = producer(site.data);
        if (node == nullptr || (node->op != "div" && node->op != "mul")) return find_argument_scale(site);
        if (!is_data && !divides_by_scale(*node)) return;
        site.value = node->operands[0];
        (node->op == "div" ? site.scale : site.factor) = scalar_before(node->operands[1]);
    }

    /// True for a scalar that a policy keeps as state: the scale of delayed scaling.
    bool is_state(ValueId value) const {
        return program_.type(value).is_scalar() && std::ranges::any_of(program_.arguments, [&](const Argument &argument) {
                   return argument.value == value && argument.initial.has_value();
               });
    }

    /// True for a scale, a product of scales, and what has their shape by a broadcast.
    bool is_scale(ValueId value) const {
        const ValueId from = unmoved(value);
        const Node *node = producer(from);
        return program_.values[from].part.is_scale() || is_state(from) ||
               (node != nullptr && node->op == "mul" && is_scale(node->operands[0]) && is_scale(node->operands[1]));
    }

    bool is_inverse_scale(ValueId value) const {
        const Node *node = producer(unmoved(value));
        return node != nullptr && (node->op == "divide_no_nan" || node->op == "div") && is_scale(node->operands[1]);
    }

    /// True if the value is computed from magnitudes of a tensor, in a few steps.
    bool measures(ValueId value, ValueId tensor) const {
        const ValueId root = root_of(tensor);
        std::set<ValueId> reached, next{value};
        for (int step = 0; step < 12 && !next.empty(); step++) {
            reached.insert(next.begin(), next.end());
            for (const ValueId from : std::exchange(next, {})) {
                const Node *node = producer(from);
                if (node == nullptr) continue;
                // The largest number of a tensor that is not negative needs no magnitudes.
                const bool is_measure = node->op == "abs" || node->op == "reduce_max";
                if (is_measure && root_of(node->operands[0]) == root) return true;
                for (const ValueId operand : node->operands)
                    if (!reached.contains(operand)) next.insert(operand);
            }
        }
        return false;
    }

    /// True if the node divides a tensor by its scale. Scales of rows have axes, and are no parts of a tensor.
    bool divides_by_scale(const Node &node) const {
        if (node.op == "mul") return is_inverse_scale(node.operands[1]);
        if (node.op != "div" || is_scale(node.operands[1])) return node.op == "div";
        return scalar_before(node.operands[1]) < 0 && !source_.contains(program_.value_name(node.results[0])) &&
               measures(node.operands[1], node.operands[0]);
    }

    /// A copy of the data of a scaled argument is in units of the scale of the argument.
    void find_argument_scale(StatisticsSite &site) const {
        const ValueId root = root_of(site.value);
        for (const Argument &argument : program_.arguments) {
            if (argument.value != root || argument.part.kind != ArrayPart::Kind::data) continue;
            site.scale = scale_of_argument(argument);
            site.is_data = site.scale >= 0;
        }
    }

    ValueId limited_before(ValueId value) const {
        const Node *node = producer(value);
        const ValueId before = node == nullptr ? value : unlimited(value);
        return before == value ? -1 : before;
    }

    /// Returns a matmul that reads the value, perhaps moved or widened; otherwise the first other reader.
    Reader reader_of(ValueId value) const {
        Reader first = {};
        for (const Reader &reader : readers_[value]) {
            const bool passes = only_moves(*reader.node) || (reader.node->op == "convert_element_type" && !narrows(program_, *reader.node));
            const Reader found = passes ? reader_of(reader.node->results[0]) : reader;
            if (found.node != nullptr && is_matmul(*found.node)) return found;
            if (first.node == nullptr) first = found;
        }
        return first;
    }

    std::string use_of(const Reader &reader) const {
        const Rule &rule = rulebook_.rule(reader.node->op, reader.node->location);
        return reader.operand < rule.operands.size() ? reader.node->op + "." + rule.operands[reader.operand].name : reader.node->op;
    }

    void add_matmul(const Node &node) {
        for (size_t i = 0; i < 2; i++) {
            const ValueId operand = unmoved(node.operands[i]);
            const Node *maker = producer(operand);
            const bool is_rounded = maker != nullptr && maker->op == "convert_element_type";
            if (is_rounded || (is_body_ && maker == nullptr) || !is_array(operand) ||
                program_.values[operand].part.kind != ArrayPart::Kind::whole)
                continue;
            add(plain(origins_.of(operand).tensor, operand, use_of({&node, i})));
        }
        add_product(node);
    }

    /// True for an operand that is the data of a scaled tensor.
    bool is_data(ValueId value) const {
        while (program_.values[value].part.kind != ArrayPart::Kind::data) {
            const Node *node = producer(value);
            const ValueId before = node == nullptr || !moves_one_array(*node) ? copied(value) : node->operands[0]; // each may be data
            if (before == value) return node != nullptr && divides_by_scale(*node);
            value = before;
        }
        return true;
    }

    /// The sum times the scales of the operands. Scales of rows are chosen by element, so that no product is infinite. -1: there is none.
    ValueId times_scales(ValueId sum) const {
        ValueId product = -1;
        for (ValueId value = sum; readers_[value].size() == 1;) {
            const Node &node = *readers_[value][0].node;
            if (node.op != "mul" || source_.contains(program_.value_name(node.results[0]))) break;
            const ValueId factor = node.operands[1 - readers_[value][0].operand];
            const Node *maker = producer(factor);
            if (!is_scale(factor) && (maker == nullptr || maker->op != "select_n")) break;
            product = value = node.results[0];
        }
        return product;
    }

    /// The tensor of the user is the sum times the scales of the operands. It has the name of which the sum is the data.
    void add_product(const Node &node) {
        const Value &sum = program_.values[node.results[0]];
        const auto whole = by_name_.find(sum.part.of);
        const bool is_whole = whole != by_name_.end() && program_.type(whole->second).shape == sum.type.shape;
        const ValueId named = is_whole ? whole->second : node.results[0];
        const auto product = is_whole ? products_.end() : products_.find(node.results[0]);
        const ValueId value = product == products_.end() ? named : product->second;
        if (value >= 0 && is_array(value) && program_.values[named].part.kind == ArrayPart::Kind::whole)
            add(plain(origins_.of(named).tensor, value, node.op));
    }

    /// A rounded form of a tensor has the numbers of the tensor, too.
    void drop_repeated() {
        std::set<std::string> rounded;
        for (const StatisticsSite &site : sites_)
            if (site.stored != site.data) rounded.insert(site.tensor);
        for (StatisticsSite &site : sites_) site.is_stored &= site.stored != site.data || !rounded.contains(site.tensor);
    }

    /// Only rows that name operators or tensors reach these.
    void add_computed(const Node &node, ValueId value) {
        const auto found = source_.find(program_.value_name(value));
        if (found == source_.end() || !node.regions.empty() || !is_array(value) || program_.type(value).is_scalar()) return;
        StatisticsSite site = plain(found->first, value, "");
        site.is_stored = false;
        add(std::move(site));
    }

    void add_result(const Result &result) {
        const bool is_state = result.argument >= 0 && program_.arguments[result.argument].initial;
        const Node *maker = producer(result.value);
        if (is_state || result.part.is_scale() || !is_array(result.value) || maker == nullptr) return;
        if (narrows(program_, *maker)) return; // add_rounded() has it, under the name of the tensor
        StatisticsSite site = plain(result.part.array(result.name), result.value, "result");
        if (result.argument >= 0) site.tensor = origins_.of(result.value).tensor; // the argument has the name of the result
        add(std::move(site));
    }

    const Program &program_;
    const Rulebook &rulebook_;
    const std::map<std::string, NamedTensor> &source_;
    const Directions &directions_;
    const Origins origins_;
    const std::vector<int> producers_;
    std::vector<std::vector<Reader>> readers_; ///< by value
    std::map<std::string, ValueId> by_name_;
    std::map<std::pair<std::string, Dtype>, size_t> index_;
    std::map<ValueId, ValueId> products_;               ///< by sum of a matmul of scaled operands: times_scales()
    std::map<ValueId, const Node *> matmuls_;           ///< by root of such a product
    std::map<ValueId, ValueId> named_;                  ///< by root: the first value with a name of the user
    std::map<std::string, std::vector<ValueId>> roots_; ///< of tensors without a name of the user, by the name of their operator
    std::vector<StatisticsSite> sites_;
    bool is_body_ = false; ///< of a loop. Its arguments are tensors of the program around it, or of the step before
};

bool matches(const StatisticsRow &row, const StatisticsSite &site) {
    if (!row.names_tensors() && !site.is_stored) return false;
    if (!row.argument.empty() && (!site.is_argument || !glob_matches(row.argument, site.tensor))) return false;
    const std::string reader = site.use.substr(0, site.use.find('.'));
    const bool fits = row.ops.empty() || std::ranges::count(row.ops, site.source.op) || std::ranges::count(row.ops, reader);
    return fits && glob_matches(row.tensor, site.tensor) && glob_matches(row.scope, site.source.scope);
}

} // namespace

std::map<std::string, NamedTensor> named_tensors(const Program &program) {
    const Directions directions(program);
    std::map<std::string, NamedTensor> tensors;
    for (const Argument &argument : program.arguments)
        tensors.emplace(program.value_name(argument.value), NamedTensor{"", "", Direction::none, argument.location});
    for (const Node &node : program.nodes)
        for (const ValueId result : node.results)
            tensors.emplace(program.value_name(result), NamedTensor{node.op, node.scope, directions.of(node), node.location,
                                                                    element_count(program.type(result).shape)});
    return tensors;
}

std::map<std::string, NamedTensor> named_tensors_of_regions(const Program &program) {
    const Directions directions(program);
    std::map<std::string, NamedTensor> tensors;
    std::map<std::string, int> counts;
    visit_programs(program, [&](const Program &region) {
        if (&region == &program) return;
        for (const Node &node : region.nodes)
            for (const ValueId result : node.results) {
                tensors.emplace(region.value_name(result), NamedTensor{node.op, node.scope, directions.of(node), node.location,
                                                                       element_count(region.type(result).shape)});
                counts[region.value_name(result)]++;
            }
    });
    std::erase_if(tensors, [&](const auto &named) { return counts[named.first] > 1; });
    return tensors;
}

std::vector<StatisticsSite> statistics_sites(const Program &program, const Rulebook &rulebook,
                                             const std::map<std::string, NamedTensor> &source) {
    const Directions directions(program);
    return Sites(program, directions, rulebook, source).find();
}

std::vector<StatisticsSite> sites_in_body(const Program &body, const Directions &directions, const Rulebook &rulebook,
                                          const std::map<std::string, NamedTensor> &source) {
    return Sites(body, directions, rulebook, source).find_in_body();
}

const StatisticsRow *deciding_row(const StatisticsSite &site, const std::vector<StatisticsRow> &rows) {
    const auto found = std::ranges::find_if(rows, [&](const StatisticsRow &row) { return matches(row, site); });
    return found == rows.end() ? nullptr : &*found;
}

} // namespace scalide

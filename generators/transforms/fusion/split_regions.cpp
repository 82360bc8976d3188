#include "transforms/fusion/split_regions.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/updates.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

/// True for sources and data movement, which each part computes for itself.
bool is_repeated(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && (op->shape == Shape::source || moves_one_array(node));
}

bool has_barriers(const Program &program) { return std::ranges::any_of(program.nodes, is_barrier); }

/// Decides for the nodes of a program in which part they run. Node number k with regions runs after part k and before part k + 1.
class Parts {
public:
    explicit Parts(const Program &program)
        : program_(program), makers_(producers(program)), first_(program.nodes.size(), 0), part_(program.nodes.size(), -1),
          is_output_(program.values.size(), false) {
        find_first_parts();
        find_parts();
        for (size_t i = 0; i < program.nodes.size(); i++)
            if (is_plain(i) && part_[i] >= 0 && !is_repeated(program.nodes[i])) mark_inputs(program.nodes[i], part_[i]);
        for (const Node &node : program.nodes)
            for (const ValueId operand : node.operands)
                if (is_barrier(node)) mark_output(operand);
    }

    int regions() const { return regions_; }
    bool is_plain(size_t node) const { return !is_barrier(program_.nodes[node]); }
    int maker(ValueId value) const { return makers_[static_cast<size_t>(value)]; }
    const std::vector<int> &makers() const { return makers_; }
    /// True if part number `part` computes the value, perhaps again.
    bool computes(ValueId value, int part) const {
        const int node = maker(value);
        if (node < 0 || !is_plain(static_cast<size_t>(node))) return false;
        return part_[static_cast<size_t>(node)] == part || is_repeated(program_.nodes[static_cast<size_t>(node)]);
    }
    /// Returns the part that computes a value for others; -1 for arguments and for results of nodes with regions.
    int part_of(ValueId value) const {
        const int node = maker(value);
        return node < 0 || !is_plain(static_cast<size_t>(node)) ? -1 : part_[static_cast<size_t>(node)];
    }
    bool is_output(ValueId value) const { return is_output_[static_cast<size_t>(value)]; }
    /// Says that a part other than its own, a node with regions or a result reads the value.
    void mark_output(ValueId value) {
        is_output_[static_cast<size_t>(value)] = true;
        const int node = maker(value);
        if (node >= 0 && is_plain(static_cast<size_t>(node)) && is_repeated(program_.nodes[static_cast<size_t>(node)]))
            mark_inputs(program_.nodes[static_cast<size_t>(node)], part_of(value));
    }

    /// Says that this part reads the value.
    void mark_read(ValueId value, int part) {
        const int node = maker(value);
        if (node < 0) return;
        const Node &by = program_.nodes[static_cast<size_t>(node)];
        if (is_plain(static_cast<size_t>(node)) && is_repeated(by))
            mark_inputs(by, part);
        else if (!computes(value, part))
            is_output_[static_cast<size_t>(value)] = true;
    }

    /// Returns the last part, or 1 plus the number of the last node with regions, that reads the argument.
    int last_read(ValueId argument) const {
        std::vector<bool> moved(program_.values.size(), false);
        moved[static_cast<size_t>(argument)] = true;
        int last = 0, region = 0;
        for (size_t i = 0; i < program_.nodes.size(); i++) {
            const Node &node = program_.nodes[i];
            const bool reads = std::ranges::any_of(node.operands, [&](ValueId value) { return moved[static_cast<size_t>(value)]; });
            region += !is_plain(i);
            if (!reads) continue;
            if (is_plain(i) && is_repeated(node))
                moved[static_cast<size_t>(node.results[0])] = true;
            else
                last = std::max(last, is_plain(i) ? part_[i] : region);
        }
        const auto is_moved = [&](const Result &result) { return moved[static_cast<size_t>(result.value)]; };
        return std::ranges::any_of(program_.results, is_moved) ? regions_ : last;
    }

private:
    /// The first part in which all operands are there.
    void find_first_parts() {
        for (size_t i = 0; i < program_.nodes.size(); i++) {
            for (const ValueId operand : program_.nodes[i].operands) {
                const int node = maker(operand);
                if (node < 0) continue;
                const auto at = static_cast<size_t>(node);
                first_[i] = std::max(first_[i], is_plain(at) ? first_[at] : first_[at] + 1);
            }
            if (!is_plain(i)) first_[i] = regions_++;
        }
    }

    /// A node runs in the first part that reads it, so that values live briefly and fuse with their readers.
    void find_parts() {
        std::vector<int> reader(program_.values.size(), -1); // the first part that reads the value
        const auto read = [&](ValueId value, int part) {
            int &first = reader[static_cast<size_t>(value)];
            first = first < 0 ? part : std::min(first, part);
        };
        for (const Result &result : program_.results)
            if (const int node = maker(result.value); node >= 0) read(result.value, first_[static_cast<size_t>(node)]);
        for (size_t i = program_.nodes.size(); i-- > 0;) {
            const Node &node = program_.nodes[i];
            for (const ValueId result : node.results)
                if (const int part = reader[static_cast<size_t>(result)]; part >= 0)
                    part_[i] = part_[i] < 0 ? part : std::min(part_[i], part);
            if (!is_plain(i)) part_[i] = first_[i];
            if (part_[i] < 0) continue;
            for (const ValueId operand : node.operands) read(operand, part_[i]);
        }
    }

    void mark_inputs(const Node &node, int part) {
        for (const ValueId operand : node.operands) mark_read(operand, part);
    }

    const Program &program_;
    const std::vector<int> makers_;
    std::vector<int> first_, part_; ///< by node; for a node with regions its number
    std::vector<bool> is_output_;   ///< by value
    int regions_ = 0;
};

/// A result of a part: an array for other parts, or the new value of an argument, or a copy for a result of the program.
struct Output {
    ValueId value;
    int overwritten = -1; ///< number of the argument of the program
    int copied_for = -1;  ///< number of the result of the program
};

/// Builds the region of one part.
class PartBuilder {
public:
    PartBuilder(const Program &program, const Parts &parts, int part) : program_(program), parts_(parts), part_(part), rewriter_(program) {
        region().name = "part";
        region().attributes = {};
        region().symbols = {};
        region().programs = {};
    }

    /// Returns the node, whose operands are values of the source program. Its results are the outputs in the same order.
    Node build(std::vector<Output> &outputs) {
        std::ranges::stable_sort(outputs, {}, [&](const Output &each) { return each.overwritten < 0 ? INT32_MAX : each.overwritten; });
        for (size_t i = 0; i < program_.nodes.size(); i++)
            if (parts_.is_plain(i) && !is_repeated(program_.nodes[i]) && parts_.computes(program_.nodes[i].results[0], part_))
                pull(program_.nodes[i].results[0]);
        for (const Output &output : outputs) pull(output.value);
        order_arguments(outputs);
        for (const Output &output : outputs) add_result(output);
        Node node{.op = "straight"};
        node.operands = operands_;
        node.location = program_.nodes.empty() ? Location() : program_.nodes.back().location;
        if (!region().nodes.empty()) node.location = region().nodes.back().location;
        node.regions = {std::make_shared<const Program>(rewriter_.take())};
        return node;
    }

private:
    Program &region() { return rewriter_.result(); }

    void add_argument(ValueId value) {
        rewriter_.map(value, add_value(region(), program_.value_name(value), program_.type(value), program_.values[size_t(value)].part));
        region().arguments.push_back({.value = rewriter_(value)});
        operands_.push_back(value);
    }

    void pull(ValueId value) {
        if (rewriter_.is_mapped(value)) return;
        if (!parts_.computes(value, part_)) return add_argument(value);
        const Node &node = program_.nodes[static_cast<size_t>(parts_.maker(value))];
        for (const ValueId operand : node.operands) pull(operand);
        rewriter_.copy(node);
    }

    /// The results that overwrite arguments must be in the order of the arguments.
    void order_arguments(const std::vector<Output> &outputs) {
        std::vector<Argument> arguments;
        std::vector<ValueId> operands;
        const auto is_overwritten = [&](ValueId value) {
            return std::ranges::any_of(outputs, [&](const Output &output) {
                return output.overwritten >= 0 && program_.arguments[static_cast<size_t>(output.overwritten)].value == value;
            });
        };
        for (const Output &output : outputs)
            if (output.overwritten >= 0) pull(program_.arguments[static_cast<size_t>(output.overwritten)].value);
        for (const Output &output : outputs) {
            if (output.overwritten < 0) continue;
            const ValueId value = program_.arguments[static_cast<size_t>(output.overwritten)].value;
            operands.push_back(value);
            arguments.push_back({.value = rewriter_(value), .inout = true});
        }
        for (size_t i = 0; i < operands_.size(); i++) {
            if (is_overwritten(operands_[i])) continue;
            operands.push_back(operands_[i]);
            arguments.push_back(region().arguments[i]);
        }
        operands_ = std::move(operands);
        region().arguments = std::move(arguments);
    }

    void add_result(const Output &output) {
        Result result{.name = program_.value_name(output.value), .value = rewriter_(output.value)};
        if (output.overwritten >= 0) {
            const ValueId argument = rewriter_(program_.arguments[static_cast<size_t>(output.overwritten)].value);
            const auto found = std::ranges::find(region().arguments, argument, &Argument::value);
            result.argument = static_cast<int>(found - region().arguments.begin());
            result.name = region().value_name(argument);
        } else {
            const auto is_taken = [&] { return std::ranges::find(region().results, result.name, &Result::name) != region().results.end(); };
            for (int number = 1; is_taken(); number++) result.name = program_.value_name(output.value) + "." + std::to_string(number);
        }
        region().results.push_back(result);
    }

    const Program &program_;
    const Parts &parts_;
    const int part_;
    Rewriter rewriter_;
    std::vector<ValueId> operands_;
};

class Splitter {
public:
    /// `has_carries`: an inout argument has two arrays unless it is updated.
    Splitter(const Program &program, bool has_carries)
        : program_(program), has_carries_(has_carries), parts_(program), rewriter_(program),
          outputs_(static_cast<size_t>(parts_.regions()) + 1), results_(program.results.size(), -1) {
        place_results();
    }

    Program run() {
        rewriter_.copy_arguments();
        add_part(0);
        int region = 0;
        for (const Node &node : program_.nodes) {
            if (!is_barrier(node)) continue;
            Node split = node;
            for (Region &each : split.regions) {
                const bool is_body = find_region_kind(node.op)->is_loop && each == node.regions.back();
                each = std::make_shared<const Program>(Splitter(*each, is_body).run());
            }
            rewriter_.copy(split);
            add_part(++region);
        }
        rewriter_.copy_results();
        for (size_t r = 0; r < results_.size(); r++)
            if (results_[r] >= 0) rewriter_.result().results[r].value = results_[r];
        return rewriter_.take();
    }

private:
    /// Decides where each result of the program gets its memory.
    void place_results() {
        std::set<ValueId> taken;
        for (size_t r = 0; r < program_.results.size(); r++) {
            const Result &result = program_.results[r];
            const ValueId argument = result.argument < 0 ? -1 : program_.arguments[static_cast<size_t>(result.argument)].value;
            if (result.value == argument) continue;
            const bool is_own = parts_.maker(result.value) >= 0 && taken.insert(result.value).second;
            const int last = parts_.regions(), part = parts_.part_of(result.value);
            const bool overwrites = argument >= 0 && (!has_carries_ || updates(argument, result.value));
            if (overwrites && is_own && part >= 0 && parts_.last_read(argument) <= part) {
                parts_.mark_output(result.value);
                outputs_[static_cast<size_t>(part)].push_back({result.value, result.argument, -1});
                overwriting_.insert(result.value);
            } else if (!is_own || (argument >= 0 && !has_carries_)) {
                parts_.mark_read(result.value, last);
                outputs_[static_cast<size_t>(last)].push_back({result.value, has_carries_ ? -1 : result.argument, static_cast<int>(r)});
            } else {
                parts_.mark_output(result.value);
            }
        }
    }

    bool updates(ValueId argument, ValueId value) const { return !updates_between(program_, parts_.makers(), argument, value).empty(); }

    void add_part(int part) {
        std::vector<Output> outputs = outputs_[static_cast<size_t>(part)];
        for (size_t i = 0; i < program_.nodes.size(); i++) {
            if (!parts_.is_plain(i)) continue;
            for (const ValueId value : program_.nodes[i].results)
                if (parts_.is_output(value) && parts_.part_of(value) == part && !overwriting_.contains(value)) outputs.push_back({value});
        }
        if (outputs.empty()) return;
        Node node = PartBuilder(program_, parts_, part).build(outputs);
        node.operands = rewriter_(node.operands);
        for (const Output &output : outputs) {
            const Value &value = program_.values[static_cast<size_t>(output.value)];
            const ValueId fresh = add_value(rewriter_.result(), value.name, value.type, value.part);
            node.results.push_back(fresh);
            if (output.copied_for >= 0)
                results_[static_cast<size_t>(output.copied_for)] = fresh;
            else
                rewriter_.map(output.value, fresh);
        }
        rewriter_.result().nodes.push_back(std::move(node));
    }

    const Program &program_;
    const bool has_carries_;
    Parts parts_;
    Rewriter rewriter_;
    std::vector<std::vector<Output>> outputs_; ///< by part: what overwrites arguments, and copies
    std::set<ValueId> overwriting_;
    std::vector<ValueId> results_; ///< by result: the copy; -1: none
};

/// The new value of an argument of a region has the name of the argument. Other results get names that no earlier result has.
void rename_results(Program &region) {
    std::set<std::string> taken;
    for (Result &result : region.results) {
        if (result.argument >= 0) result.name = region.value_name(region.arguments[size_t(result.argument)].value);
        const std::string own = result.name;
        for (int number = 1; !taken.insert(result.name).second; number++) result.name = own + "." + std::to_string(number);
    }
}

/// Gives the names of all values of regions to one program only, because buffers have names of their own. A renamed value keeps the name of
/// its tensor.
void rename_values(Program &program, std::set<std::string> &taken, bool is_outermost) {
    for (size_t value = 0; value < program.values.size(); value++) {
        const std::string own = program.values[value].name;
        std::string name = own;
        for (int number = 1; !is_outermost && taken.contains(name); number++) name = own + "." + std::to_string(number);
        if (name != own && !rename_value(program, static_cast<ValueId>(value), name)) continue;
        if (name != own && program.values[value].part == ArrayPart()) program.values[value].part.of = own;
        taken.insert(name);
    }
    if (!is_outermost) rename_results(program);
    for (Node &node : program.nodes)
        rewrite_regions(node, program, [&](Program region) {
            rename_values(region, taken, false);
            return region;
        });
}

/// Applies f to a straight region, with the attributes of the outermost program.
Program map_leaf(Program straight, const Program &outermost, bool is_in_loop, const MapStraight &f) {
    const Attributes own = straight.attributes;
    straight.attributes.insert(outermost.attributes);
    Program made = f(straight, is_in_loop);
    for (const auto &[name, attribute] : outermost.attributes)
        if (!own.contains(name)) made.attributes.erase(name);
    return made;
}

Program map_inner(const Program &program, const Program &outermost, bool is_in_loop, const MapStraight &f) {
    Program mapped = program;
    for (Node &node : mapped.nodes) {
        const bool is_straight = node.op == "straight";
        const bool is_step = is_in_loop || (!is_straight && !node.regions.empty() && find_region_kind(node.op)->is_loop);
        rewrite_regions(node, outermost, [&](Program region) {
            return is_straight ? map_leaf(std::move(region), outermost, is_in_loop, f) : map_inner(region, outermost, is_step, f);
        });
    }
    return mapped;
}

/// Returns true if a loop in the body starts a carry with the argument, which nothing else reads, and has one array for it.
bool loop_overwrites(const Program &body, const Node &node, size_t carry, ValueId argument) {
    ptrdiff_t readers = 0;
    for (const Node &reader : body.nodes) readers += std::ranges::count(reader.operands, argument);
    for (const Result &result : body.results) readers += result.value == argument;
    const LoopView view(node);
    const auto place = std::ranges::find(view.carries, static_cast<int>(carry));
    if (readers != 1 || place == view.carries.end()) return false;
    const int operand = view.operands[static_cast<size_t>(place - view.carries.begin())];
    return node.operands[static_cast<size_t>(operand)] == argument &&
           is_updated_in_place(*node.regions.back(), node.regions.back()->results[carry]);
}

} // namespace

bool is_barrier(const Node &node) { return !node.regions.empty() || is_collective(node.op); }

bool is_updated_in_place(const Program &body, const Result &result) {
    const ValueId argument = body.arguments[static_cast<size_t>(result.argument)].value;
    if (result.value == argument) return true;
    for (const Node &node : body.nodes) {
        const auto found = std::ranges::find(node.results, result.value);
        if (found == node.results.end()) continue;
        const auto index = static_cast<size_t>(found - node.results.begin());
        if (node.op == "straight") {
            const int overwritten = node.regions[0]->results[index].argument;
            return overwritten >= 0 && node.operands[static_cast<size_t>(overwritten)] == argument;
        }
        return !node.regions.empty() && find_region_kind(node.op)->is_loop && loop_overwrites(body, node, index, argument);
    }
    return false;
}

Program split_at_regions(const Program &program) {
    if (!has_barriers(program)) return program;
    Program split = Splitter(program, false).run();
    std::set<std::string> taken;
    rename_values(split, taken, true);
    return split;
}

Program map_straight(const Program &program, const MapStraight &f) {
    return has_barriers(program) ? map_inner(program, program, false, f) : f(program, false);
}

} // namespace scalide

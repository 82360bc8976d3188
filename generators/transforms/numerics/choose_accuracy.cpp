#include "ir/evaluation.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace scalide {

namespace {

/// A longer chain ends at f32. Two functions in a product add their errors; more would be visible in the rounded value.
constexpr size_t most_nodes = 16, most_functions = 2;

constexpr int most_bits = 11, bits_of_bf16 = 8; ///< significant bits of the formats for which there are reduced forms

/// Returns the format that names the accuracy which a rounding needs: bf16 or f16. Nothing if the node is no rounding, and for powers of
/// two, which are scales.
std::optional<Dtype> accuracy_before(const Program &program, const Node &node) {
    if (node.op != "convert_element_type" || program.type(node.operands[0]).dtype != Dtype::f32) return {};
    const Dtype dtype = program.type(node.results[0]).dtype;
    if (!is_float(dtype) || !is_narrow(dtype)) return {};
    const int bits = format_of(dtype).mantissa_bits + 1;
    if (bits == 1 || bits > most_bits) return {};
    return bits <= bits_of_bf16 ? Dtype::bf16 : Dtype::f16;
}

/// Values of rank 0 stay exact, because scales are computed from them.
bool has_reduced_form(const Program &program, const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    const Type &type = program.type(node.results[0]);
    return op != nullptr && op->evaluate_reduced != nullptr && type.dtype == Dtype::f32 && !type.is_scalar() &&
           !node.attributes.contains(accuracy_attribute);
}

/// True if a relative error of an operand becomes one of the result that is not larger, or does not matter. A sum may cancel.
bool keeps_relative_errors(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && (op->shape == Shape::movement || op->keeps_relative_errors || op->name == "is_finite");
}

/// The nodes from which a rounded value follows by operators that keep relative errors.
struct Chain {
    std::set<int> nodes;     ///< that depend on a function, and the functions
    std::set<int> functions; ///< with a reduced form
};

/// Finds chains. What it finds depends on the operands of a value alone, and on none of its readers.
class Chains {
public:
    explicit Chains(const Program &program) : program_(program), producers_(producers(program)) {}

    /// Returns the chain of a value. Its functions are empty if the value has to be computed in f32: no function is near, the chain is
    /// long, or an operand that needs f32 depends on one of the functions, which would be computed twice (the sum of a softmax).
    Chain find(ValueId value) const {
        Chain found;
        std::set<int> seen;
        std::set<ValueId> exact;
        std::vector<ValueId> open{value};
        while (!open.empty() && seen.size() <= most_nodes) {
            const ValueId next = open.back();
            open.pop_back();
            visit(next, seen, exact, found, open);
        }
        const bool is_long = seen.size() > most_nodes || found.functions.size() > most_functions;
        if (found.functions.empty() || is_long || depend_on(exact, found.functions)) return {};
        for (const int number : seen)
            if (found.functions.contains(number) || reads_one_of(found.nodes, number)) found.nodes.insert(number);
        return found;
    }

private:
    void visit(ValueId value, std::set<int> &seen, std::set<ValueId> &exact, Chain &found, std::vector<ValueId> &open) const {
        const int producer = producers_[value];
        if (producer < 0 || seen.contains(producer)) return;
        const Node &node = program_.nodes[producer];
        if (has_reduced_form(program_, node)) {
            seen.insert(producer);
            found.functions.insert(producer);
            exact.insert(node.operands[0]);
        } else if (keeps_relative_errors(node)) {
            seen.insert(producer);
            open.insert(open.end(), node.operands.begin(), node.operands.end());
        } else {
            exact.insert(value);
        }
    }

    bool reads_one_of(const std::set<int> &nodes, int number) const {
        return std::ranges::any_of(program_.nodes[number].operands, [&](ValueId operand) { return nodes.contains(producers_[operand]); });
    }

    /// True if one of the values depends on one of the nodes. Nodes before the first of them cannot.
    bool depend_on(const std::set<ValueId> &values, const std::set<int> &nodes) const {
        std::vector<ValueId> open(values.begin(), values.end());
        std::set<int> seen;
        while (!open.empty()) {
            const int producer = producers_[open.back()];
            open.pop_back();
            if (nodes.contains(producer)) return true;
            if (producer < *nodes.begin() || !seen.insert(producer).second) continue;
            const Node &node = program_.nodes[producer];
            if (accuracy_before(program_, node)) continue; // it has a chain of its own
            open.insert(open.end(), node.operands.begin(), node.operands.end());
        }
        return false;
    }

    const Program &program_;
    const std::vector<int> producers_;
};

/// Copies a program. The copy of a rounding reads a chain of its own, whose functions have the attribute. Equal chains are shared.
class AccuracyRewriter {
public:
    explicit AccuracyRewriter(const Program &program) : program_(program), chains_(program), rewriter_(program) {}

    Program run() {
        rewriter_.copy_arguments();
        for (const Node &node : program_.nodes) {
            const std::optional<Dtype> accuracy = accuracy_before(program_, node);
            const Chain chain = accuracy ? chains_.find(node.operands[0]) : Chain();
            if (chain.functions.empty())
                rewriter_.copy(node);
            else
                round(node, chain, *accuracy);
        }
        rewriter_.copy_results();
        return with_old_names(remove_dead_nodes(rewriter_.take()));
    }

private:
    using Copies = std::map<ValueId, ValueId>;

    void round(const Node &node, const Chain &chain, Dtype accuracy) {
        Copies &copies = copies_[accuracy];
        for (const int number : chain.nodes) {
            const Node &link = program_.nodes[number];
            if (copies.contains(link.results[0])) continue;
            Node copy = link;
            if (chain.functions.contains(number)) copy.attributes[accuracy_attribute] = std::string(to_string(accuracy));
            add(std::move(copy), copies);
        }
        Node rounding = node;
        rounding.operands = {copies.at(node.operands[0])};
        const ValueId made =
            add_node(rewriter_.result(), std::move(rounding), {program_.type(node.results[0])}, program_.value_name(node.results[0]))[0];
        rewriter_.result().values[made].part = program_.values[node.results[0]].part;
        rewriter_.map(node.results[0], made);
    }

    void add(Node copy, Copies &copies) {
        const ValueId old = copy.results[0];
        for (ValueId &operand : copy.operands) operand = copies.contains(operand) ? copies.at(operand) : rewriter_(operand);
        copies[old] = add_node(rewriter_.result(), std::move(copy), {program_.type(old)}, program_.value_name(old))[0];
        rewriter_.result().values[copies[old]].part = program_.values[old].part;
        old_names_[rewriter_.result().value_name(copies[old])] = program_.value_name(old);
    }

    /// A copy gets the name of its value if nothing else reads the value.
    Program with_old_names(Program program) const {
        for (ValueId value = 0; value < std::ssize(program.values); value++) {
            const auto found = old_names_.find(program.value_name(value));
            if (found != old_names_.end()) rename_value(program, value, found->second);
        }
        return program;
    }

    const Program &program_;
    const Chains chains_;
    Rewriter rewriter_;
    std::map<Dtype, Copies> copies_;
    std::map<std::string, std::string> old_names_; ///< of copies
};

} // namespace

Program choose_accuracy(const Program &program) {
    const auto choose = [](const Program &straight) { return AccuracyRewriter(straight).run(); };
    return choose(map_regions(program, choose));
}

} // namespace scalide

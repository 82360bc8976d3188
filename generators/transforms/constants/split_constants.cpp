#include "transforms/constants/split_constants.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include <algorithm>

namespace scalide {

namespace {

/// What a value depends on.
enum class Dependence : uint8_t { literals, constants, run };

/// Returns the symbols that the shapes of the constants determine: an extent is such a symbol, or a multiple of it.
std::set<std::string> symbols_of_constants(const Program &program) {
    std::set<std::string> symbols;
    for (const Argument &argument : program.arguments) {
        if (argument.supply != Supply::constant) continue;
        for (const Extent &extent : program.type(argument.value).shape) {
            const Extent::Terms terms = extent.terms();
            if (terms.size() == 1 && terms.begin()->first.size() == 1 && terms.begin()->second > 0) symbols.insert(terms.begin()->first[0]);
        }
    }
    return symbols;
}

class ConstantSplit {
public:
    explicit ConstantSplit(const Program &program)
        : program_(program), known_symbols_(symbols_of_constants(program)), dependence_(program.values.size(), Dependence::literals),
          is_read_(program.values.size(), false) {
        for (const Argument &argument : program.arguments)
            dependence_[argument.value] = argument.supply == Supply::constant ? Dependence::constants : Dependence::run;
        for (const Node &node : program.nodes)
            for (const ValueId result : node.results) dependence_[result] = dependence_of(node);
        find_prepared();
    }

    SplitProgram split() const {
        if (prepared_.empty()) return {program_, std::nullopt};
        return {main(), prepare()};
    }

private:
    bool knows(const Extent &extent) const {
        return std::ranges::all_of(extent.symbols(), [&](const std::string &symbol) { return known_symbols_.contains(symbol); });
    }
    bool knows(const Attribute &attribute) const {
        const auto is_known = [&](const Attribute &each) { return knows(each); };
        return knows(attribute.integer) && std::ranges::all_of(attribute.list, is_known);
    }

    /// True if the prepare program can contain the node: the constants determine all its symbols.
    bool can_prepare(const Node &node) const {
        return node.op != "debug_callback" && !is_collective(node.op) &&
               std::ranges::all_of(node.attributes, [&](const auto &attribute) { return knows(attribute.second); }) &&
               std::ranges::all_of(node.results, [&](ValueId result) {
                   return std::ranges::all_of(program_.type(result).shape, [&](const Extent &extent) { return knows(extent); });
               });
    }

    Dependence dependence_of(const Node &node) const {
        Dependence most = Dependence::literals;
        for (const ValueId operand : node.operands) most = std::max(most, dependence_[operand]);
        return can_prepare(node) ? most : Dependence::run;
    }

    /// True if a run computes the node although it depends only on constants: its result is larger than its operand, or cannot be stored.
    bool stays(const Node &node) const {
        const auto bits = [&](ValueId value) { return bits_of(program_.type(value).dtype); };
        if (program_.type(node.results[0]).dtype == Dtype::f64) return true;
        if (node.op == "convert_element_type") return bits(node.operands[0]) < bits(node.results[0]);
        return node.op == "broadcast_in_dim" && dependence_[node.operands[0]] == Dependence::constants;
    }

    /// Finds the values that a run reads, from the last node to the first. Those that depend on constants are prepared.
    void find_prepared() {
        for (const Result &result : program_.results) is_read_[result.value] = true;
        is_in_main_.assign(program_.nodes.size(), false);
        for (size_t i = program_.nodes.size(); i-- > 0;) {
            const Node &node = program_.nodes[i];
            const Dependence dependence = dependence_[node.results[0]];
            const bool is_read = std::ranges::any_of(node.results, [&](ValueId result) { return is_read_[result]; });
            is_in_main_[i] = dependence == Dependence::run || (is_read && (dependence == Dependence::literals || stays(node)));
            if (!is_in_main_[i]) continue;
            for (const ValueId operand : node.operands) is_read_[operand] = true;
        }
        for (const Argument &argument : program_.arguments) add_prepared(argument.value);
        for (size_t i = 0; i < program_.nodes.size(); i++) {
            if (is_in_main_[i]) continue;
            for (const ValueId result : program_.nodes[i].results) add_prepared(result);
        }
    }

    void add_prepared(ValueId value) {
        if (is_read_[value] && dependence_[value] == Dependence::constants) prepared_.push_back(value);
    }

    Program main() const {
        Rewriter rewriter(program_);
        rewriter.copy_arguments();
        for (const ValueId value : prepared_) {
            const Value &row = program_.values[value];
            const ValueId fresh = add_value(rewriter.result(), row.name, row.type, row.part);
            rewriter.result().arguments.push_back({.value = fresh, .supply = Supply::prepared});
            rewriter.map(value, fresh);
        }
        for (size_t i = 0; i < program_.nodes.size(); i++)
            if (is_in_main_[i]) rewriter.copy(program_.nodes[i]);
        rewriter.copy_results();
        return rewriter.take();
    }

    Program prepare() const {
        Rewriter rewriter(program_);
        rewriter.copy_arguments();
        Program &result = rewriter.result();
        std::erase_if(result.arguments, [](const Argument &argument) { return argument.supply != Supply::constant; });
        for (Argument &argument : result.arguments) argument.supply = Supply::run;
        std::erase_if(result.symbols, [&](const Symbol &symbol) { return !known_symbols_.contains(symbol.name); });
        for (const Node &node : program_.nodes)
            if (dependence_[node.results[0]] != Dependence::run) rewriter.copy(node);
        for (const ValueId value : prepared_) result.results.push_back({.name = program_.value_name(value), .value = rewriter(value)});
        return remove_dead_nodes(rewriter.take());
    }

    const Program &program_;
    const std::set<std::string> known_symbols_;
    std::vector<Dependence> dependence_; ///< by value
    std::vector<bool> is_read_;          ///< by value: main reads it
    std::vector<bool> is_in_main_;       ///< by node
    std::vector<ValueId> prepared_;
};

} // namespace

SplitProgram split_constants(const Program &program) { return ConstantSplit(program).split(); }

} // namespace scalide

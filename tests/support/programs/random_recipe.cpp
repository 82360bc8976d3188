#include "support/programs/random_recipe.h"
#include "rulebook/builder.h"
#include "support/programs/random_program.h"
#include "support/programs/rules.h"
#include "transforms/analysis/passes.h"
#include <iterator>

namespace scalide {

namespace {

/// The text of a policy under construction.
class Recipe {
public:
    explicit Recipe(std::mt19937 &random) : random_(random) {}

    std::string take() {
        const std::string settings = draw_settings();
        for (size_t masks = below(3); masks > 0; masks--) add_rule(draw_mask());
        if (below(8) == 0) add_rule("keep: \"" + word({"outer/**", "w", "x0"}) + "\"");
        for (size_t recipes = 1 + below(2); recipes > 0; recipes--) add_recipe();
        return settings + "state:\n" + states_ + "rules:\n" + rules_;
    }

private:
    size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
    std::string word(std::initializer_list<const char *> words) { return words.begin()[below(words.size())]; }
    std::string number(size_t least, size_t most) { return std::to_string(least + below(most - least + 1)); }
    void add_rule(const std::string &keys) { rules_ += "  - {" + keys + ", optional: true}\n"; }

    std::string draw_settings() {
        std::string text = "policy: drawn\n";
        for (const char *setting :
             {"intermediates: bf16", "round: every_node", "overflow: format", "accumulation: fast", "scales: propagated"})
            if (below(6) == 0) text += std::string(setting) + "\n";
        return text;
    }
    std::string draw_ops() {
        const char *const products = "op: [dot_general, conv_general_dilated]";
        return word({products, products, products, products, "op: [mul, tanh]", "op: [add, dot_general]", "scope: \"inner/**\""});
    }
    std::string draw_mask() {
        const std::string place = draw_ops() + ", operand: " + word({"any", "primal", "cotangent", "weight", "activation"});
        switch (below(5)) {
        case 0: return place + ", layer: " + word({"first", "last", "[first, last]"});
        case 1: return place + ", dtype: " + word({"f32", "bf16", "[f16, bf16]"});
        case 2: return place + ", size_below: " + number(1, 40);
        case 3: return place + ", contracted_below: " + number(1, 40);
        default: return place + ", not_multiple_of: " + number(2, 8);
        }
    }
    /// Rules for values and for gradients, or one rule for both.
    void add_for_operands(const std::string &insert) {
        const std::string ops = draw_ops();
        if (below(2) == 0) return add_rule(ops + ", operand: any, " + insert + draw_store());
        add_rule(ops + ", operand: primal, " + insert + ", store: f8_e4m3fn");
        add_rule(ops + ", operand: cotangent, " + insert + ", store: f8_e5m2");
    }
    std::string draw_store() { return ", store: " + word({"f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f16", "bf16"}); }

    void add_recipe() {
        const std::string mark = std::to_string(made_++), per = "per: " + word({"tensor", "tensor", "scope"});
        switch (below(6)) {
        case 0: return add_rounding(mark);
        case 1: return add_running_amax("amax" + mark, per);
        default: add_delayed(mark, per);
        }
    }
    void add_state(const std::string &name, const std::string &keys) { states_ += "  - {name: " + name + ", " + keys + "}\n"; }

    void add_delayed(const std::string &mark, const std::string &per) {
        const std::string history = "amax_history" + mark, scale = "scale" + mark, dtype = word({"f8_e4m3fn", "f8_e5m2", "f16"});
        const bool stores = below(5) > 0; // without a format, only the scale is there
        std::string attributes = "history: " + history;
        if (!stores) attributes += ", dtype: " + dtype;
        if (below(2) == 0) attributes += ", algorithm: " + word({"max", "most_recent"});
        if (below(2) == 0) attributes += ", margin: " + word({"-1", "0", "0.5", "1", "3"});
        if (below(2) == 0) attributes += ", rounding: " + word({"none", "up"});
        add_state(history,
                  per + ", dtype: f32, shape: [" + number(1, 20) + "], initial: " + word({"0", "0", "3"}) + ", next: update_amax_history");
        add_state(scale, per + ", dtype: f32, initial: " + number(1, 2) + ", next: {delayed_scale: {" + attributes + "}}");
        if (stores) return add_for_operands("insert: [{scaled_by: {s: " + scale + "}}]");
        add_rule(draw_ops() + ", operand: any, insert: [{scaled_by: {s: " + scale + ", dtype: " + dtype + "}}]");
    }
    void add_running_amax(const std::string &name, const std::string &per) {
        add_state(name, per + ", dtype: f32, initial: " + number(0, 1) + ", next: running_amax");
        add_rule(draw_ops() + ", operand: any, insert: [{observed: {amax: " + name + "}}]" + (below(2) == 0 ? draw_store() : ""));
    }
    void add_rounding(const std::string &mark) {
        const std::string step = "step" + mark, dtype = word({"f16", "bf16", "f8_e4m3fn", "f8_e5m2"});
        const std::string insert = ", insert: [{hashed_round: {dtype: " + dtype + ", step: " + step + "}}]";
        add_state(step, "dtype: u32, initial: " + number(0, 7) + ", next: next_step");
        if (below(2) == 0) return add_rule(draw_ops() + ", operand: any" + insert + ", store: " + dtype);
        add_rule("argument: inout, store: " + dtype);
        add_rule("result: inout" + insert + ", store: " + dtype);
    }

    std::mt19937 &random_;
    std::string states_, rules_;
    int made_ = 0;
};

} // namespace

std::string random_recipe(std::mt19937 &random) { return Recipe(random).take(); }

Program with_scopes(Program program, std::mt19937 &random) {
    const std::string scopes[] = {"outer", "outer/inner", "inner", "inner/last"};
    std::string scope = scopes[0];
    for (Node &node : program.nodes) {
        if (random() % 3 == 0) scope = scopes[random() % std::size(scopes)];
        if (node.scope.empty()) node.scope = scope;
    }
    return program;
}

Program random_training_step(std::mt19937 &random, int count) {
    Program program = with_scopes(random_program(random, count), random);
    std::vector<ValueId> arguments;
    for (const Argument &argument : program.arguments) arguments.push_back(argument.value);
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, arguments);
    Builder builder(rules(), program);
    for (size_t i = 0; i < arguments.size(); i++) {
        const std::string name = program.value_name(arguments[i]);
        if (name != "w" && name != "v") {
            program.results.push_back({name + ".gradient", gradients[i]});
            continue;
        }
        program.arguments[i].inout = true;
        const Extents shape = program.type(arguments[i]).shape; // a copy: values move when nodes are added
        const ValueId rate = builder.broadcast(builder.constant(0.25), shape);
        const ValueId next = builder.add_one("sub", {arguments[i], builder.add_one("mul", {gradients[i], rate})});
        program.results.push_back({name, next, false, static_cast<int>(i)});
    }
    return with_scopes(std::move(program), random);
}

} // namespace scalide

#include "support/programs/program_of_regions.h"
#include "ir/regions.h"
#include "rulebook/builder.h"
#include "support/programs/rules.h"
#include <algorithm>
#include <array>

namespace scalide {

namespace {

constexpr int deepest = 2;

/// Draws the nodes of a program or of a region.
class Draft {
public:
    Draft(std::mt19937 &random, int depth) : random_(random), depth_(depth), builder_(rules(), program_) {}

    /// Returns the number of the new argument's value, which nodes may read.
    ValueId add_argument(const Type &type, Supply supply = Supply::run, bool inout = false) {
        const ValueId value = add_value(program_, "a", type);
        program_.arguments.push_back({.value = value, .inout = inout, .supply = supply});
        return value;
    }

    void add_nodes(int count) {
        for (int i = 0; i < count; i++) {
            if (depth_ < deepest && below(3) == 0)
                add_regions();
            else
                add_arithmetic();
        }
    }

    /// Returns a value of this type, made here.
    ValueId value_of(const Type &type) {
        const std::vector<ValueId> found = values([&](const Type &each) { return each == type; });
        if (!found.empty())
            return found[found.size() - 1 - static_cast<size_t>(below(static_cast<int>(std::min<size_t>(found.size(), 3))))];
        return builder_.broadcast(builder_.constant(0.5, type.dtype), type.shape);
    }

    Program &program() { return program_; }

private:
    int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

    template<typename Holds>
    std::vector<ValueId> values(const Holds &holds) const {
        std::vector<ValueId> found;
        for (size_t i = 0; i < program_.values.size(); i++)
            if (holds(program_.values[i].type)) found.push_back(static_cast<ValueId>(i));
        return found;
    }
    ValueId any(const std::vector<ValueId> &found) { return found[random_() % found.size()]; }
    ValueId any_float() {
        return any(values([](const Type &type) { return type.dtype == Dtype::f32; }));
    }
    Type element_type() {
        const Extent b = Extent::symbol("b");
        const std::array<Extents, 4> shapes{Extents{}, Extents{b}, Extents{3}, Extents{b, 3}};
        return {Dtype::f32, shapes[random_() % shapes.size()]};
    }

    /// Bounded operators, so that loops keep their numbers small.
    void add_arithmetic() {
        static const char *const unary[] = {"tanh", "neg", "logistic", "abs"}, *const binary[] = {"add", "sub", "mul", "max"};
        const ValueId x = any_float();
        switch (below(4)) {
        case 0: builder_.add_one(unary[below(4)], {x}); break;
        case 1:
            if (builder_.type(x).rank() > 0) builder_.add_one("reduce_max", {x}, {{"axes", to_attribute(std::vector<int64_t>{0})}});
            break;
        default: {
            const ValueId y = value_of(builder_.type(x));
            builder_.add_one("tanh", {builder_.add_one(binary[below(4)], {x, y})});
        }
        }
    }

    void add_regions() {
        Node node;
        if (below(3) == 0)
            draw_branches(node);
        else
            draw_loop(node);
        const std::vector<Type> types = region_result_types(program_, node);
        add_node(program_, std::move(node), types);
    }

    Draft inner() {
        Draft draft(random_, depth_ + 1);
        draft.program_.symbols = program_.symbols;
        return draft;
    }
    static Region finished(Program region) {
        region.symbols.clear();
        return std::make_shared<const Program>(std::move(region));
    }

    void draw_loop(Node &node) {
        static const char *const operators[] = {"scan", "scan", "map", "fori"};
        node.op = operators[below(4)];
        const int64_t length = below(5);
        node.attributes = node.op == "fori" ? Attributes{{"lower", int64_t(-1)}, {"upper", length - 1}} : Attributes{{"length", length}};
        if (node.op == "scan" && below(2) == 0) node.attributes["reverse"] = "true";
        Draft body = inner();
        body.program_.name = "body";
        std::vector<int> carries;
        for (int count = node.op == "map" ? 0 : 1 + below(3); count > 0; count--) {
            const Type type = element_type();
            node.operands.push_back(value_of(type));
            carries.push_back(static_cast<int>(body.program_.arguments.size()));
            body.add_argument(type, Supply::run, true);
        }
        for (int count = node.op == "fori" ? 0 : 1 + below(2); count > 0; count--) {
            Type whole = element_type();
            body.add_argument(whole, Supply::each);
            whole.shape.insert(whole.shape.begin(), length);
            node.operands.push_back(value_of(whole));
        }
        add_captured(node, body);
        if (below(2) == 0) {
            body.step_ = body.add_argument({Dtype::i32, {}}, Supply::step);
            body.builder_.convert(*body.step_, Dtype::f32);
        }
        body.add_nodes(1 + below(4));
        for (const int carry : carries) {
            const ValueId before = body.program_.arguments[static_cast<size_t>(carry)].value;
            body.add_result(body.next_of(before), carry);
        }
        for (int count = node.op == "fori" ? 0 : 1 + below(2); count > 0; count--) body.add_result(body.any_float(), -1);
        node.regions = {finished(std::move(body.program_))};
    }

    /// Another value of the type, often another carry, or one that depends on the order of all steps.
    ValueId next_of(ValueId before) {
        const Type type = program_.type(before);
        const ValueId other = value_of(type);
        if (below(3) == 0) return other;
        const ValueId half = builder_.broadcast(builder_.constant(0.5), type.shape);
        return builder_.add_one("add", {builder_.add_one("mul", {before, half}), builder_.add_one("tanh", {other})});
    }

    void draw_branches(Node &node) {
        const bool is_switch = below(2) == 0;
        node.op = is_switch ? "switch" : "cond";
        const ValueId number = step_ ? *step_ : any(values([](const Type &type) { return type == Type{Dtype::i32, {}}; }));
        node.operands = {is_switch ? number : builder_.add_one("gt", {number, builder_.constant(below(3), Dtype::i32)})};
        const std::vector<Type> types{element_type(), element_type()};
        Draft first = inner();
        add_captured(node, first);
        for (int count = is_switch ? 1 + below(3) : 2; count > 0; count--) {
            Draft branch = inner();
            for (const Argument &argument : first.program_.arguments) branch.add_argument(first.program_.type(argument.value));
            branch.program_.name = "branch" + std::to_string(count);
            branch.add_nodes(1 + below(3));
            for (const Type &type : types) branch.add_result(branch.value_of(type), -1);
            node.regions.push_back(finished(std::move(branch.program_)));
        }
    }

    /// An integer, for the branches inside, and floats.
    void add_captured(Node &node, Draft &region) {
        node.operands.push_back(any(values([](const Type &type) { return type == Type{Dtype::i32, {}}; })));
        for (int count = 1 + below(3); count > 0; count--) node.operands.push_back(any_float());
        for (size_t i = region.program_.arguments.size() + first_operand(node); i < node.operands.size(); i++)
            region.add_argument(program_.type(node.operands[i]));
    }
    static size_t first_operand(const Node &node) { return node.op == "cond" || node.op == "switch" ? 1 : 0; }

    void add_result(ValueId value, int carry) {
        const std::string name = carry < 0 ? "r" + std::to_string(program_.results.size())
                                           : program_.value_name(program_.arguments[static_cast<size_t>(carry)].value);
        program_.results.push_back({name, value, false, carry});
    }

    std::mt19937 &random_;
    int depth_;
    Program program_;
    Builder builder_;
    std::optional<ValueId> step_;
};

} // namespace

Program program_of_regions(std::mt19937 &random) {
    Draft draft(random, 0);
    Program &program = draft.program();
    program.name = "regions";
    program.symbols.push_back({"b", 1, 64, 1});
    const Extent b = Extent::symbol("b");
    draft.add_argument({Dtype::f32, {b, 3}});
    draft.add_argument({Dtype::f32, {4, b, 3}});
    draft.add_argument({Dtype::f32, {3, b}});
    draft.add_argument({Dtype::f32, {}});
    draft.add_argument({Dtype::i32, {}});
    draft.add_nodes(3 + static_cast<int>(random() % 4));
    const std::vector<int> uses = count_uses(program);
    for (size_t i = 0; i < program.values.size(); i++)
        if (uses[i] == 0 && program.type(static_cast<ValueId>(i)).dtype == Dtype::f32)
            program.results.push_back({"r" + std::to_string(i), static_cast<ValueId>(i)});
    return std::move(program);
}

} // namespace scalide

#include "expr/error.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace scalide {

namespace {

/// Programs that verify, of operators that mean nothing: what the text form must carry.
class RandomProgram {
public:
    explicit RandomProgram(unsigned seed) : random_(seed) {}

    Program make() {
        Program program = make_one("main", {{Dtype::f32, {Extent::symbol("b"), Extent::symbol("n")}}}); // which gives the symbols
        for (size_t count = below(3); count > 0; count--) program.programs.push_back(make_one("sub" + std::to_string(count)));
        for (const Program &callee : program.programs) add_call(program, callee);
        if (flip()) add_loop(program, 0);
        return program;
    }

private:
    size_t below(size_t limit) { return random_() % limit; }
    bool flip() { return below(2) == 0; }

    template<typename Item, size_t count>
    Item any_of(const Item (&items)[count]) {
        return items[below(count)];
    }

    Extent extent() {
        const Extent b = Extent::symbol("b"), n = Extent::symbol("n");
        return any_of<Extent>({1, 7, 64, b, n, b * n, b * 4 + 1, b * b * n - n});
    }

    Type type() {
        const Dtype dtype = any_of({Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn, Dtype::i32, Dtype::boolean});
        Type type{dtype, {}};
        for (size_t rank = below(4); rank > 0; rank--) type.shape.push_back(extent());
        return type;
    }

    Attribute attribute(int depth) {
        const double numbers[] = {
            0.0, -0.0, 1.0, 0.1, 1e-300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
        const std::string words[] = {"f16", "b", "inf", "", "two words", "mlp/0", "q\"\\\n", "1", "true", "$"};
        switch (below(depth < 3 ? 4 : 3)) {
        case 0: return extent() - 3;
        case 1: return any_of(numbers);
        case 2: return any_of(words);
        }
        std::vector<Attribute> list;
        for (size_t count = below(4); count > 0; count--) list.push_back(attribute(depth + 1));
        return list;
    }

    Attributes attributes() {
        Attributes attributes;
        for (size_t count = below(3); count > 0; count--) attributes["k" + std::to_string(below(9))] = attribute(0);
        return attributes;
    }

    Node node(const Program &program) {
        Node node;
        node.op = any_of<std::string>({"add", "reduce_sum", "constant", "scope", "cotangent"});
        node.attributes = attributes();
        node.scope = any_of<std::string>({"", "", "mlp/0", "a \"b\""});
        node.role = flip() ? Role::primal : Role::cotangent;
        for (size_t count = below(4); count > 0; count--) node.operands.push_back(static_cast<ValueId>(below(program.values.size())));
        return node;
    }

    Program make_one(const std::string &name, const std::vector<Type> &first_arguments = {}) {
        Program program;
        program.name = name;
        program.attributes = attributes();
        program.symbols = {{"b", 1, 4096, 16}, {"n"}};
        for (const Type &type : first_arguments) program.arguments.push_back({add_value(program, "sizes", type)});
        for (size_t i = 0; i < 1 + below(4); i++) program.arguments.push_back({add_value(program, "x", type()), flip(), flip()});
        for (size_t i = 0; i < below(20); i++) add_node(program, node(program), std::vector<Type>(1 + below(2), type()), name_of_value());
        for (size_t i = program.arguments.size(); i < program.values.size(); i++) program.values[i].part = part();
        add_results(program);
        return program;
    }

    std::string name_of_value() {
        return any_of<std::string>({"y", "scope", "cotangent", "x.data", "$c", "program", "", "b", "layer 0/\"w\"", "\\", "\n", "data",
                                    "with", "each", "step", "\u00e9"});
    }

    ArrayPart part() {
        using Kind = ArrayPart::Kind;
        return flip() ? ArrayPart() : ArrayPart{any_of({Kind::whole, Kind::data, Kind::scale}), name_of_value() + "x"};
    }

    void add_results(Program &program) {
        for (size_t i = 0; i < program.arguments.size(); i++) {
            const Argument &argument = program.arguments[i];
            const std::string &name = program.value_name(argument.value);
            if (argument.inout) program.results.push_back({name, argument.value, argument.scaled, static_cast<int>(i)});
        }
        const auto value = static_cast<ValueId>(below(program.values.size()));
        program.results.push_back({flip() ? "r$" : "r." + program.value_name(value), value, flip(), -1});
    }

    void add_call(Program &program, const Program &callee) {
        Node source, call;
        source.op = "iota";
        call.op = "call";
        call.attributes["program"] = callee.name;
        for (const Argument &argument : callee.arguments) {
            call.operands.push_back(add_node(program, source, {callee.type(argument.value)})[0]);
        }
        std::vector<Type> types;
        for (const Result &result : callee.results) types.push_back(callee.type(result.value));
        add_node(program, call, types);
    }

    /// A scan over an argument made for it, with loops in its body.
    void add_loop(Program &program, int depth) {
        const Extent length = extent();
        const Type element = type();
        Type whole = element;
        whole.shape.insert(whole.shape.begin(), length);
        Node source, scan;
        source.op = "iota";
        scan.op = "scan";
        scan.attributes["length"] = length;
        Program body;
        body.name = "body" + name_of_value();
        const auto add_argument = [&](const Type &inner, Supply supply, bool inout) {
            body.arguments.push_back({.value = add_value(body, "a" + name_of_value(), inner), .inout = inout, .supply = supply});
        };
        add_argument(element, Supply::each, false);
        scan.operands = add_node(program, source, {whole});
        add_argument(element, Supply::run, true);
        scan.operands.push_back(add_node(program, source, {element})[0]);
        add_argument({Dtype::i32, {}}, Supply::step, false);
        if (depth < 3 && flip()) add_loop(body, depth + 1);
        body.results = {{body.value_name(1), 0, false, 1}, {"r$", static_cast<ValueId>(below(2)), false, -1}};
        scan.regions = {std::make_shared<const Program>(std::move(body))};
        add_node(program, scan, {element, whole}, name_of_value());
    }

    std::mt19937 random_;
};

/// Parses what may be nonsense; anything but a program or a UserError fails the test.
void expect_no_crash(const std::string &text) {
    try {
        const Program program = parse_program(text, "t.scl");
        EXPECT_EQ(to_string(parse_program(to_string(program), "u.scl")), to_string(program)) << text;
    } catch (const UserError &) {
    } catch (const std::exception &error) {
        ADD_FAILURE() << error.what() << " on\n" << text;
    }
}

} // namespace

TEST(ir, random_programs_round_trip) {
    const unsigned seed = std::random_device()();
    for (unsigned i = 0; i < 300; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed + i));
        const Program program = RandomProgram(seed + i).make();
        ASSERT_NO_THROW(verify(program, "make")) << to_string(program);
        const Program parsed = parse_program(to_string(program), "t.scl");
        ASSERT_EQ(to_string(parsed), to_string(program));
        ASSERT_TRUE(equal(canonical(parsed), canonical(program)));
        ASSERT_NO_THROW(verify(parsed, ""));
        ASSERT_NO_THROW(verify(canonical(program), "canonical")) << to_string(canonical(program));
    }
}

TEST(ir, random_bytes_do_not_crash_the_parser) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < 3000; i++) {
        std::string text = i % 2 == 0 ? "program p(" : "";
        for (size_t size = random() % 40; size > 0; size--) text += static_cast<char>(random());
        expect_no_crash(text);
    }
}

TEST(ir, damaged_programs_do_not_crash_the_parser) {
    const unsigned seed = std::random_device()();
    const std::string pieces[] = {"(",  ")",   "[",  "]",     "{",  "}", "\"", "\\x", "-", "->",
                                  "..", "nan", "\n", "scope", "1e", "0", "$",  "/",   "#"};
    for (unsigned i = 0; i < 1000; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed + i));
        std::mt19937 random(seed + i);
        std::string text = to_string(RandomProgram(seed + i).make());
        for (size_t count = 1 + random() % 3; count > 0; count--) {
            const size_t place = random() % text.size();
            text.replace(place, random() % 4, pieces[random() % std::size(pieces)]);
        }
        expect_no_crash(text);
    }
}

} // namespace scalide

#include "support/programs/random_base_program.h"
#include <algorithm>

namespace scalide::test {

namespace {

const Extent m = 3, n = 5, p = 2;
const std::vector<Extents> shapes = {{}, {m}, {n}, {m, n}, {n, m}, {m, n, p}};

class RandomBaseProgram {
public:
    explicit RandomBaseProgram(std::mt19937 &random) : random_(random) {
        program_.name = "random";
        for (const Extents &shape : shapes) add_argument("x", {Dtype::f32, shape}, false);
        for (const Extents &shape : {Extents{}, Extents{n}, Extents{m, n}, Extents{m, n}}) add_argument("w", {Dtype::f32, shape}, true);
        add_argument("h", {Dtype::f16, {m, n}}, false);
    }

    Program take(int node_count) {
        while (static_cast<int>(program_.nodes.size()) < node_count) add_something();
        for (size_t i = 0; i < program_.arguments.size(); ++i) {
            const Argument &argument = program_.arguments[i];
            if (argument.inout)
                program_.results.push_back(
                    {program_.value_name(argument.value), pick(program_.type(argument.value)), false, static_cast<int>(i)});
        }
        for (int i = 0; i < 3; ++i) program_.results.push_back({"r" + std::to_string(i), any(), false, -1});
        return program_;
    }

private:
    using Step = void (RandomBaseProgram::*)();

    void add_something() {
        static const Step steps[] = {&RandomBaseProgram::unary,     &RandomBaseProgram::binary,    &RandomBaseProgram::binary,
                                     &RandomBaseProgram::mask,      &RandomBaseProgram::broadcast, &RandomBaseProgram::broadcast,
                                     &RandomBaseProgram::transpose, &RandomBaseProgram::reduce,    &RandomBaseProgram::reduce,
                                     &RandomBaseProgram::round,     &RandomBaseProgram::contract,  &RandomBaseProgram::scalar};
        (this->*steps[draw(std::size(steps))])();
    }

    size_t draw(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

    void add_argument(const std::string &name, const Type &type, bool inout) {
        program_.arguments.push_back({add_value(program_, name, type), false, inout});
    }

    ValueId add(const std::string &op, std::vector<ValueId> operands, const Type &type, Attributes attributes = {}) {
        Node node;
        node.op = op;
        node.operands = std::move(operands);
        node.attributes = std::move(attributes);
        return add_node(program_, node, {type})[0];
    }

    /// Late values are drawn more often, so that programs grow deep.
    ValueId any() {
        const size_t count = program_.values.size();
        return static_cast<ValueId>(std::max(draw(count), draw(count)));
    }
    ValueId any(Dtype dtype) {
        for (;;)
            if (const ValueId value = any(); program_.type(value).dtype == dtype) return value;
    }
    ValueId pick(const Type &type) {
        for (;;)
            if (const ValueId value = any(); program_.type(value) == type) return value;
    }

    void unary() {
        static const char *const ops[] = {"neg", "abs", "exp", "tanh", "sqrt"};
        const ValueId x = any(Dtype::f32);
        add(ops[draw(std::size(ops))], {x}, program_.type(x));
    }

    void binary() {
        static const char *const ops[] = {"add", "sub", "mul", "div", "max"};
        const ValueId x = any(Dtype::f32);
        const Type type = program_.type(x);
        add(ops[draw(std::size(ops))], {x, pick(type)}, type);
    }

    void mask() {
        const ValueId x = any(Dtype::f32);
        const Type type = program_.type(x);
        const ValueId positive = add("gt", {x, pick(type)}, {Dtype::boolean, type.shape});
        add("select_n", {positive, pick(type), pick(type)}, type);
    }

    void broadcast() {
        const ValueId x = any(Dtype::f32);
        const Extents from = program_.type(x).shape;
        const Extents &to = shapes[draw(shapes.size())];
        std::vector<int64_t> dims;
        for (const Extent &extent : from) {
            const auto found = std::ranges::find(to, extent);
            if (found == to.end() || (!dims.empty() && found - to.begin() <= dims.back())) return;
            dims.push_back(found - to.begin());
        }
        add("broadcast_in_dim", {x}, {Dtype::f32, to}, {{"dims", to_attribute(dims)}, {"shape", to_attribute(to)}});
    }

    void transpose() {
        const ValueId x = pick({Dtype::f32, {m, n}});
        add("transpose", {x}, {Dtype::f32, {n, m}}, {{"permutation", to_attribute(std::vector<int64_t>{1, 0})}});
    }

    void reduce() {
        static const char *const ops[] = {"reduce_sum", "reduce_max"};
        const ValueId x = any(Dtype::f32);
        const Extents from = program_.type(x).shape;
        Extents kept;
        std::vector<int64_t> axes;
        for (size_t axis = 0; axis < from.size(); ++axis)
            if (draw(2))
                axes.push_back(static_cast<int64_t>(axis));
            else
                kept.push_back(from[axis]);
        if (!axes.empty()) add(ops[draw(std::size(ops))], {x}, {Dtype::f32, kept}, {{"axes", to_attribute(axes)}});
    }

    void round() {
        static const Dtype dtypes[] = {Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn};
        const Dtype dtype = dtypes[draw(std::size(dtypes))];
        const ValueId x = any(Dtype::f32);
        const ValueId rounded =
            add("convert_element_type", {x}, {dtype, program_.type(x).shape}, {{"dtype", std::string(to_string(dtype))}});
        add("convert_element_type", {rounded}, program_.type(x), {{"dtype", "f32"}});
    }

    void contract() {
        const ValueId x = pick({Dtype::f32, {m, n}}), y = pick({Dtype::f32, draw(2) ? Extents{n, m} : Extents{m, n}});
        const int64_t axis = program_.type(y).shape[0] == n ? 0 : 1;
        const Attribute contracted(std::vector<Attribute>{to_attribute(std::vector<int64_t>{1}), to_attribute(std::vector<int64_t>{axis})});
        const Attribute no_batch(std::vector<Attribute>{to_attribute(std::vector<int64_t>{}), to_attribute(std::vector<int64_t>{})});
        add("dot_general", {x, y}, {Dtype::f32, {m, m}}, {{"batch", no_batch}, {"contract", contracted}});
    }

    void scalar() {
        const Type wide{Dtype::f64, {}};
        const ValueId x = add("convert_element_type", {pick({Dtype::f32, {}})}, wide, {{"dtype", "f64"}});
        const ValueId product = add("mul", {x, pick(wide)}, wide);
        add("convert_element_type", {product}, {Dtype::f32, {}}, {{"dtype", "f32"}});
    }

    std::mt19937 &random_;
    Program program_;
};

} // namespace

Program random_base_program(std::mt19937 &random, int node_count) { return RandomBaseProgram(random).take(node_count); }

} // namespace scalide::test

#include "frontend/loops.h"
#include "frontend/tracer.h"
#include "ir/regions.h"
#include "ir/words.h"
#include <algorithm>
#include <iterator>

namespace scalide {

namespace {

/// A region, and the values of the enclosing program that its last arguments take.
struct TracedRegion {
    Program program;
    std::vector<ValueId> captured;

    /// Finishes what a tracer made. Sub-programs move to the enclosing program.
    TracedRegion(Tracer &tracer, Program &outer, const std::string &name)
        : program(std::move(tracer.program())), captured(tracer.captured()) {
        program.name = name;
        std::ranges::move(program.programs, std::back_inserter(outer.programs));
        program.programs.clear();
        program.symbols.clear();
    }

    /// Gives the region arguments for all of these values, in their order.
    void take(const std::vector<ValueId> &values, const Program &outer) {
        const auto own = static_cast<ptrdiff_t>(program.arguments.size() - captured.size());
        std::vector<Argument> arguments(program.arguments.begin(), program.arguments.begin() + own);
        for (const ValueId value : values) {
            const auto place = std::ranges::find(captured, value) - captured.begin();
            const bool is_there = place < static_cast<ptrdiff_t>(captured.size());
            const Value &whole = outer.values[value];
            arguments.push_back(is_there ? program.arguments[static_cast<size_t>(own + place)]
                                         : Argument{.value = add_value(program, whole.name, whole.type), .location = {}});
        }
        program.arguments = std::move(arguments);
    }
};

/// Adds the node with its regions. Its operands so far are those before the captured values.
std::vector<Tensor> add_region_node(Node node, std::vector<TracedRegion> regions) {
    Program &program = Tracer::current().program();
    std::vector<ValueId> captured;
    for (const TracedRegion &region : regions)
        for (const ValueId value : region.captured)
            if (std::ranges::count(captured, value) == 0) captured.push_back(value);
    node.operands.insert(node.operands.end(), captured.begin(), captured.end());
    for (TracedRegion &region : regions) {
        region.take(captured, program);
        node.regions.push_back(std::make_shared<const Program>(std::move(region.program)));
    }
    const std::vector<Type> types = region_result_types(program, node);
    std::vector<Tensor> results;
    for (const ValueId value : add_node(program, std::move(node), types)) results.emplace_back(value);
    return results;
}

Tensor add_region_argument(Program &region, const Value &like, const Type &type, Argument argument) {
    argument.value = add_value(region, like.name, type);
    region.arguments.push_back(argument);
    return Tensor(argument.value);
}

/// Adds the results of a step: carries, which must keep their types, then stacked ones.
void add_results(Program &region, const LoopNode &loop, const LoopResults &results) {
    if (results.carries.size() != loop.init.size())
        throw UserError({{},
                         loop.op,
                         "the body must return a carry with as many tensors as the first one, " + std::to_string(loop.init.size()),
                         std::to_string(results.carries.size()),
                         ""});
    for (size_t i = 0; i < results.carries.size(); i++) {
        const ValueId before = region.arguments[i].value, after = results.carries[i].value();
        if (region.type(before) != region.type(after))
            throw UserError({{},
                             loop.op,
                             "the carry must keep its type, " + to_string(region.type(before)),
                             to_string(region.type(after)) + " after a step",
                             "Convert it in the body, or convert the first value"});
        region.results.push_back({region.value_name(before), after, false, static_cast<int>(i)});
    }
    for (const Tensor &result : results.stacked) region.results.push_back({"y" + std::to_string(region.results.size()), result.value()});
}

TracedRegion trace_body(Tracer &outer, const LoopNode &loop, const std::vector<ValueId> &operands,
                        const std::function<LoopResults(const LoopStep &)> &body) {
    Tracer tracer(outer);
    Program &region = tracer.program();
    LoopStep step;
    for (size_t i = 0; i < operands.size(); i++) {
        const Value &operand = outer.program().values[operands[i]];
        const bool is_carry = i < loop.init.size();
        Type type = operand.type;
        if (!is_carry) type.shape.erase(type.shape.begin());
        (is_carry ? step.carries : step.elements)
            .push_back(add_region_argument(
                region, operand, type, {.inout = is_carry, .location = outer.location(), .supply = is_carry ? Supply::run : Supply::each}));
    }
    if (loop.has_step)
        step.step = add_region_argument(region, {"step", {}}, {Dtype::i32, {}}, {.location = outer.location(), .supply = Supply::step});
    add_results(region, loop, body(step));
    return {tracer, outer.program(), "body"};
}

/// The test gets the carries, which it does not change.
TracedRegion trace_test(Tracer &outer, const std::vector<ValueId> &carries, const LoopTest &test) {
    Tracer tracer(outer);
    std::vector<Tensor> arguments;
    for (const ValueId carry : carries) {
        const Value &operand = outer.program().values[carry];
        arguments.push_back(add_region_argument(tracer.program(), operand, operand.type, {.location = outer.location()}));
    }
    tracer.program().results.push_back({"more", test(arguments).value()});
    return {tracer, outer.program(), "test"};
}

} // namespace

Attributes loop_attributes(const LoopOptions &options) {
    Attributes attributes;
    if (options.remat) attributes["remat"] = "true";
    if (options.unroll) attributes["unroll"] = "true";
    return attributes;
}

Attributes scan_attributes(const ScanOptions &options, const std::vector<Tensor> &sequences, const std::source_location &where) {
    return at(where, [&] {
        if (!options.length && sequences.empty())
            throw UserError(statement({}, "nothing gives the number of steps", "Pass a sequence, or set the option 'length'"));
        for (const Tensor &sequence : sequences)
            if (sequence.rank() == 0) throw UserError({{}, "scan", "a sequence must have an axis for the steps", "a scalar", ""});
        Attributes attributes = loop_attributes({options.remat, options.unroll});
        attributes["length"] = options.length ? options.length->extent : sequences[0].shape()[0];
        if (options.reverse) attributes["reverse"] = "true";
        return attributes;
    });
}

Attributes while_attributes(const WhileOptions &options, const std::source_location &where) {
    return at(where, [&] {
        if (!options.max_steps) return Attributes();
        if (*options.max_steps < 0) throw UserError({{}, "while.max_steps", "must be at least 0", std::to_string(*options.max_steps), ""});
        return Attributes{{"max_steps", Extent(*options.max_steps)}};
    });
}

std::vector<Tensor> add_loop(const LoopNode &loop, const std::function<LoopResults(const LoopStep &)> &body,
                             const std::source_location &where, const LoopTest &test) {
    return at(where, [&] {
        Tracer &outer = Tracer::current();
        Node node = outer.stamped(loop.op, loop.attributes);
        for (const std::vector<Tensor> *tensors : {&loop.init, &loop.sequences})
            for (const Tensor &tensor : *tensors) node.operands.push_back(tensor.value());
        std::vector<TracedRegion> regions;
        if (test) regions.push_back(trace_test(outer, node.operands, test));
        regions.push_back(trace_body(outer, loop, node.operands, body));
        return add_region_node(std::move(node), std::move(regions));
    });
}

std::vector<Tensor> add_branches(const std::string &op, const Tensor &selector,
                                 const std::vector<std::function<std::vector<Tensor>()>> &branches, const std::source_location &where) {
    return at(where, [&] {
        Tracer &outer = Tracer::current();
        Node node = outer.stamped(op);
        node.operands = {selector.value()};
        std::vector<TracedRegion> regions;
        for (const auto &branch : branches) {
            const std::string number = std::to_string(regions.size());
            Tracer tracer(outer);
            for (const Tensor &result : branch())
                tracer.program().results.push_back({"y" + std::to_string(tracer.program().results.size()), result.value()});
            regions.emplace_back(tracer, outer.program(), op == "cond" ? (regions.empty() ? "yes" : "no") : "branch" + number);
        }
        return add_region_node(std::move(node), std::move(regions));
    });
}

} // namespace scalide

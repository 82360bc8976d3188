#include "transforms/constants/pack_constants.h"
#include "ir/rewrite.h"
#include "ir/text.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns extent / divisor, rounded up; nothing if it is symbolic and no multiple.
std::optional<Extent> divide_up(const Extent &extent, int64_t divisor) {
    if (extent.is_static()) return Extent((extent.value() + divisor - 1) / divisor);
    return extent.divide(divisor);
}

/// Appends movement between an operand and its panels. Both directions use the same three shapes:
///
///     sorted    the operand with its axes in the order of the panels, columns last
///     padded    sorted, with whole groups and panels
///     split     padded, with axes for the elements of a group and the columns of a panel
class PanelMovement {
public:
    PanelMovement(Program &program, const PanelLayout &layout, const Type &operand)
        : program_(program), layout_(layout), operand_(operand), order_(layout.axes) {
        order_.push_back(layout.columns);
        for (const int64_t axis : order_) sorted_.push_back(operand.shape[axis]);
        split_ = sorted_;
        const auto groups = divide_up(split_[split_.size() - 2], layout.group), panels = divide_up(split_.back(), layout.width);
        is_possible_ = groups && panels;
        if (!is_possible_) return;
        split_.pop_back();
        split_.back() = *groups;
        split_.insert(split_.end(), {layout.group, *panels, layout.width});
        padded_ = sorted_;
        padded_.back() = *panels * layout.width;
        padded_[padded_.size() - 2] = *groups * layout.group;
        find_panel_order();
    }

    bool is_possible() const { return is_possible_; }

    ValueId pack(ValueId value) {
        value = pad(transpose(value, order_));
        return convert(transpose(reshape(value, split_), panel_order_), layout_.element);
    }

    ValueId unpack(ValueId value) {
        value = transpose(value, inverse(panel_order_));
        value = slice(reshape(value, padded_));
        return convert(transpose(value, inverse(order_)), operand_.dtype);
    }

private:
    /// The order of the axes of `split_` in the array of panels: outside, panels, inside, columns, group.
    void find_panel_order() {
        const auto rank = int64_t(split_.size());
        for (int64_t axis = 0; axis < rank - 3; axis++) {
            if (axis == int64_t(layout_.outside)) panel_order_.push_back(rank - 2);
            panel_order_.push_back(axis);
        }
        panel_order_.insert(panel_order_.end(), {rank - 1, rank - 3});
    }

    ValueId add(const std::string &op, std::vector<ValueId> operands, Attributes attributes, Type type) {
        Node node;
        node.op = op;
        node.operands = std::move(operands);
        node.attributes = std::move(attributes);
        return add_node(program_, std::move(node), {std::move(type)})[0];
    }

    ValueId convert(ValueId value, Dtype dtype) {
        const Type &type = program_.type(value);
        return type.dtype == dtype ? value : add("convert_element_type", {value}, convert_attributes(dtype), {dtype, type.shape});
    }

    ValueId transpose(ValueId value, const std::vector<int64_t> &order) {
        if (std::ranges::is_sorted(order)) return value;
        const Type &type = program_.type(value);
        Extents shape;
        for (const int64_t axis : order) shape.push_back(type.shape[axis]);
        return add("transpose", {value}, transpose_attributes(order), {type.dtype, std::move(shape)});
    }

    ValueId reshape(ValueId value, const Extents &shape) {
        return add("reshape", {value}, reshape_attributes(shape), {program_.type(value).dtype, shape});
    }

    ValueId pad(ValueId value) {
        if (sorted_ == padded_) return value;
        const Dtype dtype = program_.type(value).dtype;
        Padding padding{Extents(sorted_.size(), 0), {}, std::vector<int64_t>(sorted_.size(), 0)};
        for (size_t axis = 0; axis < sorted_.size(); axis++) padding.high.push_back(padded_[axis] - sorted_[axis]);
        const ValueId zero = add("constant", {}, constant_attributes(0, dtype), {dtype, {}});
        return add("pad", {value, zero}, pad_attributes(padding), {dtype, padded_});
    }

    ValueId slice(ValueId value) {
        if (sorted_ == padded_) return value;
        const SliceBounds bounds{Extents(sorted_.size(), 0), sorted_, std::vector<int64_t>(sorted_.size(), 1)};
        return add("slice", {value}, slice_attributes(bounds), {program_.type(value).dtype, sorted_});
    }

    Program &program_;
    const PanelLayout &layout_;
    const Type operand_;
    std::vector<int64_t> order_, panel_order_;
    Extents sorted_, padded_, split_;
    bool is_possible_ = false;
};

bool is_product(const Node &node) { return node.op == "dot_general" || node.op == "conv_general_dilated"; }

/// Returns the kernel without arguments that no node reads, and removes the same operands of its call.
Program remove_unread_arguments(Program kernel, std::vector<ValueId> &operands) {
    const std::vector<int> uses = count_uses(kernel);
    std::vector<int> place;
    std::vector<Argument> arguments;
    std::vector<ValueId> kept;
    for (size_t i = 0; i < operands.size(); i++) {
        place.push_back(static_cast<int>(arguments.size()));
        if (uses[kernel.arguments[i].value] == 0 && !kernel.arguments[i].inout) continue;
        arguments.push_back(kernel.arguments[i]);
        kept.push_back(operands[i]);
    }
    for (Result &result : kernel.results)
        if (result.argument >= 0) result.argument = place[result.argument];
    kernel.arguments = std::move(arguments);
    operands = std::move(kept);
    return kernel;
}

/// A call whose right operand is read from panels.
struct PackedCall {
    Program *main;
    size_t node; ///< the call
    PanelLayout layout;
    size_t panels; ///< number of the panels
};

class ConstantPacking {
public:
    ConstantPacking(const std::vector<Program *> &mains, Program &prepare, const ChoosePanels &choose)
        : mains_(mains), prepare_(prepare), choose_(choose), first_panels_(prepare.results.size()) {}

    void pack() {
        for (Program *main : mains_)
            for (size_t node = 0; node < main->nodes.size(); node++) pack_call(*main, node);
        if (calls_.empty()) return;
        for (Program *main : mains_) add_panels(*main);
        for (const PackedCall &call : calls_) read_panels(call);
        remove_unread();
    }

private:
    /// Returns for each value of a form the number of its prepared array; -1 for other values.
    static std::vector<int> prepared_numbers(const Program &main) {
        std::vector<int> numbers(main.values.size(), -1);
        int count = 0;
        for (const Argument &argument : main.arguments)
            if (argument.supply == Supply::prepared) numbers[argument.value] = count++;
        return numbers;
    }

    /// Finds the panels of a call, or adds them to `prepare`.
    void pack_call(Program &main, size_t index) {
        const Node &call = main.nodes[index];
        const Program &kernel = main.program(call.attributes.at("program").word);
        const auto layout = choose_(kernel);
        if (!layout) return;
        std::vector<size_t> sources;
        const Program body = packing(main, call, kernel, *layout, sources);
        if (sources.empty()) return;
        Node in_prepare = call;
        in_prepare.operands.clear();
        std::string key = to_string(canonical(body));
        for (const size_t source : sources) {
            in_prepare.operands.push_back(prepare_.results[source].value);
            key += "\n" + std::to_string(source);
        }
        const auto [known, is_new] = panels_.emplace(key, prepare_.results.size());
        if (is_new) {
            const ValueId panels = append_body(prepare_, body, in_prepare)[0];
            prepare_.results.push_back({.name = new_name(constant_of(in_prepare.operands[0]) + ".panels"), .value = panels});
        }
        calls_.push_back({&main, index, *layout, known->second});
    }

    /// Returns the name of the first constant from which `prepare` computes a value.
    const std::string &constant_of(ValueId value) const {
        const std::vector<int> producer = producers(prepare_);
        while (producer[value] >= 0 && !prepare_.nodes[producer[value]].operands.empty())
            value = prepare_.nodes[producer[value]].operands[0];
        return prepare_.values[value].part.array(prepare_.value_name(value));
    }

    /// Returns a name that no result of `prepare` has.
    std::string new_name(const std::string &name) const {
        std::string fresh = name;
        for (int number = 2; std::ranges::count(prepare_.results, fresh, &Result::name) > 0; number++)
            fresh = name + "_" + std::to_string(number);
        return fresh;
    }

    /// Returns a program that computes the panels of a call, and the numbers of the prepared arrays that are its arguments. There are none
    /// if the operand depends on something else, or if it cannot be packed.
    static Program packing(const Program &main, const Node &call, const Program &kernel, const PanelLayout &layout,
                           std::vector<size_t> &sources) {
        const std::vector<int> numbers = prepared_numbers(main);
        const ValueId operand = std::ranges::find_if(kernel.nodes, is_product)->operands[1];
        Rewriter rewriter(kernel);
        Program &body = rewriter.result();
        body.attributes = {};
        std::vector<bool> is_needed(kernel.values.size(), false);
        is_needed[operand] = true;
        for (size_t i = kernel.nodes.size(); i-- > 0;)
            if (is_needed[kernel.nodes[i].results[0]])
                for (const ValueId value : kernel.nodes[i].operands) is_needed[value] = true;
        for (size_t i = 0; i < kernel.arguments.size(); i++) {
            const ValueId value = kernel.arguments[i].value;
            if (!is_needed[value]) continue;
            const int number = numbers[call.operands[i]];
            if (number < 0 || main.type(call.operands[i]) != kernel.type(value)) return sources.clear(), Program();
            sources.push_back(size_t(number));
            rewriter.map(value, add_value(body, kernel.value_name(value), kernel.type(value)));
            body.arguments.push_back({.value = rewriter(value)});
        }
        for (const Node &node : kernel.nodes)
            if (is_needed[node.results[0]]) rewriter.copy(node);
        PanelMovement movement(body, layout, kernel.type(operand));
        if (!movement.is_possible()) return sources.clear(), Program();
        const ValueId panels = movement.pack(rewriter(operand));
        body.results.push_back({.name = "panels", .value = panels});
        return rewriter.take();
    }

    /// Adds all panels to the arguments of a form.
    void add_panels(Program &main) const {
        for (size_t i = first_panels_; i < prepare_.results.size(); i++) {
            const Result &result = prepare_.results[i];
            const ValueId value = add_value(main, result.name, prepare_.type(result.value));
            main.arguments.push_back({.value = value, .supply = Supply::prepared});
        }
    }

    void read_panels(const PackedCall &packed) const {
        Program &main = *packed.main;
        Node &call = main.nodes[packed.node];
        const size_t first = main.arguments.size() - prepare_.results.size();
        const ValueId panels = main.arguments[first + packed.panels].value;
        std::vector<ValueId> operands = call.operands;
        operands.push_back(panels);
        Program kernel = with_panels(main.program(call.attributes.at("program").word), packed.layout, main.type(panels));
        kernel = canonical(remove_unread_arguments(std::move(kernel), operands));
        call.operands = std::move(operands);
        call.attributes["program"] = add_kernel(main, std::move(kernel));
    }

    /// Returns the kernel with a last argument, from which it reads its right operand.
    static Program with_panels(const Program &kernel, const PanelLayout &layout, const Type &panels) {
        Rewriter rewriter(kernel);
        rewriter.copy_arguments();
        Program &fresh = rewriter.result();
        const ValueId argument = add_value(fresh, "panels", panels);
        fresh.arguments.push_back({.value = argument});
        fresh.attributes[panels_attribute] = to_attribute(panels.shape);
        for (const Node &node : kernel.nodes) {
            if (!is_product(node)) {
                rewriter.copy(node);
                continue;
            }
            const ValueId unpacked = PanelMovement(fresh, layout, kernel.type(node.operands[1])).unpack(argument);
            rewriter.copy(node);
            fresh.nodes.back().operands[1] = unpacked;
        }
        rewriter.copy_results();
        return remove_dead_nodes(rewriter.take());
    }

    /// Adds a kernel to a form and returns its name. Equal kernels have one name.
    static std::string add_kernel(Program &main, Program kernel) {
        const std::string kind = kernel.attributes.at("kind").word + "_packed_";
        int count = 1;
        for (const Program &known : main.programs) {
            kernel.name = known.name;
            if (equal(known, kernel)) return known.name;
            count += known.name.starts_with(kind);
        }
        kernel.name = kind + std::to_string(count);
        main.programs.push_back(std::move(kernel));
        return main.programs.back().name;
    }

    /// Removes prepared arrays that no form reads, and kernels that no step calls.
    void remove_unread() {
        std::vector<bool> is_read(prepare_.results.size(), false);
        for (const Program *main : mains_) {
            const std::vector<int> uses = count_uses(*main), numbers = prepared_numbers(*main);
            for (const Argument &argument : main->arguments)
                if (numbers[argument.value] >= 0 && uses[argument.value] > 0) is_read[size_t(numbers[argument.value])] = true;
        }
        const auto remove = [&](auto &rows, size_t first) {
            size_t number = 0;
            std::erase_if(rows, [&](const auto &) { return number++ >= first && !is_read[number - 1 - first]; });
        };
        for (Program *main : mains_) {
            remove(main->arguments, main->arguments.size() - is_read.size());
            const auto is_called = [&](const Program &kernel) {
                return std::ranges::any_of(main->nodes,
                                           [&](const Node &node) { return node.attributes.at("program").word == kernel.name; });
            };
            std::erase_if(main->programs, [&](const Program &kernel) { return !is_called(kernel); });
        }
        remove(prepare_.results, 0);
        prepare_ = remove_dead_nodes(std::move(prepare_));
    }

    const std::vector<Program *> &mains_;
    Program &prepare_;
    const ChoosePanels &choose_;
    const size_t first_panels_;            ///< results of `prepare` before it are not panels
    std::map<std::string, size_t> panels_; ///< results of `prepare`, by the text of their program and its arguments
    std::vector<PackedCall> calls_;
};

} // namespace

void pack_constants(const std::vector<Program *> &mains, Program &prepare, const ChoosePanels &choose) {
    ConstantPacking(mains, prepare, choose).pack();
}

} // namespace scalide

#include "tool/kernel_programs.h"
#include "rulebook/check_operands.h"
#include "rulebook/nearest.h"
#include "tool/default_kernels.h"
#include "transforms/analysis/passes.h"
#include "transforms/analysis/splice.h"
#include <algorithm>
#include <fmt/format.h>

namespace scalide {

namespace {

/// Appends the nodes of a kernel to a program.
class KernelBuilder {
public:
    KernelBuilder(const Rulebook &rulebook, const LibraryKernel &kernel, const std::string &name)
        : kernel_(kernel), builder_(rulebook, program_) {
        program_.name = name;
        Node node;
        for (size_t i = 0; i < kernel.steps.size(); i++) {
            node.location = kernel.steps[i].location;
            builder_.stamp_like(node);
            add_step(i);
        }
        builder_.set_role(Role::cotangent);
    }

    Program forward() && {
        const Rule &last = *kernel_.steps.back().rule;
        for (size_t i = 0; i < results_.size(); i++) {
            const bool is_scaled = kernel_.scaled && !last.result(i).plain && is_float(program_.type(results_[i]).dtype);
            program_.results.push_back({last.result_name(i), results_[i], is_scaled});
        }
        return finished();
    }

    Program gradient() && {
        std::vector<ValueId> outputs, cotangents, operands;
        for (size_t i = 0; i < results_.size(); i++) {
            const Type type = program_.type(results_[i]);
            if (!is_float(type.dtype)) continue;
            outputs.push_back(results_[i]);
            cotangents.push_back(add_argument("d_" + kernel_.steps.back().rule->result_name(i), type));
        }
        for (const std::string &name : kernel_.gradients) {
            const ValueId operand = find_argument(name);
            if (!is_float(program_.type(operand).dtype))
                throw UserError({kernel_.location, kernel_.name + ".grad", "must name float operands",
                                 "'" + name + "' of type " + to_string(program_.type(operand)), ""});
            operands.push_back(operand);
        }
        const std::vector<ValueId> gradients = append_vjp(program_, builder_.rulebook(), outputs, cotangents, operands);
        for (size_t i = 0; i < gradients.size(); i++)
            program_.results.push_back({"d_" + kernel_.gradients[i], gradients[i], kernel_.scaled});
        return finished();
    }

private:
    ValueId add_argument(const std::string &name, const Type &type, Supply supply = Supply::run) {
        const ValueId value = add_value(program_, name, type);
        Argument argument{value, kernel_.scaled && is_float(type.dtype)};
        argument.supply = supply;
        argument.location = kernel_.location;
        program_.arguments.push_back(argument);
        return value;
    }

    ValueId find_argument(const std::string &name) const {
        const auto is_named = [&](const Argument &argument) { return program_.value_name(argument.value) == name; };
        return std::ranges::find_if(program_.arguments, is_named)->value;
    }

    void add_step(size_t number) {
        const KernelStep &step = kernel_.steps[number];
        std::vector<ValueId> values;
        std::vector<CheckOperand> choice; // of dtypes
        Dtype wanted = kernel_.dtype;
        if (number > 0) {
            if (results_.size() != 1)
                throw UserError(statement(step.location, fmt::format("'{}' has {} results, so no operator can follow it",
                                                                     kernel_.steps[number - 1].rule->op, results_.size())));
            values.push_back(results_[0]);
            wanted = program_.type(results_[0]).dtype;
            choice.push_back({&step.rule->operands[0], "", program_.type(results_[0])});
        }
        const std::vector<ListedOperand> &operands = kernel_.operands[number];
        for (const ListedOperand &operand : operands)
            choice.push_back(
                {&step.rule->operands[std::min(choice.size(), step.rule->operands.size() - 1)], operand.name, {{}, operand.shape}});
        if (step.rule->family == "elementwise") // the dtypes do not depend on the shapes, which may differ before they are broadcast
            for (CheckOperand &operand : choice) operand.type.shape.clear();
        choose_dtypes(*step.rule, choice, step.attributes, wanted);
        for (size_t i = 0; i < operands.size(); i++) {
            const Type type{operands[i].dtype.value_or(choice[values.size()].type.dtype), operands[i].shape};
            values.push_back(add_argument(operands[i].name, type, operands[i].is_constant ? Supply::constant : Supply::run));
        }
        results_ = builder_.add(step.rule->op, builder_.broadcast_operands(*step.rule, std::move(values)), step.attributes);
    }

    Program finished() {
        declare_symbols(program_);
        for (Symbol &symbol : program_.symbols) {
            const auto declared = std::ranges::find(kernel_.symbols, symbol.name, &Symbol::name);
            if (declared != kernel_.symbols.end()) symbol = *declared;
        }
        return std::move(program_);
    }

    const LibraryKernel &kernel_;
    Program program_;
    Builder builder_;
    std::vector<ValueId> results_;
};

/// A symbol, and the least value that it must have.
struct LeastValue {
    std::string symbol;
    int64_t least;
};

/// Returns the least value of the symbol of `extent`, `n` or `2*n + 1`, with which the extent reaches `limit`. Nothing if the extent has
/// another form.
std::optional<LeastValue> least_value(const Extent &extent, int64_t limit) {
    const Extent::Terms terms = (extent - Extent(extent.constant())).terms();
    if (terms.size() != 1 || terms.begin()->first.size() != 1 || terms.begin()->second <= 0) return {};
    const int64_t factor = terms.begin()->second, missing = std::max<int64_t>(limit - extent.constant(), 0);
    return LeastValue{terms.begin()->first[0], (missing + factor - 1) / factor};
}

/// Expands the operators of a kernel, so that errors in their values name the kernel. Then checks that the axes of which an operator takes
/// the first elements, such as k of top_k, have as many elements.
class ExpansionCheck {
public:
    ExpansionCheck(const Rulebook &rulebook, const LibraryKernel &kernel, const Program &program) : kernel_(kernel), program_(program) {
        replace_nodes(program_, rulebook, [&](const Program &, const Node &node) -> Remake {
            return rulebook.rule(node.op, node.location).is_base ? Remake() : Remake(expand_value);
        });
    }

    void check_slices() const {
        for (const Node &node : program_.nodes) {
            if (node.op != "slice") continue;
            const Extents &shape = program_.type(node.operands[0]).shape;
            const std::vector<Attribute> &limits = node.attributes.at("limit").list;
            for (size_t axis = 0; axis < shape.size(); axis++)
                if (limits[axis].integer.is_static()) check_extent(shape[axis], limits[axis].integer.value());
        }
    }

private:
    void check_extent(const Extent &extent, int64_t limit) const {
        const std::optional<LeastValue> needed = least_value(extent, limit);
        if (!needed) return;
        const auto symbol = std::ranges::find(program_.symbols, needed->symbol, &Symbol::name);
        if (symbol == program_.symbols.end() || symbol->minimum >= needed->least) return;
        const ListedOperand *operand = operand_with(needed->symbol);
        std::string reason;
        for (const KernelStep &step : kernel_.steps)
            for (const auto &[name, value] : step.attributes)
                if (value == Attribute(limit)) reason = fmt::format(", because {} is {}", name, limit);
        throw UserError({operand ? operand->location : kernel_.location, operand ? kernel_.name + ".shapes." + operand->name : kernel_.name,
                         fmt::format("{} must be at least {}{}", needed->symbol, needed->least, reason),
                         fmt::format("a minimum of {}", symbol->minimum),
                         fmt::format("Add 'symbols: {{{}: {{min: {}}}}}' before 'kernels:'", needed->symbol, needed->least)});
    }

    const ListedOperand *operand_with(const std::string &symbol) const {
        for (const std::vector<ListedOperand> &step : kernel_.operands)
            for (const ListedOperand &operand : step)
                for (const Extent &extent : operand.shape)
                    if (std::ranges::count(extent.symbols(), symbol)) return &operand;
        return nullptr;
    }

    const LibraryKernel &kernel_;
    Program program_;
};

/// Returns the operators as one expression, `add(dot(x, w), bias)`.
std::string formula(const LibraryKernel &kernel) {
    std::string text;
    for (size_t i = 0; i < kernel.steps.size(); i++) {
        std::string operands = text;
        for (const ListedOperand &operand : kernel.operands[i]) operands += (operands.empty() ? "" : ", ") + operand.name;
        text = kernel.steps[i].rule->op + "(" + operands + ")";
    }
    return text;
}

std::string doc_of(const LibraryKernel &kernel) {
    std::string doc = formula(kernel);
    for (const KernelStep &step : kernel.steps) {
        doc += fmt::format("\n{}: {}", step.rule->op, step.rule->doc);
        while (doc.ends_with('\n')) doc.pop_back();
        for (const Expression &value : step.rule->value) doc += "\n  value: " + to_string(value);
        for (const auto &[name, attribute] : step.attributes) doc += fmt::format("\n  {}: {}", name, to_string(attribute));
    }
    return doc;
}

void check_attributes_are_given(const KernelStep &step) {
    for (const AttributeSpec &spec : step.rule->attributes)
        if (spec.is_required() && !step.attributes.contains(spec.name))
            throw UserError({step.location, step.rule->op + "." + spec.name, "missing attribute", "",
                             "Add it to 'attributes', such as " + spec.name + ": ..."});
}

/// Names the attribute and its line if an error of an operator begins with an attribute that the list gives, as "strides must have one
/// entry for each of 2 axes" does.
void blame_attribute(const LibraryKernel &kernel, Message &message) {
    for (const KernelStep &step : kernel.steps)
        for (const auto &[name, place] : step.places) {
            const std::string subject = step.rule->op + ".results";
            if (!message.requirement.starts_with(name + " must") || !message.subject.starts_with(subject)) continue;
            message.location = place;
            message.subject = kernel.name + ".attributes." + name;
            return;
        }
}

/// Adds the kernel, and its location if there is none, to an error.
template<typename Body>
auto in_kernel(const LibraryKernel &kernel, const Body &body) {
    try {
        return body();
    } catch (const UserError &error) {
        Message message = error.message();
        blame_attribute(kernel, message);
        if (to_string(message.location).empty()) message.location = kernel.location;
        if (message.kind == MessageKind::value && !message.subject.starts_with(kernel.name + "."))
            message.subject = kernel.name + (message.subject.empty() ? "" : "." + message.subject);
        if (message.kind == MessageKind::unknown) message.got = kernel.name + "." + message.got;
        throw UserError(message);
    }
}

bool is_plain_only(const Rule &rule) { return rule.is_base && !rule.has_scale() && !rule.is_plain(); }

/// Returns a kernel of one operator from its first check case. Operands of elementwise operators get the shape [n].
LibraryKernel check_case_kernel(const Rule &rule) {
    const CheckCase &check_case = rule.check.cases[0];
    LibraryKernel kernel;
    kernel.name = rule.op;
    kernel.location = rule.location;
    kernel.steps.push_back({&rule, check_attributes(rule, check_case), rule.location});
    kernel.operands.resize(1);
    for (const CheckOperand &operand : check_operands(rule, check_case, Dtype::f32)) {
        const bool is_line = rule.family == "elementwise" && !operand.type.is_scalar();
        kernel.operands[0].push_back({operand.name, is_line ? Extents{Extent::symbol("n")} : operand.type.shape});
    }
    return kernel;
}

} // namespace

std::vector<LibraryProgram> kernel_programs(const Rulebook &rulebook, const LibraryKernel &kernel, const std::string &library) {
    return in_kernel(kernel, [&] {
        for (const KernelStep &step : kernel.steps) check_attributes_are_given(step);
        const std::string name = library + "_" + kernel.name, doc = doc_of(kernel);
        std::vector<LibraryProgram> programs;
        programs.push_back({KernelBuilder(rulebook, kernel, name).forward(), doc, kernel.policy});
        const ExpansionCheck check(rulebook, kernel, programs.back().program);
        if (kernel.location.line > 0) check.check_slices(); // the short form has no place for the bounds of a symbol
        if (!kernel.gradients.empty())
            programs.push_back({KernelBuilder(rulebook, kernel, name + "_grad").gradient(),
                                "The gradient with respect to " + joined(kernel.gradients) + " of " + doc, kernel.policy});
        return programs;
    });
}

std::vector<LibraryKernel> default_kernels(const Rulebook &rulebook, const std::string &op, const std::vector<Dtype> &dtypes) {
    static const PolicyLoader no_policies = [](const std::string &) -> Policy { throw InternalError("a default kernel has a policy"); };
    const std::vector<LibraryKernel> defaults = read_kernels(default_kernels_text, "default_kernels.yaml", rulebook, no_policies);
    std::vector<LibraryKernel> kernels;
    const auto add = [&](const LibraryKernel &kernel, bool takes_floats) {
        const Rule &rule = *kernel.steps[0].rule;
        for (const Dtype dtype : dtypes) {
            LibraryKernel named = kernel;
            named.dtype = dtype;
            if (takes_floats) named.name += "_" + std::string(to_string(dtype));
            kernels.push_back(named);
            if (!takes_floats) return;
            if (is_plain_only(rule)) continue;
            named.name += "_scaled";
            named.scaled = true;
            kernels.push_back(named);
        }
    };
    for (const Rule *rule : rulebook.rules()) {
        if (op == "all" ? !is_callable(*rule) : rule->op != op) continue;
        const std::vector<CheckOperand> operands = check_operands(*rule, rule->check.cases[0], Dtype::f32);
        const bool takes_floats = std::ranges::any_of(operands, [](const CheckOperand &o) { return is_float(o.type.dtype); });
        const auto is_of = [&](const LibraryKernel &kernel) { return kernel.steps[0].rule == rule; };
        if (std::ranges::none_of(defaults, is_of)) add(check_case_kernel(*rule), takes_floats);
        for (const LibraryKernel &kernel : defaults)
            if (is_of(kernel)) add(kernel, takes_floats);
    }
    if (kernels.empty()) callable_rule(rulebook, op, {});
    return kernels;
}

} // namespace scalide

#include "transforms/fusion/extract.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "ir/text.h"
#include "transforms/fusion/groups/overwrites.h"
#include "transforms/library/kernel_call.h"
#include <algorithm>

namespace scalide {

namespace {

/// Copies the nodes of one group into a kernel. Each node is preceded by the floating nodes that it needs.
class KernelBuilder {
public:
    KernelBuilder(const Groups &groups, int group) : groups_(groups), rewriter_(groups.program()) {
        kernel().programs.clear();
        kernel().attributes = {};
        for (ValueId input : groups.inputs(group)) add_argument(input);
        for (int node : groups[group].nodes) {
            for (ValueId operand : program().nodes[node].operands) add_floating(operand);
            rewriter_.copy(program().nodes[node]);
        }
        for (ValueId output : groups.outputs(group)) add_result(output);
    }

    Program take() { return rewriter_.take(); }

private:
    const Program &program() const { return groups_.program(); }
    Program &kernel() { return rewriter_.result(); }

    void add_argument(ValueId value) {
        rewriter_.map(value, add_value(kernel(), program().value_name(value), program().type(value)));
        kernel().arguments.push_back({rewriter_(value), false, false});
    }

    void add_floating(ValueId value) {
        if (rewriter_.is_mapped(value)) return;
        const int node = groups_.graph().producer(value);
        internal_check(node >= 0 && groups_.graph().is_floating(node), "fuse: a kernel needs a value that is no input of it");
        for (ValueId operand : program().nodes[node].operands) add_floating(operand);
        rewriter_.copy(program().nodes[node]);
    }

    void add_result(ValueId value) {
        Result result{program().value_name(value), rewriter_(value), false, -1};
        for (const Overwrite &overwrite : groups_.graph().overwrites_by(groups_.graph().producer(value)))
            if (rewriter_.is_mapped(overwrite.argument)) overwrite_argument(result, rewriter_(overwrite.argument));
        kernel().results.push_back(result);
    }

    void overwrite_argument(Result &result, ValueId value) {
        const auto argument = std::ranges::find(kernel().arguments, value, &Argument::value);
        argument->inout = true;
        result.argument = static_cast<int>(argument - kernel().arguments.begin());
        result.name = kernel().value_name(value);
    }

    const Groups &groups_;
    Rewriter rewriter_;
};

/// True if the kernel has a single result and exactly one transpose, which moves the innermost axis. All other nodes are elementwise.
bool is_transposition(const Program &kernel) {
    int transposes = 0;
    for (const Node &node : kernel.nodes) {
        const Access access = access_of(kernel, node);
        if (access == Access::same || access == Access::scalar) continue;
        if (node.op != "transpose") return false;
        const int64_t innermost = to_integers(node.attributes.at("permutation")).back();
        transposes += innermost + 1 == kernel.type(node.operands[0]).rank() ? 2 : 1;
    }
    return transposes == 1 && kernel.results.size() == 1;
}

/// True if the node reduces each row, and neither the rows nor the whole array.
bool folds_columns(const Program &kernel, const Node &node) {
    return is_reduction(node) && !kernel.type(node.results[0]).is_scalar() &&
           !leaves_columns(kernel.type(node.operands[0]).shape, reduced_axes(node));
}

int count_row_axes(const Program &kernel) {
    for (const Node &node : kernel.nodes)
        if (folds_columns(kernel, node)) return kernel.type(node.operands[0]).rank() - kernel.type(node.results[0]).rank();
    throw InternalError("internal error: fuse: a row kernel without a reduction");
}

Program build_kernel(const Groups &groups, int group) {
    Program kernel = KernelBuilder(groups, group).take();
    const KernelKind kind = groups[group].kind;
    kernel.attributes["kind"] = kind == KernelKind::map && is_transposition(kernel) ? "transpose" : std::string(to_string(kind));
    if (!groups[group].library.empty()) {
        kernel.attributes["library"] = groups[group].library;
        kernel.attributes["call"] = to_attribute(in_kernel(*groups[group].call, groups.inputs(group), groups.outputs(group)));
    }
    // A setting of the program for each of its kernels.
    if (const auto setting = groups.program().attributes.find("arithmetic"); setting != groups.program().attributes.end())
        kernel.attributes["arithmetic"] = setting->second;
    if (kind == KernelKind::row) kernel.attributes["row_axes"] = count_row_axes(kernel);
    return canonical(kernel);
}

} // namespace

const std::string &KernelSet::name_of(Program kernel) {
    const auto [known, is_new] = names_.emplace(to_string(kernel), "");
    if (is_new) {
        const std::string &kind = kernel.attributes.at("kind").word;
        known->second = kind + "_" + std::to_string(++counts_[kind]);
        kernel.name = known->second;
        kernels_.push_back(std::move(kernel));
    }
    return known->second;
}

Program extract_kernels(const Groups &groups, const std::vector<int> &order, KernelSet &kernels) {
    const Program &program = groups.program();
    Rewriter rewriter(program);
    rewriter.result().programs.clear();
    rewriter.copy_arguments();
    for (int group : order) {
        Node call;
        call.op = "call";
        call.attributes["program"] = kernels.name_of(build_kernel(groups, group));
        call.operands = groups.inputs(group); // the kernel's arguments have the same order
        call.results = groups.outputs(group);
        call.location = program.nodes[groups[group].nodes.back()].location;
        rewriter.copy(call);
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide

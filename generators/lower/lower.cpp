#include "lower/lower.h"
#include "ir/reduction_axes.h"
#include "kinds/kernel_kinds.h"
#include "lower/finish/device_forms.h"
#include "lower/finish/hidden_conditions.h"
#include "lower/formats/formats.h"
#include "lower/shapes/kernel_passes.h"
#include "lower/values/kinds.h"
#include "lower/values/outputs.h"
#include "lower/values/panels.h"
#include "lower/values/shared.h"

namespace scalide {
namespace {

const std::map<std::string, void (*)(Lowering &)> kinds = {
    {"scalar", lower_scalar},       {"map", lower_map},           {"row", lower_row},     {"column", lower_column},   {"full", lower_full},
    {"transpose", lower_transpose}, {"contract", lower_contract}, {"scan", lower_scan},   {"scatter", lower_scatter}, {"sort", lower_sort},
    {"window", lower_window},       {"tiled", lower_tiled},       {"small", lower_small},
};

bool is_overwritten(const Program &program, int argument) {
    return std::ranges::any_of(program.results, [&](const Result &result) { return result.argument == argument; });
}

/// True if a matmul reduces the argument, or values that depend on it, to rank 0.
bool is_reduced_by_matmul(const Program &program, int argument) {
    if (program.attributes.at("kind").word != "contract") return false;
    std::vector<bool> depends(program.values.size());
    depends[program.arguments[argument].value] = true;
    return std::ranges::any_of(program.nodes, [&](const Node &node) {
        const bool reads = std::ranges::any_of(node.operands, [&](ValueId operand) { return depends[operand]; });
        for (const ValueId result : node.results) depends[result] = reads;
        return reads && is_reduction(node);
    });
}

/// Kernels whose loops go over rows of their arrays. The schedules of GPUs need constant strides for wide accesses.
bool goes_over_rows(const Program &program, const Halide::Target &target) {
    const std::string &kind = program.attributes.at("kind").word;
    return !target.has_gpu_feature() && (kind == "row" || kind == "column" || kind == "contract");
}

/// True if the kernel reads the strides of the buffer of an argument. A column of panels is a group of elements, so that the stride between
/// columns must be a constant: with a stride from the buffer, 1024 x 512 x 784 in bf16 gathers groups and takes 11.7 ms instead of 3.9
/// (EPYC Zen 4, two threads, 2026-11-29).
bool reads_strides_of(const LoweredKernel &kernel, int argument) {
    return kernel.reads_strides && !is_overwritten(kernel.program, argument) && !holds_panels(kernel.program, argument);
}

bool has_exact_arithmetic(const Program &program) {
    const auto setting = program.attributes.find("arithmetic");
    return setting != program.attributes.end() && setting->second.word == "exact";
}

} // namespace

LoweredKernel begin_kernel(const Program &program, const Halide::Target &target) {
    LoweredKernel kernel;
    kernel.kind = program.attributes.at("kind").word;
    kernel.reads_strides = goes_over_rows(program, target);
    kernel.has_device_arithmetic = target.has_feature(Halide::Target::CUDA) && !has_exact_arithmetic(program);
    kernel.program = shape_kernel(program);
    for (const Symbol &symbol : program.symbols) {
        kernel.symbols.emplace(symbol.name, Halide::Param<int>("symbol_" + symbol.name));
    }
    for (int i = 0; i < int(kernel.program.arguments.size()); i++) {
        const Type &type = kernel.program.type(kernel.program.arguments[i].value);
        kernel.inputs.emplace_back();
        if (!is_overwritten(kernel.program, i) || is_reduced_by_matmul(kernel.program, i)) {
            kernel.inputs.back() = Halide::ImageParam(storage_type(type.dtype), type.rank(), argument_prefix + std::to_string(i));
            fix_layout(kernel.inputs.back(), type.shape, kernel, reads_strides_of(kernel, i));
        }
    }
    return kernel;
}

LoweredKernel lower(const Program &program, const Halide::Target &target, const Budgets &budgets) {
    const std::string why = why_illegal(program);
    internal_check(why.empty(), "lower: " + program.name + ": " + why);
    const auto found = kinds.find(program.attributes.at("kind").word);
    LoweredKernel kernel = begin_kernel(program, target);
    Values values(kernel);
    Lowering lowering{kernel, values, target, budgets};
    if (!target.has_gpu_feature()) {
        share_scalars(lowering);
    }
    found->second(lowering);
    hide_conditions(kernel);
    use_device_forms(kernel, target);
    return kernel;
}

std::vector<Halide::Argument> halide_arguments(const LoweredKernel &kernel) {
    std::vector<Halide::Argument> arguments;
    for (const Halide::ImageParam &input : kernel.inputs) {
        if (input.defined()) {
            arguments.push_back(input);
        }
    }
    for (const auto &[name, param] : kernel.symbols) {
        arguments.push_back(param);
    }
    return arguments;
}

std::vector<KernelOperand> call_order(const LoweredKernel &kernel) {
    const Program &program = kernel.program;
    std::vector<KernelOperand> operands;
    for (int i = 0; i < int(kernel.inputs.size()); i++) {
        if (kernel.inputs[i].defined()) {
            operands.push_back(
                {KernelOperand::Kind::argument, i, "", program.type(program.arguments[i].value), reads_strides_of(kernel, i)});
        }
    }
    for (const auto &[name, param] : kernel.symbols) {
        operands.push_back({KernelOperand::Kind::symbol, -1, name, {Dtype::i32, {}}});
    }
    for (const KernelOutput &output : kernel.outputs) {
        for (int result : output.results) {
            const bool strided = reads_strides(kernel, output.results);
            operands.push_back({KernelOperand::Kind::result, result, "", program.type(program.results[result].value), strided});
        }
    }
    return operands;
}

} // namespace scalide

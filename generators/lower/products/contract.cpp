#include "lower/products/contract.h"
#include "lower/formats/formats.h"
#include "lower/rows/reduction.h"
#include "lower/values/outputs.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;

namespace {

/// The part of the kernel that computes a value.
enum class Part { operand, epilogue, fold, sum };

/// The parts of a contract kernel.
struct Parts {
    std::vector<Part> of_value;
    std::vector<const Node *> folds, sums; ///< the reductions
};

Part part_of(const Node &node, const std::vector<Part> &of_value) {
    Part part = Part::operand;
    for (ValueId operand : node.operands) {
        internal_check(part == Part::operand || of_value[operand] == Part::operand || of_value[operand] == part,
                       "contract: " + node.op + " joins values that are made one after the other");
        part = std::max(part, of_value[operand]);
    }
    return part;
}

Parts take_apart(const Program &program, const Contraction &contraction) {
    Parts parts{std::vector<Part>(program.values.size(), Part::operand), {}, {}};
    for (const Node &node : program.nodes) {
        Part part = part_of(node, parts.of_value);
        if (&node == contraction.node) {
            part = Part::epilogue;
        } else if (is_reduction(node)) { // over the result's shape, or over an operand's contracted axis
            const bool folds_all = program.type(node.results[0]).is_scalar() &&
                                   program.type(node.operands[0]).shape == program.type(contraction.node->results[0]).shape;
            part = folds_all ? Part::fold : Part::sum;
            (part == Part::fold ? parts.folds : parts.sums).push_back(&node);
        }
        for (ValueId result : node.results) {
            parts.of_value[result] = part;
        }
    }
    return parts;
}

/// Groups results that share a loop: results of one part and shape, in program order.
std::vector<std::vector<int>> group_results(const Program &program, const Parts &parts) {
    std::map<std::pair<Part, Extents>, std::vector<int>> groups;
    for (int i = 0; i < int(program.results.size()); i++) {
        ValueId value = program.results[i].value;
        // An epilogue may also return a value that only it reads, such as a mask.
        const Part part = std::max(parts.of_value[value], Part::epilogue);
        groups[{part, program.type(value).shape}].push_back(i);
    }
    std::vector<std::vector<int>> result;
    for (const auto &[key, group] : groups) {
        result.push_back(group);
    }
    return result;
}

/// Defines that the epilogue reads the product at the index of the result.
void bind_product(Lowering &lowering, const Contraction &contraction) {
    lowering.values.bind(contraction.node->results[0], [&lowering, contraction](const Index &index) -> Expr {
        return to_result(lowering, contraction, contraction.product(tile_index(contraction, index)));
    });
}

/// Returns what the schedule must know about the matmul, without stages.
ContractStages describe(const Contraction &contraction) {
    ContractStages stages;
    stages.batch = contraction.batch;
    stages.rows = contraction.rows;
    stages.columns = contraction.columns;
    stages.depth = contraction.depth;
    stages.has_rows = contraction.lhs.free_axis >= 0;
    stages.has_columns = contraction.rhs.free_axis >= 0;
    stages.packed.width = contraction.width;
    stages.packed.group = contraction.group;
    stages.packed.in_tiles = contraction.in_tiles;
    stages.packed.lhs_depth_contiguous = contraction.lhs.depth_contiguous;
    stages.packed.rhs_depth_contiguous = contraction.rhs.depth_contiguous;
    return stages;
}

} // namespace

Expr to_result(const Lowering &lowering, const Contraction &contraction, const Expr &sum) {
    const Dtype dtype = lowering.kernel.program.type(contraction.node->results[0]).dtype;
    return is_integer(dtype) ? Halide::cast(storage_type(dtype), sum) : sum;
}

Index result_index(const Contraction &contraction, const Index &batch_row_column) {
    const std::array<bool, 3> present = {contraction.lhs.batch_axis >= 0, contraction.lhs.free_axis >= 0, contraction.rhs.free_axis >= 0};
    Index index;
    for (size_t i = 0; i < present.size(); i++) {
        if (present[i]) {
            index.push_back(batch_row_column[i]);
        }
    }
    return index;
}

std::vector<Expr> tile_index(const Contraction &contraction, const Index &index) {
    const ContractOperand &lhs = contraction.lhs, &rhs = contraction.rhs;
    const Expr column = rhs.free_axis < 0 ? 0 : index.back();
    const Expr row = lhs.free_axis < 0 ? 0 : index[lhs.batch_axis >= 0];
    const Expr batch = lhs.batch_axis < 0 ? 0 : index[0];
    return {column % contraction.width, row, column / contraction.width, batch};
}

/// The outputs are in this order: results of the matmul's shape, rank-0 reductions, sums by shape.
void lower_contract(Lowering &lowering) {
    LoweredKernel &kernel = lowering.kernel;
    Contraction contraction = describe_contraction(lowering);
    kernel.stages = describe(contraction);
    Parts parts = take_apart(kernel.program, contraction);
    if (lowering.target.has_gpu_feature()) {
        const auto is_read_first = [&](const Result &result) { return result.argument >= 0 && kernel.inputs[result.argument].defined(); };
        internal_check(std::ranges::none_of(kernel.program.results, is_read_first), "contract: a GPU reduces arguments that it overwrites");
        lower_contract_sums(lowering, parts.sums);
        lower_plain_product(lowering, contraction, parts.folds);
    } else {
        lower_product(lowering, contraction);
        lower_contract_sums(lowering, parts.sums);
        lower_contract_folds(lowering, contraction, parts.folds);
        bind_product(lowering, contraction);
    }
    for (const std::vector<int> &group : group_results(kernel.program, parts)) {
        add_output(lowering, group, axis_vars(kernel.program.type(kernel.program.results[group[0]].value).rank()));
    }
}

} // namespace scalide

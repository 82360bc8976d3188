#include "transforms/analysis/costs.h"
#include <algorithm>

namespace scalide {

namespace {

/// From this cost on, computing an element again costs more than moving four bytes to memory and back.
constexpr int expensive = 10;

constexpr int64_t usual_extent = 128;

bool is_convert(const Node &node) { return node.op == "convert_element_type"; }

} // namespace

Shape shape_of(const Node &node) { return base_operator(node.op).shape; }

int cost_of(const Node &node) {
    const BaseOperator &op = base_operator(node.op);
    return op.shape == Shape::movement || op.shape == Shape::source ? 0 : op.cost;
}

bool is_expensive(const Node &node) { return cost_of(node) >= expensive; }

bool is_rounding(const Program &program, const Node &node) { return is_convert(node) && is_narrow(program.type(node.results[0]).dtype); }

bool is_decoding(const Program &program, const Node &node) {
    const Dtype from = program.type(node.operands.empty() ? node.results[0] : node.operands[0]).dtype,
                to = program.type(node.results[0]).dtype;
    return is_convert(node) && is_float(from) && size_of(from) < size_of(to) && !is_narrow(to);
}

bool is_copy(const Program &program, const Node &node) {
    return node.op == "reshape" && program.type(node.operands[0]) == program.type(node.results[0]);
}

NominalSizes::NominalSizes(const Program &program) {
    for (const Symbol &symbol : program.symbols) {
        const int64_t multiple = std::max<int64_t>(symbol.multiple, 1);
        const int64_t wanted = std::clamp(usual_extent, symbol.minimum, symbol.maximum);
        bindings_[symbol.name] = std::clamp((wanted + multiple - 1) / multiple * multiple, symbol.minimum, symbol.maximum);
    }
}

double NominalSizes::elements(const Extents &shape) const {
    double count = 1;
    for (const Extent &extent : shape) count *= static_cast<double>(extent.is_static() ? extent.value() : extent.evaluate(bindings_));
    return count;
}

} // namespace scalide

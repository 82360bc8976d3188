#include "lower/products/source_dtype.h"
#include "ir/rewrite.h"
#include <algorithm>
#include <array>

namespace scalide {

Dtype source_dtype(const Program &program, ValueId value) {
    static const std::array<std::string_view, 5> moves = {"broadcast_in_dim", "reshape", "transpose", "rev", "slice"};
    const std::vector<int> producer = producers(program);
    const auto node_of = [&](ValueId from) { return producer[from] < 0 ? nullptr : &program.nodes[size_t(producer[from])]; };
    const Node *node = node_of(value);
    while (node && std::ranges::find(moves, node->op) != moves.end()) node = node_of(node->operands[0]);
    const bool is_converted = node && node->op == "convert_element_type";
    return program.type(is_converted ? node->operands[0] : value).dtype;
}

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "kinds/panel_layout.h"

namespace scalide {

/// Appends movement between an operand and its panels. Both directions use the same three shapes:
///
///     sorted    the operand with its axes in the order of the panels, columns last
///     padded    sorted, with whole groups and panels
///     split     padded, with axes for the elements of a group and the columns of a panel
class PanelMovement {
public:
    PanelMovement(Program &program, const PanelLayout &layout, const Type &operand);

    /// False if an extent is symbolic and no multiple of a panel.
    bool is_possible() const { return is_possible_; }
    ValueId pack(ValueId value);
    ValueId unpack(ValueId value);

private:
    void find_panel_order();
    ValueId add(const std::string &op, std::vector<ValueId> operands, Attributes attributes, Type type);
    ValueId convert(ValueId value, Dtype dtype);
    ValueId transpose(ValueId value, const std::vector<int64_t> &order);
    ValueId reshape(ValueId value, const Extents &shape);
    ValueId pad(ValueId value);
    ValueId slice(ValueId value);

    Program &program_;
    const PanelLayout &layout_;
    const Type operand_;
    std::vector<int64_t> order_, panel_order_;
    Extents sorted_, padded_, split_;
    bool is_possible_ = false;
};

} // namespace scalide

#pragma once
#include "transforms/loops/batched_nodes.h"
#include "transforms/simplify/region_edit.h"
#include <map>

namespace scalide {

/// The values of the body of a loop that nodes before the loop can compute for all steps: they depend on captures, elements and the number
/// of the step alone, and each of their nodes can compute all steps at once.
class KnownSteps {
public:
    explicit KnownSteps(RegionEdit &edit);

    /// The body as it was first.
    const Program &body() const { return body_; }
    bool is_known(ValueId value) const { return known_[value] != Known::no; }
    bool varies(ValueId value) const { return known_[value] == Known::varies; }
    /// True for an element, and for movement of a known value: it costs nothing to compute.
    bool is_at_hand(ValueId value) const;

    /// Adds the nodes of a known value before the loop. Returns its value in all steps.
    StepsValue before(ValueId value);

private:
    enum class Known : uint8_t { no, same, varies };

    void learn(const Node &node);
    std::vector<bool> varying(const Node &node) const;
    ValueId add(const Node &node);

    RegionEdit &edit_;
    const Program body_;
    std::vector<Known> known_;
    std::vector<int> makers_;
    std::map<ValueId, ValueId> added_;
};

} // namespace scalide

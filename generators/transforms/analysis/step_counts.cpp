#include "transforms/analysis/step_counts.h"
#include <limits>

namespace scalide {

ValueId steps_between(Builder &builder, ValueId lower, ValueId upper) {
    const ValueId difference = builder.add_one("sub", {upper, lower});
    const ValueId zero = builder.constant(0, Dtype::i32);
    const ValueId has_wrapped = builder.add_one("lt", {difference, zero});
    const ValueId most = builder.constant(std::numeric_limits<int32_t>::max(), Dtype::i32);
    const ValueId positive = builder.add_one("select_n", {has_wrapped, difference, most});
    return builder.add_one("select_n", {builder.add_one("gt", {upper, lower}), zero, positive});
}

} // namespace scalide

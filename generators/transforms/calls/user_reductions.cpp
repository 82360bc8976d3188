#include "transforms/calls/user_reductions.h"
#include "ir/window.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

using Values = std::vector<ValueId>;

constexpr int64_t most_places = 1024; ///< elements of one window; each becomes a node

/// Builds the body of a reduction.
class Reducer {
public:
    Reducer(const Node &call, const Program &computation, const std::vector<Type> &operands, const Rulebook &rulebook)
        : call_(call), computation_(computation), builder_(rulebook, program_) {
        check(operands);
        program_.name = call.op;
        for (const Type &type : operands) {
            const bool is_array = program_.arguments.size() < operands.size() / 2;
            (is_array ? arrays_ : inits_).push_back(add_value(program_, is_array ? "x" : "init", type));
            program_.arguments.push_back({(is_array ? arrays_ : inits_).back()});
        }
    }

    Program reduce() {
        Values folded = arrays_;
        const std::vector<int64_t> axes = reduced_axes();
        const bool is_empty = std::ranges::any_of(axes, [&](int64_t axis) { return shape()[axis] == Extent(0); });
        if (is_empty) return finish(spread_inits(without(axes)));
        for (size_t i = axes.size(); i-- > 0;) folded = fold_axis(folded, axes[i]);
        return finish(combine(spread_inits(without(axes)), folded));
    }

    Program reduce_windows() {
        const std::vector<WindowAxis> axes = windows();
        Extents counts;
        int64_t places = 1;
        for (size_t i = 0; i < axes.size(); i++) {
            const auto count = window_count(shape()[i], axes[i]);
            if (!count) refuse("strides", "must be a divisor of a symbolic extent", to_string(shape()[i]));
            if (!axes[i].window.is_static()) refuse("window", "must be a number", to_string(axes[i].window));
            counts.push_back(*count);
            places *= axes[i].window.value();
        }
        if (places > most_places)
            refuse("window", "must have at most " + std::to_string(most_places) + " elements", std::to_string(places));
        const Values padded = pad(axes);
        std::vector<Values> parts;
        for (int64_t place = 0; place < places; place++) parts.push_back(under(padded, axes, counts, place));
        const Values inits = spread_inits(counts);
        return finish(parts.empty() ? inits : combine(inits, tree(parts)));
    }

private:
    const Extents &shape() const { return builder_.type(arrays_[0]).shape; }

    [[noreturn]] void refuse(const std::string &field, const std::string &requirement, const std::string &got) const {
        throw UserError({call_.location, call_.op + "." + field, requirement, got, ""});
    }

    void check(const std::vector<Type> &operands) const {
        const size_t count = operands.size() / 2;
        if (count == 0 || operands.size() % 2 != 0)
            refuse("operands", "must be arrays, then one initial value for each array", std::to_string(operands.size()) + " operands");
        if (computation_.arguments.size() != 2 * count || computation_.results.size() != count)
            refuse("program", "must take two values and return one value for each array", "'" + computation_.name + "'");
        for (size_t i = 0; i < operands.size(); i++) {
            const Type element{operands[i % count].dtype, {}};
            if (i < count && operands[i].shape != operands[0].shape) refuse("operands", "must have the same shape", to_string(operands[i]));
            if (i >= count && operands[i] != element)
                refuse("operands", "initial values must have the type " + to_string(element), to_string(operands[i]));
            check_element(computation_.type(computation_.arguments[i].value), element);
            check_element(computation_.type(computation_.results[i % count].value), element);
        }
        for (const Node &node : computation_.nodes) {
            const bool is_constant = node.op == "constant";
            const Rule *rule = builder_.rulebook().find(node.op);
            if (!is_constant && (rule == nullptr || rule->family != "elementwise"))
                refuse("program", "must consist of elementwise operators", node.op + " in " + computation_.name);
        }
    }

    void check_element(const Type &got, const Type &element) const {
        if (got != element) refuse("program", "must take and return values of type " + to_string(element), to_string(got));
    }

    /// In ascending order; negative axes are replaced.
    std::vector<int64_t> reduced_axes() const {
        const auto found = call_.attributes.find("axes");
        const auto rank = static_cast<int64_t>(shape().size());
        std::vector<int64_t> axes = found == call_.attributes.end() ? count_up(rank) : to_integers(found->second);
        for (int64_t &axis : axes) axis += axis < 0 ? rank : 0;
        std::ranges::sort(axes);
        const bool is_good = std::ranges::all_of(axes, [&](int64_t axis) { return 0 <= axis && axis < rank; }) &&
                             std::ranges::adjacent_find(axes) == axes.end();
        if (!is_good) refuse("axes", "axes must be different and less than the rank " + std::to_string(rank), to_string(found->second));
        for (const int64_t axis : axes)
            if (!shape()[axis].is_static()) refuse("axes", "the reduced extents must be numbers", to_string(shape()[axis]));
        return axes;
    }

    Extents without(const std::vector<int64_t> &axes) const {
        Extents rest;
        for (const int64_t axis : other_axes(std::ssize(shape()), axes)) rest.push_back(shape()[axis]);
        return rest;
    }

    std::vector<WindowAxis> windows() const {
        for (const char *name : {"window", "strides", "low", "high", "base_dilation", "window_dilation"}) {
            const auto found = call_.attributes.find(name);
            const size_t size = found == call_.attributes.end() ? 0 : found->second.list.size();
            const bool may_lack = name != std::string_view("window");
            if (size != shape().size() && !(may_lack && size == 0)) refuse(name, "must have one entry for each axis", std::to_string(size));
        }
        return window_axes(call_.attributes, shape().size());
    }

    Values spread_inits(const Extents &shape) {
        Values spread;
        for (const ValueId init : inits_) spread.push_back(builder_.broadcast(init, shape));
        return spread;
    }

    /// Applies the computation to arrays, element by element.
    Values combine(const Values &a, const Values &b) {
        const Extents shape = builder_.type(a[0]).shape;
        std::map<ValueId, ValueId> made;
        for (size_t i = 0; i < computation_.arguments.size(); i++)
            made[computation_.arguments[i].value] = i < a.size() ? a[i] : b[i - a.size()];
        for (const Node &node : computation_.nodes) {
            Values operands;
            for (const ValueId operand : node.operands) operands.push_back(builder_.broadcast(made.at(operand), shape));
            const Values results = builder_.add(node.op, operands, node.attributes);
            for (size_t i = 0; i < results.size(); i++) made[node.results[i]] = results[i];
        }
        Values results;
        for (const Result &result : computation_.results) results.push_back(builder_.broadcast(made.at(result.value), shape));
        return results;
    }

    Values slice(const Values &values, const SliceBounds &bounds) {
        Values parts;
        for (const ValueId value : values) parts.push_back(builder_.add_one("slice", {value}, slice_attributes(bounds)));
        return parts;
    }

    /// Returns every `stride`-th element of an axis, from `start` up to `limit`.
    Values along(const Values &values, int64_t axis, std::array<int64_t, 3> start_limit_stride) {
        const auto [start, limit, stride] = start_limit_stride;
        SliceBounds bounds{{}, builder_.type(values[0]).shape, {}};
        bounds.start.assign(bounds.limit.size(), Extent(0));
        bounds.strides.assign(bounds.limit.size(), 1);
        bounds.start[axis] = start;
        bounds.limit[axis] = limit;
        bounds.strides[axis] = stride;
        return slice(values, bounds);
    }

    /// Combines neighbours along an axis until one is left, and removes the axis.
    Values fold_axis(Values values, int64_t axis) {
        Extents shape = builder_.type(values[0]).shape;
        for (int64_t extent = shape[axis].value(); extent > 1; extent = (extent + 1) / 2) {
            const int64_t paired = extent / 2 * 2;
            Values next = combine(along(values, axis, {0, paired, 2}), along(values, axis, {1, paired, 2}));
            if (paired < extent) {
                const Values last = along(values, axis, {paired, extent, 1});
                for (size_t i = 0; i < next.size(); i++)
                    next[i] = builder_.add_one("concatenate", {next[i], last[i]}, {{"dimension", axis}});
            }
            values = next;
        }
        shape.erase(shape.begin() + axis);
        for (ValueId &value : values) value = builder_.add_one("reshape", {value}, reshape_attributes(shape));
        return values;
    }

    Values pad(const std::vector<WindowAxis> &axes) {
        Padding padding;
        for (const WindowAxis &axis : axes) {
            padding.low.push_back(axis.low);
            padding.high.push_back(axis.high);
            padding.interior.push_back(axis.base_dilation - 1);
        }
        Values padded;
        for (size_t i = 0; i < arrays_.size(); i++)
            padded.push_back(builder_.add_one("pad", {arrays_[i], inits_[i]}, pad_attributes(padding)));
        return padded;
    }

    /// Returns the elements that all windows have at one position, which is a row-major index into the window.
    Values under(const Values &padded, const std::vector<WindowAxis> &axes, const Extents &counts, int64_t place) {
        SliceBounds bounds{Extents(axes.size()), Extents(axes.size()), std::vector<int64_t>(axes.size())};
        for (size_t i = axes.size(); i-- > 0; place /= axes[i].window.value()) {
            bounds.start[i] = place % axes[i].window.value() * axes[i].window_dilation;
            bounds.limit[i] = bounds.start[i] + dilated(counts[i], axes[i].stride);
            bounds.strides[i] = axes[i].stride;
        }
        return slice(padded, bounds);
    }

    Values tree(std::vector<Values> parts) {
        while (parts.size() > 1) {
            std::vector<Values> next;
            for (size_t i = 0; i < parts.size(); i += 2) next.push_back(i + 1 < parts.size() ? combine(parts[i], parts[i + 1]) : parts[i]);
            parts = std::move(next);
        }
        return parts[0];
    }

    Program finish(const Values &results) {
        for (size_t i = 0; i < results.size(); i++) program_.results.push_back({computation_.results[i].name, results[i]});
        return std::move(program_);
    }

    const Node &call_;
    const Program &computation_;
    Program program_;
    Builder builder_;
    Values arrays_, inits_;
};

} // namespace

Program reduce_by_program(const Node &call, const Program &computation, const std::vector<Type> &operands, const Rulebook &rulebook) {
    return Reducer(call, computation, operands, rulebook).reduce();
}

Program reduce_windows_by_program(const Node &call, const Program &computation, const std::vector<Type> &operands,
                                  const Rulebook &rulebook) {
    return Reducer(call, computation, operands, rulebook).reduce_windows();
}

} // namespace scalide

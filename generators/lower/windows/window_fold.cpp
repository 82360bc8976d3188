#include "lower/halide/strict.h"
#include "lower/rows/reduction.h"
#include "lower/values/movement.h"
#include "lower/windows/window.h"
#include "lower/windows/window_places.h"
#include <functional>

// Reductions of windows. A small window is unrolled into one expression, which the loops of the result evaluate in registers. A large
// window is reduced in a stage of its own.
namespace scalide {
using Halide::Expr;

namespace {

constexpr int64_t most_unrolled = 36; ///< positions of the largest window that is unrolled

/// A reduction over the positions of a window, for each index of a result.
struct WindowSum {
    Extents places; ///< extents of a window
    Expr start;
    std::function<Expr(const Index &index, const Index &place)> term;
    std::function<Expr(const Expr &, const Expr &)> combine;
};

bool is_small(const Extents &places) {
    const Extent count = element_count(places);
    return count.is_static() && count.value() <= most_unrolled;
}

Expr unrolled(const WindowSum &sum, const Index &index) {
    Expr total;
    const int64_t count = element_count(sum.places).value();
    for (int64_t number = 0; number < count; number++) {
        Index place(sum.places.size());
        int64_t rest = number;
        for (size_t axis = place.size(); axis-- > 0; rest /= sum.places[axis].value()) {
            place[axis] = int(rest % sum.places[axis].value());
        }
        const Expr term = sum.term(index, place);
        total = total.defined() ? sum.combine(total, term) : term;
    }
    if (!total.defined()) {
        return sum.start;
    }
    const bool is_sum = total.type().is_float() && Halide::Internal::is_const_zero(sum.start);
    return is_sum ? strict_add(total, sum.start) : total; // a sum that starts from +0 never ends at -0
}

/// A reduction domain over the window's axes whose extent is not 1, and the window position that it gives.
struct PlaceLoops {
    Halide::RDom domain;
    Index place;
};

/// The last axis is the innermost loop.
PlaceLoops loop_over(const Extents &places, const Values &values) {
    std::vector<Halide::Range> ranges;
    for (size_t axis = places.size(); axis-- > 0;) {
        if (!(places[axis] == Extent(1))) {
            ranges.emplace_back(0, values.extent(places[axis]));
        }
    }
    if (ranges.empty()) {
        ranges.emplace_back(0, 1);
    }
    PlaceLoops loops{Halide::RDom(ranges, "place"), Index(places.size(), Expr(0))};
    int dimension = 0;
    for (size_t axis = places.size(); axis-- > 0;) {
        if (!(places[axis] == Extent(1))) {
            loops.place[axis] = Expr(loops.domain[dimension++]);
        }
    }
    return loops;
}

WindowStages &window_stages(Lowering &lowering) { return std::get<WindowStages>(lowering.kernel.stages); }

Index to_index(const std::vector<Halide::Var> &vars) { return {vars.begin(), vars.end()}; }

Halide::Func add_fold(Lowering &lowering, const WindowSum &sum, int rank) {
    const std::vector<Halide::Var> vars = axis_vars(rank);
    Halide::Func fold("fold");
    const PlaceLoops loops = loop_over(sum.places, lowering.values);
    fold(buffer_order(vars)) = sum.start;
    const Expr total = sum.combine(fold(buffer_order(vars)), sum.term(to_index(vars), loops.place));
    assign(fold(buffer_order(vars)), over(loops.domain, Halide::Tuple(total)));
    window_stages(lowering).fold = fold;
    return fold;
}

/// Binds `result` to finish(sum).
void bind_sum(Lowering &lowering, ValueId result, const WindowSum &sum, const std::function<Expr(const Expr &)> &finish) {
    Values &values = lowering.values;
    if (is_small(sum.places)) {
        values.bind(result, [=](const Index &index) { return finish(unrolled(sum, index)); });
        return;
    }
    const Halide::Func fold = add_fold(lowering, sum, values.program().type(result).rank());
    values.bind(result, [=](const Index &index) { return finish(fold(buffer_order(index))); });
}

WindowPlaces places_of(const Values &values, const Node &node, const Extents &elements, const Extents &windows) {
    return WindowPlaces(values, window_axes(node.attributes, elements.size()), elements, windows);
}

/// LAX's comparison: false if an operand is NaN.
Expr at_least(const Expr &a, const Expr &b) { return a.type().is_float() ? strict_le(b, a) : a >= b; }

/// Returns the row-major number of a position within a window.
Expr number_of(const Index &place, const Extents &extents, const Values &values) {
    Expr number = 0;
    for (size_t axis = 0; axis < place.size(); axis++) {
        number = number * values.extent(extents[axis]) + place[axis];
    }
    return Halide::Internal::simplify(number);
}

/// Returns a stage with two components: for each window, its largest (smallest) element and the number of that element's position. Of equal
/// elements the first wins. The number is -1 if the window has no element.
Halide::Func add_winner(Lowering &lowering, const Node &node, const WindowPlaces &places) {
    Values &values = lowering.values;
    const ValueId operand = node.operands[1];
    const std::vector<Halide::Var> vars = axis_vars(int(places.axes().size()));
    const Expr zero = make_constant(values.program().type(operand).dtype, 0);
    Halide::Func winner("winner");
    winner(buffer_order(vars)) = {zero, -1};
    const PlaceLoops loops = loop_over(places.extents(), values);
    const WindowPlaces::Place place = places.element(to_index(vars), loops.place);
    const Expr value = place.choose(values.at(operand, place.index), zero);
    const Expr best = winner(buffer_order(vars))[0], number = winner(buffer_order(vars))[1];
    const bool largest = node.attributes.at("largest").word == "true";
    Expr stays = number >= 0 && (largest ? at_least(best, value) : at_least(value, best));
    if (place.inside.defined()) {
        stays = stays || !place.inside;
    }
    winner(buffer_order(vars)) = {Halide::select(stays, best, value),
                                  Halide::select(stays, number, number_of(loops.place, places.extents(), values))};
    window_stages(lowering).winner = winner;
    return winner;
}

/// Strict, so that all targets add in the same order.
Expr add(const Expr &a, const Expr &b) { return a.type().is_float() ? strict_add(a, b) : a + b; }

Expr winner_at(const Halide::Func &winner, const Index &window) { return winner(buffer_order(window))[1]; }

} // namespace

void lower_reduce_window(Lowering &lowering, const Node &node) {
    Values &values = lowering.values;
    const Program &program = values.program();
    const Type &operand = program.type(node.operands[0]);
    const WindowPlaces places = places_of(values, node, operand.shape, program.type(node.results[0]).shape);
    const Reduction reduction(program, node);
    const ValueId from = node.operands[0];
    const WindowSum sum{places.extents(), reduction.identity()[0],
                        [=, &values](const Index &index, const Index &k) {
                            const WindowPlaces::Place place = places.element(index, k);
                            return place.choose(reduction.term(values.at(from, place.index), Expr())[0], reduction.identity()[0]);
                        },
                        [=](const Expr &a, const Expr &b) { return reduction.combine({a}, {b})[0]; }};
    bind_sum(lowering, node.results[0], sum, [=](const Expr &total) { return reduction.result({total}); });
}

void lower_select_and_scatter_add(Lowering &lowering, const Node &node) {
    Values &values = lowering.values;
    const Program &program = values.program();
    const ValueId source = node.operands[0];
    const WindowPlaces places = places_of(values, node, program.type(node.operands[1]).shape, program.type(source).shape);
    const Halide::Func winner = add_winner(lowering, node, places);
    const Expr zero = make_constant(program.type(source).dtype, 0);
    const WindowSum sum{places.extents(), zero,
                        [=, &values](const Index &index, const Index &k) {
                            const WindowPlaces::Place window = places.window(index, k);
                            const Expr is_here = winner_at(winner, window.index) == number_of(k, places.extents(), values);
                            return window.choose(Halide::select(is_here, values.at(source, window.index), zero), zero);
                        },
                        add};
    bind_sum(lowering, node.results[0], sum, [](const Expr &total) { return total; });
}

void lower_select_and_gather_add(Lowering &lowering, const Node &node) {
    Values &values = lowering.values;
    const Program &program = values.program();
    const ValueId tangents = node.operands[0];
    const WindowPlaces places = places_of(values, node, program.type(tangents).shape, program.type(node.results[0]).shape);
    const Halide::Func winner = add_winner(lowering, node, places);
    const Expr zero = make_constant(program.type(tangents).dtype, 0);
    const WindowSum sum{places.extents(), zero,
                        [=, &values](const Index &index, const Index &k) {
                            const WindowPlaces::Place place = places.element(index, k);
                            const Expr is_here = winner_at(winner, index) == number_of(k, places.extents(), values);
                            return place.choose(Halide::select(is_here, values.at(tangents, place.index), zero), zero);
                        },
                        add};
    bind_sum(lowering, node.results[0], sum, [](const Expr &total) { return total; });
}

} // namespace scalide

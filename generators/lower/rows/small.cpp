#include "expr/base_operators.h"
#include "lower/formats/formats.h"
#include "lower/halide/strict.h"
#include "lower/rows/reduction.h"
#include "lower/values/outputs.h"

// small: values that are read more than once, reductions and matmuls are Funcs of their own, which one thread computes one after the other.
// All other values are inlined. Sums have the order of the classes row, column, full and contract, so the bits are the same.
namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

class SmallLowering {
public:
    explicit SmallLowering(Lowering &lowering)
        : lowering_(lowering), program_(lowering.kernel.program), stages_(lowering.kernel.stages.emplace<SmallStages>()),
          reads_(program_.values.size()) {
        count_reads();
    }

    void lower() {
        for (const Node &node : program_.nodes) {
            const Shape shape = base_operator(node.op).shape;
            if (shape == Shape::reduce)
                reduce(node);
            else if (shape == Shape::contract)
                multiply(node);
            else if (is_stored(node))
                store(node.results[0]);
        }
        for (int result = 0; result < int(program_.results.size()); result++)
            add_output(lowering_, {result}, axis_vars(type_of(program_.results[size_t(result)].value).rank()));
    }

private:
    const Type &type_of(ValueId value) const { return program_.type(value); }
    /// Movement is free at each index, but one of several arrays contains the expressions of all of them.
    bool is_stored(const Node &node) const {
        const BaseOperator &op = base_operator(node.op);
        const bool is_element = op.shape == Shape::elementwise || op.joins;
        return op.shape == Shape::reduce || op.shape == Shape::contract || (is_element && reads_[size_t(node.results[0])] > 1);
    }

    /// Counts how often each element of a value is read, if values that are read once are inlined. More than one counts as two.
    void count_reads() {
        for (const Result &result : program_.results) reads_[size_t(result.value)]++;
        for (auto node = program_.nodes.rbegin(); node != program_.nodes.rend(); ++node) {
            const bool is_matmul = base_operator(node->op).shape == Shape::contract;
            for (const ValueId operand : node->operands) {
                const bool repeats = is_matmul || count(node->results[0]) > count(operand);
                int &reads = reads_[size_t(operand)];
                reads = std::min(2, reads + (repeats ? 2 : is_stored(*node) ? 1 : reads_[size_t(node->results[0])]));
            }
        }
    }

    int64_t count(ValueId value) const { return element_count(type_of(value).shape).value(); }

    Func add(SmallStage::Kind kind, const std::string &word, std::vector<int64_t> extents) {
        stages_.funcs.push_back({kind, Func(next_name(word)), std::move(extents)});
        return stages_.funcs.back().func;
    }

    static std::vector<int64_t> extents_of(const Extents &shape) {
        std::vector<int64_t> extents;
        for (const Extent &extent : buffer_order(shape)) extents.push_back(extent.value());
        return extents;
    }

    std::string next_name(const std::string &word) const { return word + "_" + std::to_string(stages_.funcs.size()); }

    void store(ValueId value) {
        const Type &type = type_of(value);
        const std::vector<Var> vars = axis_vars(type.rank());
        const Func func = add(SmallStage::Kind::value, "value", extents_of(type.shape));
        func(buffer_order(vars)) = to_word(type.dtype, lowering_.values.at(value, Index(vars.begin(), vars.end())));
        lowering_.values.bind(value, func);
    }

    void reduce(const Node &node) {
        const ReductionGroup group({Reduction(program_, node)});
        reduces_trailing(program_, node) ? reduce_lines(node, group) : reduce_leading(node, group);
    }

    /// Returns the extents of the reduced axes, and of the others.
    std::pair<Extents, Extents> sides(const Node &node) const {
        const std::vector<int64_t> axes = reduced_axes(node);
        std::pair<Extents, Extents> sides;
        const Extents &shape = type_of(node.operands[0]).shape;
        for (int64_t axis = 0; axis < int64_t(shape.size()); axis++)
            (std::ranges::find(axes, axis) != axes.end() ? sides.first : sides.second).push_back(shape[size_t(axis)]);
        return sides;
    }

    /// Returns the index of an element from the indices of the reduced axes and of the others.
    static Index element(const Node &node, const Index &reduced, const Index &others) {
        const std::vector<int64_t> axes = reduced_axes(node);
        Index index;
        for (size_t r = 0, o = 0; r + o < reduced.size() + others.size();)
            index.push_back(std::ranges::find(axes, int64_t(r + o)) != axes.end() ? reduced[r++] : others[o++]);
        return index;
    }

    /// Trailing axes are one line of elements, which lanes add.
    void reduce_lines(const Node &node, const ReductionGroup &group) {
        const auto [reduced, others] = sides(node);
        const std::vector<Var> outer = axis_vars(int(others.size()));
        const auto at = [&, reduced = reduced](const Index &, const Expr &column) {
            return element(node, split_row(column, reduced, lowering_.values), Index(outer.begin(), outer.end()));
        };
        const Extent columns = element_count(reduced);
        ReductionSpace space{buffer_order(outer), lowering_.values.extent(columns), choose_lanes(columns), {}, at};
        space.terms = [&, axis = size_t(reduced_axes(node).front())](const Index &index) { // axes of extent 1 may follow
            return group.terms(lowering_.values, index, index[axis]);
        };
        const Func total = reduce_lanes(lowering_, group, space, stages_.lanes);
        for (size_t axis = 0; axis < outer.size(); axis++) {
            const Expr extent = lowering_.values.extent(others[axis]);
            for (Func func : {stages_.lanes.partial.back(), stages_.lanes.lane.back(), total}) func.bound(outer[axis], 0, extent);
        }
        group.bind(lowering_.values, total);
    }

    /// Combines `term` of a position in an array of this shape with the values of a sum.
    using AddTerm = std::function<Halide::Tuple(const std::vector<Expr> &sum, const Index &place, const Expr &term)>;

    /// Returns the sum of `terms` terms for each element of an array of this shape. A masked store would delay the load of the next
    /// addition. So if rows are longer than a vector but no whole vectors, the last vector overlaps with the one before.
    Func sum(const Extents &shape, const Halide::Tuple &start, const Expr &terms, const AddTerm &add_term) {
        const std::vector<int64_t> extents = extents_of(shape);
        const std::vector<Var> vars = axis_vars(int(shape.size()));
        Index place(vars.begin(), vars.end());
        if (extents.empty() || extents[0] <= small_lanes || extents[0] % small_lanes == 0) {
            const Func func = add(SmallStage::Kind::sum, "sum", extents);
            define_sum(func, buffer_order(vars), place, start, terms, add_term);
            return func;
        }
        const auto first = [last = int(extents[0]) - small_lanes](const Expr &vector) { return Halide::min(vector * small_lanes, last); };
        std::vector<int64_t> by_vector = extents;
        by_vector[0] = (extents[0] + small_lanes - 1) / small_lanes;
        by_vector.insert(by_vector.begin(), small_lanes);
        const Func vectors = add(SmallStage::Kind::vectors, "vectors", by_vector);
        std::vector<Var> args = buffer_order(vars);
        args[0] = Var("vector");
        args.insert(args.begin(), Var("lane"));
        place.back() = first(args[1]) + args[0];
        define_sum(vectors, args, place, start, terms, add_term);
        return join(vectors, extents, buffer_order(vars), first);
    }

    void define_sum(const Func &func, const std::vector<Var> &args, const Index &place, const Halide::Tuple &start, const Expr &terms,
                    const AddTerm &add_term) {
        const Halide::RDom term(0, terms, next_name("term"));
        assign(func(args), start);
        assign(func(args), over(term, add_term(components(func(args), int(start.size())), place, term)));
    }

    Func join(const Func &vectors, const std::vector<int64_t> &extents, const std::vector<Var> &vars,
              const std::function<Expr(const Expr &)> &first) {
        const Func joined = add(SmallStage::Kind::joined, "joined", extents);
        const Halide::RDom r({{0, small_lanes}, {0, int(extents[0] + small_lanes - 1) / small_lanes}}, next_name("vector"));
        std::vector<Expr> undefined, args(vars.begin(), vars.end()), from = args;
        for (const Halide::Type &type : vectors.types()) undefined.push_back(Halide::undef(type));
        args[0] = first(r.y) + r.x;
        from[0] = r.y;
        from.insert(from.begin(), r.x);
        assign(joined(vars), Halide::Tuple(undefined));
        assign(joined(args), Halide::Tuple(components(vectors(from), vectors.outputs())));
        return joined;
    }

    /// Leading axes are added row by row.
    void reduce_leading(const Node &node, const ReductionGroup &group) {
        const auto [reduced, others] = sides(node);
        const auto add_row = [&, reduced = reduced](const std::vector<Expr> &sum, const Index &place, const Expr &row) {
            return group.combine(sum, group.terms(lowering_.values, element(node, split_row(row, reduced, lowering_.values), place), row));
        };
        group.bind(lowering_.values, sum(others, group.identity(), lowering_.values.extent(element_count(reduced)), add_row));
    }

    /// The axes of one operand of a matmul.
    struct Operand {
        ValueId value;
        std::vector<int64_t> batch, contracted, free;
    };
    Operand operand_of(const Node &dot, size_t side) const {
        Operand operand{dot.operands[side], {}, to_integers(dot.attributes.at("contract").list[side]), {}};
        const auto batch = dot.attributes.find("batch");
        if (batch != dot.attributes.end() && !batch->second.list.empty()) operand.batch = to_integers(batch->second.list[side]);
        const auto is_in = [](const std::vector<int64_t> &axes, int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); };
        for (int64_t axis = 0; axis < type_of(operand.value).rank(); axis++)
            if (!is_in(operand.batch, axis) && !is_in(operand.contracted, axis)) operand.free.push_back(axis);
        return operand;
    }

    /// Returns the index of the operand's element for a result element and the indices of the contracted axes.
    Index factor_at(const Operand &operand, size_t first_free, const Index &place, const Index &depth) const {
        Index index(size_t(type_of(operand.value).rank()));
        for (size_t i = 0; i < operand.batch.size(); i++) index[size_t(operand.batch[i])] = place[i];
        for (size_t i = 0; i < depth.size(); i++) index[size_t(operand.contracted[i])] = depth[i];
        for (const int64_t axis : operand.free) index[size_t(axis)] = place[first_free++];
        return index;
    }

    void multiply(const Node &dot) {
        const Operand lhs = operand_of(dot, 0), rhs = operand_of(dot, 1);
        const Type &type = type_of(dot.results[0]);
        Extents depths;
        for (const int64_t axis : lhs.contracted) depths.push_back(type_of(lhs.value).shape[size_t(axis)]);
        // Integers wrap around: their sum is u32, because Halide's i32 must not overflow.
        const Halide::Type word = is_float(type.dtype) ? storage_type(type.dtype) : Halide::UInt(32);
        const auto add_product = [&](const std::vector<Expr> &sum, const Index &place, const Expr &term) {
            const Index depth = split_row(term, depths, lowering_.values);
            const size_t batch = lhs.batch.size();
            const Expr a = lowering_.values.at(lhs.value, factor_at(lhs, batch, place, depth));
            const Expr b = lowering_.values.at(rhs.value, factor_at(rhs, batch + lhs.free.size(), place, depth));
            return Halide::Tuple(sum[0] + Halide::cast(word, a) * Halide::cast(word, b));
        };
        const Func product =
            sum(type.shape, Halide::Tuple(Halide::cast(word, 0)), lowering_.values.extent(element_count(depths)), add_product);
        lowering_.values.bind(dot.results[0], [product, dtype = type.dtype](const Index &index) -> Expr {
            return Halide::cast(storage_type(dtype), without_assumptions(product(buffer_order(index))));
        });
    }

    Lowering &lowering_;
    const Program &program_;
    SmallStages &stages_;
    std::vector<int> reads_; ///< by value
};

} // namespace

void lower_small(Lowering &lowering) { SmallLowering(lowering).lower(); }

} // namespace scalide

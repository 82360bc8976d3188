#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// column: a task handles a piece of the columns in a block of rows. Sums stay in the first-level cache while the rows of the block are
// added. Tiles:
//   task          elements of a parallel task
//   columns       columns of a piece
//   long_columns  columns of a piece if there are `many_blocks` blocks of rows: these are enough tasks, and long rows are read faster
//   lanes         columns in a vector
//   unroll        rows added while a vector of sums is in registers
namespace scalide {
namespace {
using namespace Halide;

constexpr int many_blocks = 8;

class ColumnSchedule {
public:
    ColumnSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), stages_(std::get<ColumnStages>(kernel.stages)), tiles_(tiles) {}

    void apply() {
        for (const ColumnSums &sums : stages_.sums) {
            schedule_sums(sums, sums.rest, 1, 1);
            if (sums.block.defined()) schedule_sums(sums, sums.block, to_expr(sums.rows, kernel_) / sums.block_rows, sums.group);
            schedule_total(sums.total);
        }
        schedule_totals(stages_.whole);
        for (const KernelOutput &output : kernel_.outputs) {
            schedule_elements(kernel_, output, tiles_);
        }
    }

private:
    int lanes() const { return tiles_.at("lanes"); }

    /// Loops, innermost first: lanes, a few rows, vectors, rows, and the tasks: pieces, other axes, blocks. A step that adds a group of
    /// rows reads elements of 16 bits, so that two vectors of sums belong to a vector of elements.
    void schedule_sums(const ColumnSums &sums, Func stage, const Expr &blocks, int group) {
        const int lanes = group > 1 ? 2 * this->lanes() : lanes_for(to_expr(sums.columns, kernel_), this->lanes());
        const std::vector<Var> args = stage.args();
        Var columns = args[0], piece("piece"), vector("vector");
        RVar row = stage.rvars(0)[0], rows("rows");
        stage.compute_root().vectorize(columns, lanes, TailStrategy::Predicate);
        Stage update = stage.update(0);
        update.split(columns, vector, columns, lanes, TailStrategy::Predicate).vectorize(columns);
        const Expr most = Internal::simplify(select(blocks >= many_blocks, tiles_.at("long_columns"), tiles_.at("columns")));
        update.split(vector, piece, vector, Internal::simplify(most / lanes), TailStrategy::GuardWithIf);
        if (args.size() > 1 && args.back().name() == "block" && group == 1) {
            update.split(row, rows, row, tiles_.at("unroll")).unroll(row);
            update.reorder({columns, row, vector, rows, piece});
        } else {
            update.reorder({columns, vector, row, piece});
        }
        std::vector<Var> outer(args.begin() + 1, args.end());
        outer.insert(outer.begin(), piece);
        Expr all = to_expr(sums.columns, kernel_), pieces = (all + most - 1) / most;
        Expr work = min(all, most) * min(to_expr(sums.rows, kernel_), sums.block_rows);
        parallelize(update, *fuse_loops(update, outer), pieces * to_expr(sums.others, kernel_) * blocks, work, tiles_.at("task"));
    }

    void schedule_total(Func total) {
        Var vector("vector"), columns = total.args()[0];
        total.compute_root().vectorize(columns, lanes(), TailStrategy::Predicate);
        for (int i = 0; i < total.num_update_definitions(); i++) {
            Stage update = total.update(i);
            update.split(columns, vector, columns, lanes(), TailStrategy::Predicate).vectorize(columns);
            update.reorder({VarOrRVar(columns), VarOrRVar(total.rvars(i)[0]), VarOrRVar(vector)});
        }
    }

    LoweredKernel &kernel_;
    const ColumnStages &stages_;
    const Tiles &tiles_;
};

} // namespace

void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Target &) { ColumnSchedule(kernel, tiles).apply(); }

} // namespace scalide

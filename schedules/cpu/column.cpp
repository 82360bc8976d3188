#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// column: tasks are pieces of columns in blocks of rows; sums stay in the first-level cache while the rows of a block pass by. Tiles:
//   task     elements of a parallel task
//   columns  of a piece
//   lanes    columns added together
//   unroll   rows added while a vector of sums is in registers
namespace scalide {
namespace {
using namespace Halide;

class ColumnSchedule {
public:
    ColumnSchedule(LoweredKernel &kernel, const Tiles &tiles) : kernel_(kernel), tiles_(tiles) {}

    void apply() {
        for (Func sums : kernel_.stages["rest"]) {
            schedule_sums(sums, 1);
        }
        for (Func sums : kernel_.stages["block"]) {
            schedule_sums(sums, extent(sums, "rows") / block_rows());
        }
        for (Func total : kernel_.stages["total"]) {
            if (!total.args().empty()) {
                schedule_total(total);
            }
        }
        schedule_totals(kernel_);
        for (const KernelOutput &output : kernel_.outputs) {
            schedule_elements(kernel_, output, tiles_);
        }
    }

private:
    int lanes() const { return tiles_.at("lanes"); }
    int block_rows() const { return int(to_number(kernel_.facts.at("block_rows"))); }

    Expr extent(const Func &sums, const std::string &name) const { return to_expr(kernel_.extents.at(sums.name() + "." + name), kernel_); }

    /// Loops, innermost first: lanes, rows of a few, vectors, rows, then the tasks: pieces, other axes, blocks.
    void schedule_sums(Func sums, const Expr &blocks) {
        const std::vector<Var> args = sums.args();
        Var columns = args[0], piece("piece"), vector("vector");
        RVar row = sums.rvars(0)[0], rows("rows");
        sums.compute_root().vectorize(columns, lanes(), TailStrategy::Predicate);
        Stage update = sums.update(0);
        update.split(columns, vector, columns, lanes(), TailStrategy::Predicate).vectorize(columns);
        update.split(vector, piece, vector, tiles_.at("columns") / lanes(), TailStrategy::GuardWithIf);
        if (args.size() > 1 && args.back().name() == "block") {
            update.split(row, rows, row, tiles_.at("unroll")).unroll(row);
            update.reorder({columns, row, vector, rows, piece});
        } else {
            update.reorder({columns, vector, row, piece});
        }
        std::vector<Var> outer(args.begin() + 1, args.end());
        outer.insert(outer.begin(), piece);
        Expr all = extent(sums, "columns"), pieces = (all + tiles_.at("columns") - 1) / tiles_.at("columns");
        Expr work = min(all, tiles_.at("columns")) * min(extent(sums, "rows"), block_rows());
        parallelize(update, *fuse_loops(update, outer), pieces * extent(sums, "others") * blocks, work, tiles_.at("task"));
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
    const Tiles &tiles_;
};

} // namespace

void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Target &) { ColumnSchedule(kernel, tiles).apply(); }

} // namespace scalide

#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// column: tasks are pieces of columns, in blocks of rows; sums stay in the first-level cache while the rows of a block pass by. Tiles:
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
        for (const char *name : {"block", "rest"}) {
            for (Func sums : kernel_.stages[name]) {
                schedule_sums(sums, std::string(name) == "block");
            }
        }
        for (Func total : kernel_.stages["total"]) {
            if (!total.args().empty()) {
                schedule_total(total);
            }
        }
        schedule_totals(kernel_);
        for (const KernelOutput &output : kernel_.outputs) {
            const std::vector<Expr> extents = bound_loops(kernel_, output);
            if (!extents.empty()) {
                vectorize_masked(loop_nest(output.func), output.func.args()[0], extents[0], tiles_.at("lanes"));
            }
        }
    }

private:
    void vectorize_columns(Stage nest, Var columns) { nest.vectorize(columns, tiles_.at("lanes"), TailStrategy::Predicate); }

    void schedule_sums(Func sums, bool is_block) {
        const std::vector<Var> args = sums.args();
        Var columns = args[0], piece("piece");
        RVar row = sums.rvars(0)[0], rows("rows");
        sums.compute_root();
        Stage update = sums.update(0);
        sums.split(columns, piece, columns, tiles_.at("columns"), TailStrategy::GuardWithIf);
        vectorize_columns(sums, columns);
        Var vector("vector");
        update.split(columns, piece, columns, tiles_.at("columns"), TailStrategy::GuardWithIf);
        update.split(columns, vector, columns, tiles_.at("lanes"), TailStrategy::Predicate).vectorize(columns);
        if (is_block) {
            update.split(row, rows, row, tiles_.at("unroll")).unroll(row);
            update.reorder({columns, row, vector, rows, piece});
        } else {
            update.reorder({columns, vector, row, piece});
        }
        std::vector<Var> outer(args.begin() + 1, args.end());
        outer.insert(outer.begin(), piece);
        update.parallel(*fuse_loops(update, outer));
    }

    void schedule_total(Func total) {
        total.compute_root();
        vectorize_columns(total, total.args()[0]);
        for (int i = 0; i < total.num_update_definitions(); i++) {
            Stage update = total.update(i);
            Var vector("vector"), columns = total.args()[0];
            update.split(columns, vector, columns, tiles_.at("lanes"), TailStrategy::Predicate).vectorize(columns);
            update.reorder({VarOrRVar(columns), VarOrRVar(total.rvars(i)[0]), VarOrRVar(vector)});
        }
    }

    LoweredKernel &kernel_;
    const Tiles &tiles_;
};

} // namespace

void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Target &) { ColumnSchedule(kernel, tiles).apply(); }

} // namespace scalide

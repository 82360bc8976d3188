#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// contract: one thread for each small tile of the product, in registers. Operands are read through the caches. If several loops read the
// product, it is stored. With a vector operand, there is one thread for each element. Tiles:
//   columns, rows                elements of a thread
//   thread_columns, thread_rows  threads of a block
//   threads                      threads of a block outside the product
namespace scalide::gpu {
namespace {
using namespace Halide;

class ContractSchedule {
public:
    ContractSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), stages_(std::get<ContractStages>(kernel.stages)), tiles_(tiles) {}

    void apply() {
        Func product = stages_.product.value;
        const KernelOutput *reader = only_reader(kernel_, product);
        for (const SumStages &sum : stages_.sums) {
            keep(sum.last, tiles_);
            if (!sum.before.defined()) continue;
            keep(sum.before, tiles_);
            compute_block(sum);
        }
        for (const KernelOutput &output : kernel_.outputs) {
            if (!output.func.args().empty() && &output != reader) schedule_elements(kernel_, output, tiles_);
        }
        if (reader) {
            bound_loops(kernel_, *reader);
            spread_product(reader->func);
        } else {
            product.compute_root();
            spread_product(product);
        }
        schedule_totals(kernel_, stages_.totals);
    }

private:
    int tile(const char *name) const { return tiles_.at(name); }

    /// Schedules the loops of `around`, which reads the product.
    void spread_product(Func around) {
        Stage nest = loop_nest(around);
        std::vector<Var> args = around.args();
        if (args.size() < 2 || !stages_.has_rows || !stages_.has_columns) {
            spread_tiles(nest, args, tile("threads"));
            return compute_one(stages_.product, around);
        }
        const Var x = args[0], y = args[1];
        Var block_x("block_x"), block_y("block_y"), thread_y("thread_y");
        nest.split(x, block_x, x, tile("thread_columns") * tile("columns"), TailStrategy::GuardWithIf);
        nest.split(y, block_y, y, tile("thread_rows") * tile("rows"), TailStrategy::GuardWithIf);
        nest.split(x, thread_loop(), x, tile("columns")).split(y, thread_y, y, tile("rows"));
        std::vector<VarOrRVar> order = {x, y, thread_loop(), thread_y, block_x, block_y};
        std::vector<Var> blocks = {block_x, block_y};
        order.insert(order.end(), args.begin() + 2, args.end());
        blocks.insert(blocks.end(), args.begin() + 2, args.end());
        nest.reorder(order).gpu_threads(thread_loop(), thread_y);
        spread_blocks(nest, blocks);
        nest.unroll(x).unroll(y);
        const SumStages &product = stages_.product;
        schedule_tile(product.last, LoopLevel(around, thread_loop()));
        if (!product.before.defined()) return;
        schedule_tile(product.before, LoopLevel(around, thread_loop()));
        schedule_tile(product.block, LoopLevel(product.before, product.before.rvars()[0]));
    }

    void schedule_tile(Func sum, const LoopLevel &level) {
        const Var column = sum.args()[0], row = sum.args()[1];
        sum.compute_at(level).store_in(MemoryType::Register);
        sum.bound_extent(column, tile("columns")).bound_extent(row, tile("rows")).unroll(column).unroll(row);
        for (size_t i = 2; i < sum.args().size(); i++) sum.bound_extent(sum.args()[i], 1);
        sum.update().reorder(column, row, sum.rvars()[0]).unroll(column).unroll(row);
    }

    LoweredKernel &kernel_;
    const ContractStages &stages_;
    const Tiles &tiles_;
};

} // namespace

void schedule_contract(LoweredKernel &kernel, const Tiles &tiles, const Target &) { ContractSchedule(kernel, tiles).apply(); }

} // namespace scalide::gpu

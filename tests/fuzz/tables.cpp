#include "fuzz/target.h"
#include "schedules/dispatch.h"
#include "schedules/tables/tiles.h"

namespace {

using namespace scalide;

/// What a table of tiles is asked by; not lowered.
LoweredKernel kernel_of(const std::string &kind, Stages stages) {
    LoweredKernel kernel;
    kernel.kind = kind;
    kernel.stages = std::move(stages);
    return kernel;
}

ContractStages contraction() {
    ContractStages stages;
    stages.rows = 128;
    stages.columns = 64;
    return stages;
}

void choose(const std::string &text) {
    static const std::vector<LoweredKernel> kernels = {kernel_of("map", {}), kernel_of("contract", contraction()),
                                                       kernel_of("row", RowStages())};
    static const std::vector<Halide::Target> targets = {Halide::Target("x86-64-linux-avx2"), Halide::Target("x86-64-linux-cuda")};
    const std::vector<TileRow> rows = parse_tiles(text, "fuzz.yaml");
    for (const Halide::Target &target : targets) {
        try {
            choose_budgets(rows, target);
        } catch (const UserError &) {
        }
        for (const LoweredKernel &kernel : kernels) {
            try {
                choose_row(rows, kernel, target);
            } catch (const UserError &) {
            }
        }
    }
}

} // namespace

// A table of tile numbers or of products that libraries compute is read, or the error says why not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text = to_text(data, size);
    try {
        choose(text);
    } catch (const UserError &) {
    }
    try {
        parse_dispatch(text, "fuzz.yaml");
    } catch (const UserError &) {
    }
    return 0;
}

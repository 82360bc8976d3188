#include "lower/shapes/kernel_passes.h"
#include "ir/verify.h"
#include "lower/shapes/axes.h"
#include "lower/shapes/loop_shapes.h"
#include "lower/shapes/rows.h"
#include "lower/shapes/whole_reductions.h"

namespace scalide {

namespace {

/// Kernels of class small have a loop for each stage, so there is no one loop whose shape the others could take.
enum class Classes { all, row, with_one_loop };

struct KernelPass {
    const char *name;
    Classes classes; ///< kernel classes to which it applies
    Program (*run)(const Program &kernel);
};

constexpr KernelPass passes[] = {
    {"take_loop_shapes", Classes::with_one_loop, take_loop_shapes},
    {"merge_axes", Classes::all, merge_axes},
    {"merge_rows", Classes::row, merge_rows},
    {"reduce_columns_first", Classes::row, reduce_columns_first},
};

bool applies(Classes classes, const std::string &kind) {
    if (classes == Classes::row) return kind == "row";
    return classes == Classes::all || (kind != "row" && kind != "small");
}

} // namespace

Program shape_kernel(const Program &kernel, const AfterPass &after_pass) {
    const std::string &kind = kernel.attributes.at("kind").word;
    Program shaped = kernel;
    for (const KernelPass &pass : passes) {
        if (!applies(pass.classes, kind)) continue;
        shaped = pass.run(shaped);
        verify(shaped, pass.name);
        if (after_pass) after_pass(pass.name, shaped);
    }
    return shaped;
}

const std::vector<std::string> &kernel_pass_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const KernelPass &pass : passes) all.emplace_back(pass.name);
        return all;
    }();
    return names;
}

} // namespace scalide

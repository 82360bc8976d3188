#include "lower/shapes/kernel_passes.h"
#include "ir/verify.h"
#include "lower/shapes/axes.h"
#include "lower/shapes/loop_shapes.h"
#include "lower/shapes/rows.h"
#include "lower/shapes/whole_reductions.h"

namespace scalide {

namespace {

enum class Classes { all, row, others };

struct KernelPass {
    const char *name;
    Classes classes; ///< kernel classes to which it applies
    Program (*run)(const Program &kernel);
};

constexpr KernelPass passes[] = {
    {"take_loop_shapes", Classes::others, take_loop_shapes},
    {"merge_axes", Classes::all, merge_axes},
    {"merge_rows", Classes::row, merge_rows},
    {"reduce_columns_first", Classes::row, reduce_columns_first},
};

bool applies(Classes classes, bool is_row) { return classes == Classes::all || (classes == Classes::row) == is_row; }

} // namespace

Program shape_kernel(const Program &kernel, const AfterPass &after_pass) {
    const bool is_row = kernel.attributes.at("kind").word == "row";
    Program shaped = kernel;
    for (const KernelPass &pass : passes) {
        if (!applies(pass.classes, is_row)) continue;
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

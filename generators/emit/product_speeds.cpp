#include "emit/product_speeds.h"
#include "ir/text.h"
#include "schedules/schedule.h"
#include "transforms/analysis/costs.h"
#include <algorithm>

namespace scalide {

namespace {

/// A product of two large operands of one format.
struct FormatProgram {
    std::string_view stored, sum;
};
constexpr FormatProgram format_programs[] = {{"f32", "f32"}, {"bf16", "f32"}, {"f16", "f32"}, {"f8_e4m3fn", "f32"}, {"i8", "i32"}};

struct KindProgram {
    std::string_view kind, lhs, rhs, result, product;
};
constexpr KindProgram kind_programs[] = {
    {"contract", "[1024, 1024]", "[1024, 1024]", "[1024, 1024]", "dot_general(a, b) {contract: [[1], [0]]}"},
    {"window", "[16, 28, 28, 128]", "[3, 3, 128, 128]", "[16, 28, 28, 128]",
     "conv_general_dilated(a, b) {strides: [1, 1], low: [1, 1], high: [1, 1], lhs_dilation: [1, 1], rhs_dilation: [1, 1], "
     "lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2], feature_group_count: 1, batch_group_count: 1}"},
};

Program program_of(const KindProgram &kind, const FormatProgram &format) {
    const auto type = [](std::string_view dtype, std::string_view shape) { return std::string(dtype) + std::string(shape); };
    const bool is_wide = format.stored == format.sum;
    std::string text = "program product {kind: " + std::string(kind.kind) + "} (";
    text += (is_wide ? "a: " : "x: ") + type(format.stored, kind.lhs) + (is_wide ? ", b: " : ", y: ") + type(format.stored, kind.rhs) +
            ") -> (z: " + type(format.sum, kind.result) + ") {\n";
    if (!is_wide) {
        text += "a = convert_element_type(x) : " + type(format.sum, kind.lhs) + "\n";
        text += "b = convert_element_type(y) : " + type(format.sum, kind.rhs) + "\n";
    }
    text += "z = " + std::string(kind.product) + " : " + type(format.sum, kind.result) + "\n}\n";
    return parse_program(text, "product");
}

ProductSpeed speed_of(const Program &kernel, const Halide::Target &target, const ProductForm &form) {
    const std::string &kind = kernel.attributes.at("kind").word;
    ProductSpeed speed{kind, form, find_rate(kind, rate_name(form), target)};
    speed.operations = NominalSizes(kernel).elements(form.terms);
    return speed;
}

/// Returns how often a step runs. A loop whose length is no extent counts once.
double repetitions(const BuiltForm &built, size_t step) {
    const NominalSizes sizes(built.form.program);
    double count = 1;
    for (const PlanBlock &block : built.plan.blocks)
        if (block.length && int(step) >= block.first_step && int(step) < block.end_step) count *= sizes.elements({*block.length});
    return count;
}

bool has_form(const ProductSpeed &speed, const std::string &kind, const ProductForm &form) {
    return speed.kind == kind && speed.form.format == form.format && speed.form.by == form.by;
}

void add(std::vector<ProductSpeed> &speeds, const ProductSpeed &speed, double times) {
    auto known = std::ranges::find_if(speeds, [&](const ProductSpeed &each) { return has_form(each, speed.kind, speed.form); });
    if (known == speeds.end()) known = speeds.insert(known, {speed.kind, speed.form, speed.rate});
    known->count++;
    known->operations += times * speed.operations;
}

} // namespace

bool ProductSpeed::is_no_gain() const {
    const bool is_decoded = form.by == MultiplyBy::f32, is_narrow = form.sums_floats && form.by != MultiplyBy::own;
    return is_narrow && (rate ? rate->percent <= 100 : is_decoded);
}

std::vector<ProductSpeed> product_speeds(const BuiltForm &built) {
    std::vector<ProductSpeed> speeds;
    const Halide::Target &target = built.target.halide;
    if (target.has_gpu_feature()) return speeds;
    const Budgets budgets = choose_budgets(target);
    std::map<std::string, std::optional<ProductForm>> forms;
    for (size_t step = 0; step < built.plan.steps.size(); step++) {
        if (built.plan.steps[step].collective) continue;
        const Program &kernel = built.kernel(built.plan.steps[step].kernel);
        const auto [form, is_new] = forms.try_emplace(kernel.name);
        if (is_new) form->second = product_form(kernel, target, budgets);
        if (form->second) add(speeds, speed_of(kernel, target, *form->second), repetitions(built, step));
    }
    std::ranges::stable_sort(speeds, std::greater(), &ProductSpeed::operations);
    return speeds;
}

std::vector<ProductSpeed> format_speeds(const std::string &kind, const Halide::Target &target) {
    const Budgets budgets = choose_budgets(target);
    const KindProgram &program = *std::ranges::find(kind_programs, kind, &KindProgram::kind);
    std::vector<ProductSpeed> speeds;
    for (const FormatProgram &format : format_programs) {
        const Program kernel = program_of(program, format);
        if (const auto form = product_form(kernel, target, budgets)) speeds.push_back(speed_of(kernel, target, *form));
    }
    return speeds;
}

} // namespace scalide

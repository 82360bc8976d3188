#include "emit/device_code.h"
#include "emit/library.h"
#include "interpret/law_case.h"
#include "ir/text.h"
#include "rulebook/check_operands.h"
#include "support/compiled/compiled_program.h"
#include "support/folder.h"
#include "support/rounding_errors/roundings.h"
#include "support/rounding_errors/running_error.h"
#include "support/sanitized.h"
#include "tool/open_context.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// rule.<op>.cpu, labelled slow slow_rule.<op>.<cpu or opencl>, and labelled card card_rule.<op>.<variant>.cuda: kernels of one operator
// with symbolic extents, compiled once for each check case, on drawn shapes, values and scales, against the interpreter in mode `stored`. A
// test of a CPU or of OpenCL runs all its variants, because a process takes as long to start as a variant to run.
// assembled_rule.<op>.<variant>.cuda, and labelled slow slow_assembled_rule.<...>: the programs of card_rule.<...>, compiled for CUDA and
// assembled, but not run. Needs ptxas, no GPU. So each variant of each rule is known to compile before a GPU is there.

namespace scalide {

namespace {

const Rulebook &rulebook() {
    static const Rulebook rules = Rulebook::load({build_folders().rules});
    return rules;
}

/// How operands are stored, where the rule takes that dtype.
struct Variant {
    const char *name;
    Scales scales;
    Dtype dtype;
    enum class Runs { always, not_sanitized, on_request, on_card } runs = Runs::not_sanitized;
    const char *target = "host";
    bool is_for_base = false; ///< of composites on request: they are made of base operators, and other variants run their values

    std::string where() const { return target == std::string("host") ? "cpu" : target; }
    std::string full_name() const { return name + ("." + where()); }
};
constexpr Variant variants[] = {{"f32", Scales::plain, Dtype::f32, Variant::Runs::always},
                                {"f32_scaled", Scales::powers, Dtype::f32, Variant::Runs::on_request},
                                {"f16_scaled", Scales::powers, Dtype::f16},
                                {"bf16_scaled", Scales::powers, Dtype::bf16, Variant::Runs::on_request},
                                {"f8_e4m3fn_scaled", Scales::powers, Dtype::f8_e4m3fn, Variant::Runs::always, "host", true},
                                {"f16", Scales::plain, Dtype::f16, Variant::Runs::on_request},
                                {"bf16", Scales::plain, Dtype::bf16, Variant::Runs::on_request},
                                {"f8_e4m3fn", Scales::plain, Dtype::f8_e4m3fn, Variant::Runs::on_request},
                                {"f8_e5m2", Scales::plain, Dtype::f8_e5m2, Variant::Runs::on_request},
                                {"f8_e5m2_scaled", Scales::powers, Dtype::f8_e5m2, Variant::Runs::on_request},
                                {"u8", Scales::plain, Dtype::u8, Variant::Runs::on_request},
                                {"i16", Scales::plain, Dtype::i16, Variant::Runs::not_sanitized, "host", true},
                                {"u32", Scales::plain, Dtype::u32, Variant::Runs::not_sanitized, "host", true},
                                {"bool", Scales::plain, Dtype::boolean, Variant::Runs::not_sanitized, "host", true},
                                {"f32", Scales::plain, Dtype::f32, Variant::Runs::on_request, "opencl"},
                                {"f16_scaled", Scales::powers, Dtype::f16, Variant::Runs::on_request, "opencl"},
                                {"f8_e4m3fn_scaled", Scales::powers, Dtype::f8_e4m3fn, Variant::Runs::on_request, "opencl"},
                                {"f32", Scales::plain, Dtype::f32, Variant::Runs::on_card, "cuda"},
                                {"f16_scaled", Scales::powers, Dtype::f16, Variant::Runs::on_card, "cuda"},
                                {"bf16_scaled", Scales::powers, Dtype::bf16, Variant::Runs::on_card, "cuda"},
                                {"f8_e4m3fn_scaled", Scales::powers, Dtype::f8_e4m3fn, Variant::Runs::on_card, "cuda"},
                                {"u8", Scales::plain, Dtype::u8, Variant::Runs::on_card, "cuda"},
                                {"u32", Scales::plain, Dtype::u32, Variant::Runs::on_card, "cuda"}};

const char *suite_of(const Rule &rule, const Variant &variant) {
    const bool is_on_request = variant.runs == Variant::Runs::on_request || (variant.is_for_base && !rule.is_base);
    return is_on_request ? "slow_rule" : "rule";
}

/// Why programs for this target cannot run here; empty when they can.
const std::string &missing(const std::string &target) {
    static std::map<std::string, std::string> reasons;
    const auto [reason, is_new] = reasons.try_emplace(target);
    if (is_new && target != "host") {
        const OpenedContext context = open_context(target == "cuda" ? SCALIDE_CUDA : SCALIDE_OPENCL);
        if (context.status == SCALIDE_NO_DEVICE) reason->second = context.message;
    }
    return reason->second;
}

/// All bits of an integer are used, except where it was drawn as one (a distance, a label). Every fifth is 0.
void store_integers(Array &array, Dtype dtype) {
    const double unit = array.dtype == Dtype::f32 ? range_of(dtype).largest / 2 : 1;
    array.dtype = dtype;
    for (size_t i = 0; i < array.data.size(); i++) array.data[i] = i % 5 == 4 ? 0 : wrap_integer(dtype, std::round(array.data[i] * unit));
}

void store_bools(Array &array) {
    array.dtype = Dtype::boolean;
    for (double &value : array.data) value = value > 0;
}

/// The drawn values in the dtypes of `operands`.
void store_as(LawCase &law_case, const std::vector<CheckOperand> &operands) {
    for (size_t i = 0; i < operands.size(); i++) {
        LawInput &input = law_case.inputs[i];
        const Dtype dtype = operands[i].type.dtype;
        input.scaled = input.scaled && is_float(dtype);
        if (is_integer(dtype)) store_integers(input.data, dtype);
        if (dtype == Dtype::boolean) store_bools(input.data);
        if (!is_float(dtype)) continue;
        input.data.dtype = dtype;
        for (double &value : input.data.data) value = round_to(dtype, value);
    }
}

/// Plain f32 is for every rule, any other variant for those that take its dtype in some case.
bool fits(const Rule &rule, const Variant &variant) {
    const auto has_dtype = [&](const CheckOperand &operand) { return operand.type.dtype == variant.dtype; };
    const auto takes = [&](const CheckCase &check_case) {
        return std::ranges::any_of(check_operands(rule, check_case, variant.dtype), has_dtype);
    };
    const bool is_plain_f32 = variant.dtype == Dtype::f32 && variant.scales == Scales::plain;
    return is_plain_f32 || std::ranges::any_of(rule.check.cases, takes);
}

LawCase draw_stored(const Rule &rule, const Variant &variant, const CheckCase &check_case, uint64_t seed) {
    LawCase law_case = draw_case(rule, check_case, variant.scales, seed);
    store_as(law_case, check_operands(rule, check_case, variant.dtype));
    return law_case;
}

/// Some variants of a rule, those of them that fit.
class Compiled : public testing::Test {
public:
    Compiled(const Rule &rule, std::vector<const Variant *> variants) : rule_(rule), variants_(std::move(variants)) {}

    void TestBody() override {
        std::erase_if(variants_, [&](const Variant *variant) { return !fits(rule_, *variant); });
        if (variants_.empty()) GTEST_SKIP() << "no case takes these dtypes";
        if (const std::string &why = missing(variants_[0]->target); !why.empty()) GTEST_SKIP() << why;
        for (const Variant *variant : variants_) {
            SCOPED_TRACE("variant " + variant->full_name());
            if (variant->target == std::string("cuda"))
                set_function_errors(variant->dtype == Dtype::f32 ? FunctionErrors::device : FunctionErrors::device_rounded);
            for (size_t i = 0; i < rule_.check.cases.size(); i++) run_case(*variant, rule_.check.cases[i], 100 * (i + 1));
        }
    }

protected:
    void TearDown() override { set_function_errors(FunctionErrors::cpu); }

private:
    static constexpr uint64_t draws = 3;

    void run_case(const Variant &variant, const CheckCase &check_case, uint64_t seed) const {
        if (is_bound(rule_, check_case)) {
            const Scaled scaled = variant.scales == Scales::plain ? Scaled::no : Scaled::yes;
            const Program program = check_program(rulebook(), rule_, check_case, variant.dtype, scaled);
            const CompiledProgram compiled(program, rulebook(), {}, variant.target);
            for (uint64_t draw = 0; draw < draws; draw++) run(compiled, program, draw_stored(rule_, variant, check_case, seed + draw));
        } else { // extents that no argument has
            const LawCase law_case = draw_stored(rule_, variant, check_case, seed);
            const Program program = program_of(law_case, rulebook());
            run(CompiledProgram(program, rulebook(), {}, variant.target), program, law_case);
        }
    }

    static void run(const CompiledProgram &compiled, const Program &program, const LawCase &law_case) {
        SCOPED_TRACE("seed " + std::to_string(*law_case.seed) + "\n" + to_string(program));
        const std::vector<Array> inputs = parts(law_case);
        EXPECT_EQ(difference(compiled.run(inputs), interpret_with_errors(compiled.fused(), inputs, rulebook(), Mode::stored)), "");
    }

    const Rule &rule_;
    std::vector<const Variant *> variants_;
};

/// A folder that belongs to all tests of this process, so that equal kernels of several rules are compiled once.
const std::filesystem::path &kernel_cache() {
    static const test::Folder folder;
    return folder.path;
}

class Assembled : public testing::Test {
public:
    Assembled(const Rule &rule, const Variant &variant) : rule_(rule), variant_(variant) {}

    void TestBody() override {
        if (const std::string &why = why_no_ptxas(); !why.empty()) GTEST_SKIP() << why;
        const Scaled scaled = variant_.scales == Scales::plain ? Scaled::no : Scaled::yes;
        for (size_t i = 0; i < rule_.check.cases.size(); i++) {
            const CheckCase &check_case = rule_.check.cases[i];
            const Program program = is_bound(rule_, check_case)
                                        ? check_program(rulebook(), rule_, check_case, variant_.dtype, scaled)
                                        : program_of(draw_stored(rule_, variant_, check_case, 100 * (i + 1)), rulebook());
            EXPECT_NO_THROW(assemble(program)) << to_string(program);
        }
    }

private:
    /// Tests gpu.ptxas.* assemble kernels for every architecture. One is enough to compile, and takes a fifth of the time.
    static void assemble(const Program &program) {
        const test::Folder folder;
        BuildOptions options;
        options.target = "cuda";
        options.output_folder = folder.path;
        options.cache_folder = kernel_cache();
        options.include_folder = build_folders().include;
        options.cuda_cards = {"90"};
        options.jobs = 1;
        const BuildReport report = build_library({{program, ""}}, rulebook(), options);
        for (const auto &[kernel, uses] : report.uses)
            for (const CardUse &use : uses)
                EXPECT_LE(use.shared_bytes, 48 << 10) << kernel << "\n" << to_string(report.main().form.program);
    }

    static const std::string &why_no_ptxas() {
        static const std::string why = [] {
            try {
                find_cuda_tools();
                return std::string();
            } catch (const UserError &error) {
                return std::string(error.what());
            }
        }();
        return why;
    }

    const Rule &rule_;
    const Variant &variant_;
};

/// True for rules that are assembled in all variants even if slow tests do not run: rows, which have the most forms, and block scales,
/// which reshape them.
bool is_sample(const Rule &rule) {
    constexpr std::string_view sample[] = {"block_scales", "block_codes", "softmax", "layer_norm", "reduce_sum", "argmax", "transpose"};
    return std::ranges::find(sample, rule.op) != std::end(sample);
}

void register_test(const char *suite, const std::string &name, const std::function<testing::Test *()> &make) {
    testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__, make);
}

void register_card_tests(const Rule &rule, const Variant &variant) {
    if (is_sanitized || !fits(rule, variant)) return;
    const std::string name = rule.op + "." + variant.full_name();
    register_test("card_rule", name, [&]() -> testing::Test * { return new Compiled(rule, {&variant}); });
    register_test(is_sample(rule) ? "assembled_rule" : "slow_assembled_rule", name,
                  [&]() -> testing::Test * { return new Assembled(rule, variant); });
}

/// Which variants fit is known when a test runs: it takes long for all rules.
void register_tests(const Rule &rule) {
    std::map<std::pair<std::string, std::string>, std::vector<const Variant *>> tests;
    for (const Variant &variant : variants) {
        if (variant.runs == Variant::Runs::on_card)
            register_card_tests(rule, variant);
        else if (!is_sanitized || variant.runs == Variant::Runs::always)
            tests[{suite_of(rule, variant), variant.where()}].push_back(&variant);
    }
    for (const auto &[test, chosen] : tests)
        register_test(test.first.c_str(), rule.op + "." + test.second,
                      [&rule, chosen]() -> testing::Test * { return new Compiled(rule, chosen); });
}

} // namespace

} // namespace scalide

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const scalide::Rule *rule : scalide::rulebook().rules()) scalide::register_tests(*rule);
    return RUN_ALL_TESTS();
}

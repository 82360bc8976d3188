#include "interpret/laws.h"
#include "interpret/law_check.h"
#include <algorithm>

namespace scalide {

namespace {

/// Runs a law. It also fails if the rule cannot be applied.
template<typename Law>
void run(LawCheck &check, const Law &law) {
    try {
        law();
    } catch (const UserError &error) {
        check.fail_applying(error.what());
    }
}

} // namespace

void LawCheck::keep(const Message &failure) {
    const auto is_same = [&](const Message &message) {
        return message.subject == failure.subject && message.requirement == failure.requirement;
    };
    if (std::ranges::none_of(failures_, is_same)) failures_.push_back(failure);
}

void LawCheck::fail(const std::string &field, const std::string &law, const std::string &got, const std::string &way_out) {
    keep({rule.location, rule.op + "." + field, law, got, way_out});
}

void LawCheck::fail_applying(const std::string &reason) {
    Message failure = failed_action("apply the rule of '" + rule.op + "'", reason);
    failure.location = rule.location;
    keep(failure);
}

void LawCheck::check_passed() {
    if (failures_.empty() && gradient_ && is_straight_through() && !passed_cotangent_)
        fail("grad", "a straight-through gradient must pass the cotangent to one operand", "0 for all operands in all cases");
}

LawReport LawCheck::take() {
    const auto counted = [](size_t count, const std::string &one, const std::string &many) {
        return count == 0 ? "" : ", " + std::to_string(count) + " " + (count == 1 ? one : many);
    };
    const std::string ran = counted(rule.check.cases.size(), "case", "cases") + counted(strategies_.size(), "strategy", "strategies") +
                            (gradient_ ? ", gradient" : "") + counted(rule.check.vectors.size(), "vector", "vectors");
    return {std::move(failures_), ran.empty() ? "nothing" : ran.substr(2)};
}

double LawCheck::tolerance(Dtype dtype) const {
    static const std::map<Dtype, double> defaults{
        {Dtype::f32, 4e-6}, {Dtype::f16, 4e-3}, {Dtype::bf16, 4e-2}, {Dtype::f8_e4m3fn, 0.3}, {Dtype::f8_e5m2, 0.6}};
    const auto own = rule.check.tolerance.find(std::string(to_string(dtype)));
    return own != rule.check.tolerance.end() ? own->second : defaults.at(dtype);
}

LawReport check_laws(const Rule &rule, const Rulebook &rulebook, const LawPasses &passes, const LawOptions &options) {
    LawCheck check(rule, rulebook, passes);
    if (rule.check.cases.empty())
        check.fail("check.cases", "the rule has no test case, so nothing was checked", "", "Add one: check: {cases: [{x: [m, n]}]}");
    for (const CheckVector &vector : rule.check.vectors) run(check, [&] { check_vector(check, vector); });
    for (int i = 0; i < options.draws; i++)
        for (const CheckCase &check_case : rule.check.cases) {
            const CheckCase drawn = with_drawn_rank(rule, check_case, options.seed + i);
            run(check, [&] { check_scales(check, drawn, options.seed + i); });
            run(check, [&] { check_gradient(check, drawn, options.seed + i); });
        }
    check.check_passed();
    return check.take();
}

} // namespace scalide

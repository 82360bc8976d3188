#pragma once
#include "interpret/law_report.h"
#include "interpret/laws.h"
#include <set>

namespace scalide {

/// The state of the check of one rule, and its results.
class LawCheck {
public:
    LawCheck(const Rule &rule, const Rulebook &rulebook, const LawPasses &passes) : rule(rule), rulebook(rulebook), passes(passes) {}

    /// Keeps the first failure of each law.
    void fail(const std::string &field, const std::string &law, const std::string &got, const std::string &way_out = "");
    /// Records that the rule cannot be applied to a case.
    void fail_applying(const std::string &reason);
    /// Returns the tolerance for a dtype: from the rule, or the default of laws.h.
    double tolerance(Dtype dtype) const;

    /// Records what has run, for the report.
    void ran_scales(const std::string &strategy) { strategies_.insert(strategy); }
    void ran_gradient() { gradient_ = true; }

    bool is_straight_through() const { return rule.check.gradient == "straight_through"; }
    void passed_cotangent() { passed_cotangent_ = true; }
    /// Call this after all cases. It records a failure if a straight-through gradient has never passed a cotangent.
    void check_passed();

    LawReport take();

    const Rule &rule;
    const Rulebook &rulebook;
    const LawPasses &passes;

private:
    void keep(const Message &failure);

    std::vector<Message> failures_;
    std::set<std::string> strategies_;
    bool gradient_ = false, passed_cotangent_ = false;
};

void check_scales(LawCheck &check, const CheckCase &check_case, uint64_t seed);
void check_gradient(LawCheck &check, const CheckCase &check_case, uint64_t seed);
void check_vector(LawCheck &check, const CheckVector &vector);

} // namespace scalide

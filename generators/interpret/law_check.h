#pragma once
#include "interpret/law_report.h"
#include "interpret/laws.h"

namespace scalide {

/// What is known while one rule is checked, and what was found.
class LawCheck {
public:
    LawCheck(const Rule &rule, const Rulebook &rulebook, const LawPasses &passes) : rule(rule), rulebook(rulebook), passes(passes) {}

    /// Keeps the first failure of each law.
    void fail(const std::string &field, const std::string &law, const std::string &got);
    /// The bound for a dtype: that of the rule, else the default of laws.h.
    double tolerance(Dtype dtype) const;

    std::vector<Message> take() { return std::move(failures_); }

    const Rule &rule;
    const Rulebook &rulebook;
    const LawPasses &passes;

private:
    std::vector<Message> failures_;
};

void check_scales(LawCheck &check, const CheckCase &check_case, uint64_t seed);
void check_gradient(LawCheck &check, const CheckCase &check_case, uint64_t seed);
void check_vector(LawCheck &check, const CheckVector &vector);

} // namespace scalide

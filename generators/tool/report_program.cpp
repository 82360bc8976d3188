#include "tool/report_program.h"
#include "emit/plan.h"
#include "tool/scale_words.h"
#include "tool/tables.h"
#include "transforms/analysis/costs.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using PageJson = nlohmann::ordered_json;

PageJson sites_json(const PolicyDecisions &decisions) {
    PageJson rows = PageJson::array();
    constexpr std::array places = {"argument", "operand", "node result", "result", "node"};
    for (const NumericsDecision &site : decisions.all_sites())
        rows.push_back({{"tensor", site.tensor},
                        {"use", site.use.empty() ? places[static_cast<size_t>(site.place)] : site.use},
                        {"format", to_string(site.stored)},
                        {"scale", words(site.scale)},
                        {"policy", short_place(site.row, "default")},
                        {"scope", site.scope},
                        {"source", short_place(site.source, "-")},
                        {"unsafe", site.is_unsafe() && site.is_policys()}});
    return rows;
}

PageJson matmuls_json(const PolicyDecisions &decisions) {
    PageJson rows = PageJson::array();
    for (const MatmulDecision &matmul : decisions.all_matmuls()) {
        PageJson operands = PageJson::array();
        for (const OperandDecision &operand : matmul.operands)
            operands.push_back({{"tensor", operand.tensor},
                                {"format", to_string(operand.stored)},
                                {"scale", words(operand.scale)},
                                {"policy", short_place(operand.row, "default")},
                                {"why", operand.why}});
        rows.push_back({{"tensor", matmul.tensor},
                        {"operator", matmul.op},
                        {"scope", matmul.scope},
                        {"source", short_place(matmul.source, "-")},
                        {"operands", operands}});
    }
    return rows;
}

/// Returns the value of a sum of products of symbols with nominal sizes. It may be larger than an extent can be.
double nominal(const Extent &extent, const NominalSizes &sizes) {
    double sum = 0;
    for (const auto &[monomial, factor] : extent.terms()) {
        double product = static_cast<double>(factor);
        for (const std::string &symbol : monomial) product *= sizes.elements({Extent::symbol(symbol)});
        sum += product;
    }
    return sum;
}

/// Appends the calls of kernels in their order, also of loops and branches.
void append_calls(const Program &program, std::vector<const Node *> &calls) {
    for (const Node &node : program.nodes) {
        if (node.op == "call") calls.push_back(&node);
        for (const Region &region : node.regions) append_calls(*region, calls);
    }
}

/// The fastest measured time of each kernel, per step.
std::map<std::string, double> seconds_by_kernel(const std::vector<StepCost> &costs) {
    std::map<std::string, std::pair<double, int>> sums;
    for (const StepCost &cost : costs) {
        sums[cost.kernel].first += cost.seconds;
        sums[cost.kernel].second++;
    }
    std::map<std::string, double> means;
    for (const auto &[kernel, sum] : sums) means[kernel] = sum.first / sum.second;
    return means;
}

PageJson kernels_json(const FusionReport &report, const Program &fused, const std::vector<StepCost> &costs) {
    const NominalSizes sizes(fused);
    const std::map<std::string, double> seconds = seconds_by_kernel(costs);
    std::vector<const Node *> calls;
    append_calls(fused, calls);
    PageJson rows = PageJson::array();
    for (size_t i = 0; i < report.kernels.size(); i++) {
        const KernelReport &kernel = report.kernels[i];
        const bool has_call = calls.size() == report.kernels.size();
        const auto measured = seconds.find(kernel.kernel);
        rows.push_back({{"kernel", kernel.kernel},
                        {"kind", kernel.kind},
                        {"fused", kernel.fused},
                        {"recomputed", kernel.recomputed},
                        {"read", nominal(kernel.bytes_read, sizes)},
                        {"written", nominal(kernel.bytes_written, sizes)},
                        {"flops", nominal(kernel.flops, sizes)},
                        {"seconds", measured == seconds.end() ? PageJson(nullptr) : PageJson(measured->second)},
                        {"scope", has_call ? calls[i]->scope : ""},
                        {"source", has_call ? short_place(calls[i]->location, "-") : "-"}});
    }
    return rows;
}

PageJson edges_json(const FusionReport &report) {
    PageJson rows = PageJson::array();
    for (const UnfusedEdge &edge : report.edges)
        rows.push_back({{"producer", edge.producer}, {"consumer", edge.consumer}, {"values", edge.values}, {"reason", edge.reason}});
    return rows;
}

/// Returns the plan of a program without the operands of its steps, which only compiled kernels have. Lifetimes do not need them.
Plan plan_of(const Program &fused) {
    CallOrders orders;
    for (const Program &kernel : fused.programs) orders[kernel.name] = {};
    return make_plan(fused, orders);
}

/// The bytes that are alive in the arena in each step, and the buffers. Buffers of different lifetimes share memory.
PageJson memory_json(const Program &fused) {
    const Plan plan = plan_of(fused);
    const NominalSizes sizes(fused);
    std::vector<double> alive(plan.steps.size());
    PageJson buffers = PageJson::array();
    double arguments = 0;
    for (const PlanBuffer &buffer : plan.buffers) {
        const double bytes = sizes.bytes(buffer.type);
        if (buffer.storage == Storage::data || buffer.storage == Storage::scale) arguments += bytes;
        if (buffer.storage != Storage::arena || buffer.first_step < 0) continue;
        for (int step = buffer.first_step; step <= buffer.last_step; step++) alive[static_cast<size_t>(step)] += bytes;
        buffers.push_back({{"name", buffer.name}, {"bytes", bytes}, {"first", buffer.first_step}, {"last", buffer.last_step}});
    }
    PageJson steps = PageJson::array();
    for (const PlanStep &step : plan.steps) steps.push_back(step.kernel);
    return {{"steps", steps}, {"alive", alive}, {"buffers", buffers}, {"arguments", arguments}};
}

} // namespace

PageJson describe_policy(const Program &program, const Rulebook &rulebook, const CompileOptions &options,
                         const std::vector<StepCost> &costs) {
    const Compiled compiled = run_passes(program, rulebook, options, Stage::kernels);
    const Program &fused = compiled.forms.main.program;
    return {{"name", options.policy.name},
            {"sites", sites_json(compiled.notes.decisions)},
            {"matmuls", matmuls_json(compiled.notes.decisions)},
            {"kernels", kernels_json(compiled.notes.fusion, fused, costs)},
            {"edges", edges_json(compiled.notes.fusion)},
            {"memory", memory_json(fused)},
            {"symbolic", !fused.symbols.empty()}};
}

} // namespace scalide

#include "judge.h"
#include "support/import_graph.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

// Whole graphs through the passes and the interpreter: functions, their gradients, training steps and random programs.

namespace scalide::test {
namespace {

using Json = nlohmann::json;

/// Of the results; those of values on the way are errors of the meaning.
constexpr double ulps = 4;
/// Of runs that leave the true one: second moments leave f16's range, and what is left of them, numbers of 5 bits, are divisors.
constexpr double ulps_off_the_true_run = 64;

/// How the results differ from tensors; "no outputs" when there are none to compare with.
std::string differences(const std::vector<Tensor> &results, const std::vector<Tensor> &expected, const std::vector<Tensor> &meant,
                        bool exact, double allowed = ulps) {
    if (results.size() != expected.size()) return "no outputs";
    for (size_t i = 0; i < results.size(); i++) {
        const Tensor right = exact ? as_held_by(results[i], expected[i]) : expected[i];
        const std::string words = difference(results[i], right, meant.at(i), allowed);
        if (!words.empty()) return "result " + std::to_string(i) + ", " + words;
    }
    return "";
}

/// Cases of a suite whose operators exist; says how many there are and what is missing.
class Graphs {
public:
    explicit Graphs(const std::string &name) : suite_(load_golden(name)), name_(name) {}

    void each(const std::string &op, const std::function<void(const GoldenSuite &, const Deviations &, const Json &)> &run) {
        const Deviations deviations(name_, suite_.index);
        int count = 0, all = 0;
        std::map<std::string, int> missing;
        for (const Json &entry : suite_.index["cases"]) {
            if (entry["op"] != op) continue;
            all++;
            const std::vector<std::string> unknown = unknown_primitives(entry["flat"], rules());
            for (const std::string &primitive : unknown) missing[primitive]++;
            if (!unknown.empty()) continue;
            count++;
            SCOPED_TRACE(entry["name"].get<std::string>());
            run(suite_, deviations, entry);
        }
        std::cout << name_ << ": " << count << " of " << all << " cases of " << op << "\n";
        for (const auto &[primitive, cases] : missing) std::cout << "  no operator " << primitive << ": " << cases << " cases\n";
        EXPECT_GT(count, 0);
    }

private:
    GoldenSuite suite_;
    std::string name_;
};

void run_graph(const GoldenSuite &suite, const Deviations &deviations, const Json &entry) {
    const Program source = import_graph(entry["flat"], rules());
    const std::vector<Tensor> inputs = read_tensors(suite, entry["inputs"]);
    const ScaledProgram program(source, entry["inputs"], entry["outputs"], policy_of(entry["config"]));
    const std::vector<Tensor> results = program.run(inputs);
    const std::vector<Tensor> meant = with_drawn_errors([&](auto *random) { return meaning(source, inputs, random); });
    const std::string disagreement = differences(results, read_tensors(suite, entry["outputs"]), meant, false);
    const std::vector<Tensor> right = entry.contains("true") ? read_tensors(suite, entry["true"]) : meant;
    deviations.judge(entry, disagreement, differences(results, right, meant, true));
}

Json joined(Json first, const Json &second) {
    for (const Json &element : second) first.push_back(element);
    return first;
}

/// A training run of the index.
struct Training {
    const GoldenSuite &suite;
    const Json &entry;

    Program source() const { return import_graph(entry["flat"], rules()); }
    ScaledProgram program(const Policy &policy) const {
        const Json &step = entry["steps"][0];
        return ScaledProgram(source(), joined(entry["inputs"], entry["batches"][0]), joined(step["state"], step["loss"]), policy);
    }
    size_t steps() const { return entry["steps"].size(); }
    std::vector<Tensor> first_state() const { return read_tensors(suite, entry["inputs"]); }
    std::vector<Tensor> state_after(size_t step) const { return read_tensors(suite, entry["steps"][step]["state"]); }
    Tensor loss_of(size_t step) const { return read_tensor(suite, entry["steps"][step]["loss"][0]); }
    std::vector<Tensor> with_batch(std::vector<Tensor> state, size_t step) const {
        for (const Tensor &tensor : read_tensors(suite, entry["batches"][step])) state.push_back(tensor);
        return state;
    }
};

void append(Tensor &losses, const Tensor &loss) {
    losses.data.dtype = loss.data.dtype;
    losses.data.shape[0]++;
    losses.data.data.push_back(loss.values()[0]);
}

/// A program on inputs.
using Run = std::function<std::vector<Tensor>(const std::vector<Tensor> &)>;

Run run_of(const ScaledProgram &program) {
    return [&](const std::vector<Tensor> &inputs) { return program.run(inputs); };
}

/// All losses, then the last state. Each step starts from the state that the one before left.
std::vector<Tensor> train(const Training &training, const Run &run) {
    Tensor losses{{Dtype::f32, {0}, {}}, std::nullopt};
    std::vector<Tensor> state = training.first_state();
    for (size_t step = 0; step < training.steps(); step++) {
        state = run(training.with_batch(state, step));
        append(losses, state.back());
        state.pop_back();
    }
    state.insert(state.begin(), losses);
    return state;
}

std::vector<Tensor> upstream_run(const Training &training) {
    Tensor losses{{Dtype::f32, {0}, {}}, std::nullopt};
    for (size_t step = 0; step < training.steps(); step++) append(losses, training.loss_of(step));
    std::vector<Tensor> tensors = training.state_after(training.steps() - 1);
    tensors.insert(tensors.begin(), losses);
    return tensors;
}

/// For runs that leave the true one: each step starts from the state that upstream left.
std::string disagreement_by_step(const Training &training, const ScaledProgram &program) {
    std::string words;
    const Program source = training.source();
    for (size_t step = 0; step < training.steps() && words.empty(); step++) {
        const std::vector<Tensor> state = step == 0 ? training.first_state() : training.state_after(step - 1);
        std::vector<Tensor> expected = training.state_after(step);
        expected.push_back(training.loss_of(step));
        const std::vector<Tensor> inputs = training.with_batch(state, step);
        const std::vector<Tensor> meant = with_drawn_errors([&](auto *random) { return meaning(source, inputs, random); });
        words = differences(program.run(inputs), expected, meant, false, ulps_off_the_true_run);
        if (!words.empty()) words = "step " + std::to_string(step) + ", " + words;
    }
    return words;
}

bool leaves_the_true_run(const Json &entry) { return entry.value("note", "").find("step by step") != std::string::npos; }

/// The recipe for state that keeps its scale from step to step: every result is rescaled.
Policy rescaling(Policy policy) {
    PolicyRule rule{};
    rule.place = PolicyRule::Place::program_result;
    rule.which = "any";
    rule.insert = {{"dynamic_rescale", {{"norm", "l2"}, {"to", 1.0}}}};
    policy.rules.push_back(rule);
    return policy;
}

void run_training(const GoldenSuite &suite, const Deviations &deviations, const Json &entry) {
    const Training training{suite, entry};
    const Policy policy = policy_of(entry["config"]);
    const ScaledProgram program = training.program(policy);
    if (leaves_the_true_run(entry)) {
        deviations.judge(entry, disagreement_by_step(training, program), "compared step by step");
        return;
    }
    const Program source = training.source();
    const std::vector<Tensor> meant = with_drawn_errors(
        [&](auto *random) { return train(training, [&](const std::vector<Tensor> &inputs) { return meaning(source, inputs, random); }); });
    const std::string disagreement = differences(train(training, run_of(program)), upstream_run(training), meant, false);
    const ScaledProgram rescaled = training.program(rescaling(policy));
    const std::vector<Tensor> right = train(training, run_of(rescaled));
    deviations.judge(entry, disagreement, differences(right, read_tensors(suite, entry["true"]), meant, true));
}

TEST(graphs, training) {
    Graphs graphs("graphs");
    graphs.each("trajectory", run_training);
}

TEST(graphs, functions) {
    Graphs graphs("graphs");
    graphs.each("graph", run_graph);
}

TEST(graphs_random, all_cases) {
    Graphs graphs("graphs_random");
    graphs.each("graph", run_graph);
}

} // namespace
} // namespace scalide::test

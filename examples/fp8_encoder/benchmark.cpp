// Times the training step of a transformer encoder in f32, and on request in mixed precision and in FP8.
#include "encoder_f32.h"
#include "encoder_fp8.h"
#include "encoder_mixed.h"
#include "encoder_state.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <scalide/scalide.hpp>

using namespace scalide::runtime;

namespace {

struct Options {
    bool mixed = false, fp8 = false;
    int steps = 50, threads = 0; // 0 threads: all CPUs
};

struct Result {
    std::string policy;
    double step_ms; // median
    float first_loss, final_loss;
    size_t state_bytes;
};

// Sets the parameters to values that depend on the key alone, so they are the same in all formats.
void set_first_values(const Context &context, State &state) {
    Binding first = Binding::allocate(context, encoder_state_program(), {});
    first["key"].set(std::vector<uint32_t>{0, 0});
    first.run();
    for (const Argument &argument : first.program().arguments())
        if (argument.is_output()) state[argument.name].set(first[argument.name].get());
}

void set_normal(Array array, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(array.size());
    for (float &value : values) value = normal(random);
    array.set(values);
}

Result measure(const Context &context, const Program &program, int steps) {
    State state(context, program);
    set_first_values(context, state);
    Binding step = Binding::allocate(context, program, {}, state);
    set_normal(step["x"], 1);
    set_normal(step["target"], 2);
    step.fit_scales(); // otherwise all scales of f8_delayed are 1 in the first step
    std::vector<double> times;
    std::vector<float> losses;
    for (int i = 0; i < steps; i++) {
        const auto start = std::chrono::steady_clock::now();
        step.run();
        times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
        losses.push_back(step["loss"].item());
    }
    std::nth_element(times.begin(), times.begin() + steps / 2, times.end());
    return {program.policy(), times[steps / 2], losses.front(), losses.back(), state.bytes()};
}

Options parse(int argc, char **argv) {
    Options options;
    const std::map<std::string, bool *> switches = {{"--mixed", &options.mixed}, {"--fp8", &options.fp8}};
    const std::map<std::string, int *> numbers = {{"--steps", &options.steps}, {"--threads", &options.threads}};
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (const auto found = switches.find(name); found != switches.end()) {
            *found->second = true;
            continue;
        }
        const auto number = numbers.find(name);
        if (number == numbers.end())
            throw std::invalid_argument("unknown option '" + name + "'. Options: --mixed, --fp8, --steps N, --threads N");
        const char *text = ++i < argc ? argv[i] : "";
        char *end = nullptr;
        *number->second = static_cast<int>(std::strtol(text, &end, 10));
        if (*text == 0 || *end != 0 || *number->second < 1)
            throw std::invalid_argument(name + " must be a positive integer, got '" + text + "'");
    }
    return options;
}

} // namespace

int main(int argc, char **argv) {
    try {
        const Options options = parse(argc, argv);
        const Context context(options.threads);
        std::vector<const scalide_program *> programs = {encoder_f32_program()};
        if (options.mixed) programs.push_back(encoder_mixed_program());
        if (options.fp8) programs.push_back(encoder_fp8_program());
        std::printf("%-12s %9s %11s %11s %11s %12s\n", "policy", "step ms", "relative", "first loss", "final loss", "state bytes");
        double reference = 0;
        for (const scalide_program *program : programs) {
            const Result result = measure(context, program, options.steps);
            if (reference == 0) reference = result.step_ms;
            std::printf("%-12s %9.2f %11.2f %11.4f %11.4f %12zu\n", result.policy.c_str(), result.step_ms, result.step_ms / reference,
                        result.first_loss, result.final_loss, result.state_bytes);
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "fp8_encoder: %s\n", error.what());
        return 1;
    }
}

// Trains the character model in one policy, with a progress line, metrics and checkpoints, and writes text with it.
#include "char_lm_loss.h"
#include "char_lm_state.h"
#include "char_lm_token.h"
#include "policies.h"
#include "text.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <scalide/checkpoints.hpp>
#include <scalide/groups.hpp>
#include <scalide/scalide.hpp>

using namespace scalide::runtime;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    std::string policy = "f32", folder = "run", text = "/usr/share/common-licenses", prompt = "The license ";
    int steps = 2000, seed = 1, threads = 0, every = 200, generate = 0; // 0 threads: all CPUs
};

Program program_of(const std::string &policy) {
    std::string names;
    for (const scalide_program *each : trained_programs) {
        const Program program(each);
        if (program.policy() == policy) return program;
        names += (names.empty() ? "" : ", ") + program.policy();
    }
    throw std::invalid_argument("--policy must be one of " + names + ", got '" + policy + "'. CHAR_LM_POLICIES chooses what CMake builds");
}

// The program char_lm_state computes the first parameters from the seed, the same for all policies.
void initialize(const Context &context, const State &state, int seed) {
    Binding first = Binding::allocate(context, char_lm_state_program(), {});
    first["key"].set(std::vector<uint32_t>{0, static_cast<uint32_t>(seed)});
    first.run();
    for (const Argument &argument : first.program().arguments())
        if (argument.is_output()) Array(state[argument.name]).set(first[argument.name].get());
}

// Sets the parameters of a program in f32 to those of a state in any format.
void copy_parameters(const Binding &binding, const State &state) {
    for (const Argument &argument : binding.program().arguments())
        if (state.arrays().count(argument.name) > 0) Array(binding[argument.name]).set(state[argument.name].get());
}

// The mean loss of the held-out text in nats for each byte, computed in f32.
double held_out_loss(const Context &context, const State &state, const std::string &text) {
    Binding binding = Binding::allocate(context, char_lm_loss_program(), {});
    copy_parameters(binding, state);
    const std::vector<int64_t> shape = binding["ids"].shape();
    double sum = 0;
    int batches = 0;
    for (;; batches++) {
        const std::vector<int32_t> ids = windows_of(text, batches, static_cast<int>(shape[0]), static_cast<int>(shape[1]));
        if (ids.empty()) return sum / batches;
        binding["ids"].set(ids);
        binding.run();
        sum += binding["loss"].item();
    }
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void print_progress(int step, int steps, double loss, double tokens_per_second, double seconds_left) {
    std::printf("\rstep %d of %d  loss %.4f  %.0f tokens/s  %.0f s left   ", step, steps, loss, tokens_per_second, seconds_left);
    std::fflush(stdout);
}

// The ranks of the training. All of them have the same parameters, and each has some windows of each batch. Rank 0 writes files.
struct Ranks {
    int count = 1, number = 0;
    bool writes() const { return number == 0; }
};

constexpr int batch = 8;

Symbols symbols_of(const Ranks &ranks) { return CHAR_LM_RANKS ? Symbols{{"b", batch / ranks.count}} : Symbols{}; }

Ranks join(const Context &context) {
    if (!CHAR_LM_RANKS) return {};
    join_mpi(context, "data");
    const Ranks joined{ranks(context, "data"), rank(context, "data")};
    if (batch % joined.count != 0) throw std::invalid_argument("the number of ranks must divide " + std::to_string(batch));
    return joined;
}

// Returns the windows of this rank.
std::vector<int32_t> part_of(const std::vector<int32_t> &windows, const Ranks &ranks) {
    const auto count = windows.size() / static_cast<size_t>(ranks.count);
    const auto first = windows.begin() + static_cast<std::ptrdiff_t>(count) * ranks.number;
    return {first, first + static_cast<std::ptrdiff_t>(count)};
}

void train(const Context &context, const Options &options, const Text &text, const State &state, const Checkpoints &checkpoints,
           const Ranks &ranks) {
    Binding binding = Binding::allocate(context, state.program(), symbols_of(ranks), state);
    const int window = static_cast<int>(binding["ids"].shape()[1]);
    int64_t first = 0;
    if (checkpoints.latest() >= 0) {
        first = checkpoints.restore(state); // of any number of ranks
        if (ranks.writes()) std::printf("resumed after step %d\n", static_cast<int>(first));
    } else {
        initialize(context, state, options.seed);
    }
    std::optional<Metrics> metrics;
    if (ranks.writes()) metrics.emplace(options.folder, true);
    const Clock::time_point start = Clock::now();
    double run_seconds = 0;
    for (int64_t step = first; step < options.steps; step++) {
        std::mt19937_64 random(static_cast<uint64_t>(options.seed) << 32 |
                               static_cast<uint64_t>(step)); // a resumed run draws the same batches
        binding["ids"].set(part_of(random_windows(text.trained, random, batch, window), ranks));
        if (step == 0) binding.fit_scales(); // otherwise all scales of f8_delayed are 1 in the first step
        const Clock::time_point begin = Clock::now();
        binding.run();
        run_seconds += seconds_since(begin);
        const double loss = binding["loss"].item(), done = static_cast<double>(step + 1 - first);
        if (!std::isfinite(loss)) throw std::runtime_error("the loss of step " + std::to_string(step) + " is not finite");
        if (!metrics) continue;
        metrics->write(step, {{"loss", loss}, {"step_ms", 1e3 * run_seconds / done}});
        const double rate = done / seconds_since(start);
        if ((step + 1) % 20 == 0)
            print_progress(static_cast<int>(step + 1), options.steps, loss, rate * batch * (window - 1), (options.steps - step - 1) / rate);
        if ((step + 1) % options.every == 0 || step + 1 == options.steps) {
            checkpoints.save(step + 1, state);
            const double held_out = held_out_loss(context, state, text.held_out);
            metrics->write(step, {{"held_out", held_out}});
            std::printf("\nheld-out loss %.4f\n", held_out);
        }
    }
    if (metrics) metrics->close();
}

// Chooses the next byte at random, by the probabilities of the logits.
int draw(const std::vector<float> &logits, std::mt19937_64 &random) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    std::vector<double> weights;
    for (const float logit : logits) weights.push_back(std::exp((logit - largest) / 0.8)); // a temperature below 1 prefers likely bytes
    return std::discrete_distribution<int>(weights.begin(), weights.end())(random);
}

// Each run writes one row of each cache in place.
void generate(const Context &context, const Options &options, const State &state) {
    Binding binding = Binding::allocate(context, char_lm_token_program(), {});
    copy_parameters(binding, state);
    std::mt19937_64 random(static_cast<uint64_t>(options.seed));
    std::string text = options.prompt;
    const int length = static_cast<int>(binding["cache.layer0.key"].shape()[1]),
              count = std::min(options.generate, length - static_cast<int>(text.size()));
    const Clock::time_point start = Clock::now();
    for (int i = 0; i + 1 < static_cast<int>(options.prompt.size()) + count; i++) {
        binding["id"].set(std::vector<int32_t>{static_cast<unsigned char>(text[i])});
        binding["position"].set(std::vector<int32_t>{i});
        binding.run();
        if (i + 1 == static_cast<int>(text.size())) text += static_cast<char>(draw(binding["logits"].get(), random));
    }
    std::printf("%s\n%.3f ms for each token\n", text.c_str(), 1e3 * seconds_since(start) / static_cast<double>(text.size() - 1));
}

Options parse(int argc, char **argv) {
    Options options;
    const std::map<std::string, std::string *> texts = {
        {"--policy", &options.policy}, {"--folder", &options.folder}, {"--text", &options.text}, {"--prompt", &options.prompt}};
    const std::map<std::string, int *> numbers = {{"--steps", &options.steps},
                                                  {"--seed", &options.seed},
                                                  {"--threads", &options.threads},
                                                  {"--every", &options.every},
                                                  {"--generate", &options.generate}};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (const auto text = texts.find(argv[i]); text != texts.end()) {
            *text->second = value;
            if (*value == 0) throw std::invalid_argument(text->first + " must not be empty");
            continue;
        }
        const auto number = numbers.find(argv[i]);
        if (number == numbers.end())
            throw std::invalid_argument("unknown option '" + std::string(argv[i]) +
                                        "'. Options: --policy NAME, --folder FOLDER, --text FOLDER, --prompt TEXT, --steps N, --seed N, "
                                        "--threads N, --every N, --generate N");
        char *end = nullptr;
        *number->second = static_cast<int>(std::strtol(value, &end, 10));
        if (*value == 0 || *end != 0 || *number->second < 1)
            throw std::invalid_argument(number->first + " must be a positive integer, got '" + value + "'");
    }
    return options;
}

} // namespace

int main(int argc, char **argv) {
    try {
        const Options options = parse(argc, argv);
        const Context context(options.threads);
        const Ranks ranks = join(context);
        const State state(context, program_of(options.policy));
        const Checkpoints checkpoints(options.folder, {.keep = 3});
        train(context, options, read_text(options.text, 4096), state, checkpoints, ranks);
        if (options.generate > 0 && ranks.writes()) generate(context, options, state);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "char_lm: %s\n", error.what());
        return 1;
    }
}

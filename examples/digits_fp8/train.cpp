// Trains a digit classifier with Adam in several FP8 recipes, and shows the scales and histories that a recipe keeps.
#include "data.h"
#include "digits_f32.h"
#include "digits_f8_block.h"
#include "digits_f8_current.h"
#include "digits_f8_delayed.h"
#include "digits_predict.h"
#include "digits_state.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <scalide/scalide.hpp>

using namespace scalide::runtime;

namespace {

struct Options {
    int epochs = 20, seed = 1, threads = 0; // 0 threads: all CPUs
};

// A tensor after a step, as the state of the policy shows it: `<tensor>.amax_history` and `<tensor>.scale`.
struct Scaling {
    int step;
    std::string tensor;
    float amax, largest, scale; // amax of this step, largest amax of the history, scale of the next step
};

struct Result {
    std::string recipe;
    float accuracy, first_loss, final_loss;
    size_t state_bytes;
    double step_ms;
    std::vector<Scaling> scalings;
};

// The tensors of the report: a value of the forward pass, a parameter, and a gradient.
const std::vector<std::string> reported = {"features", "last.kernel", "logits_gradient"};

// Returns the state of a recipe. The program digits_state computes the parameters from the seed, the same for all recipes. The scales and
// histories of the recipe have the first values that its policy names.
State first_state(const Context &context, const Program &program, int seed) {
    Binding first = Binding::allocate(context, digits_state_program(), {});
    first["key"].set(std::vector<uint32_t>{0, static_cast<uint32_t>(seed)});
    first.run();
    State state(context, program);
    for (const Argument &argument : first.program().arguments())
        if (argument.is_output()) state[argument.name].set(first[argument.name].get());
    return state;
}

// Returns the part of the images whose label is predicted. The prediction reads the parameters of the state in place.
float accuracy(const Context &context, const State &state, const Digits &digits) {
    const Program program = digits_predict_program();
    NamedArrays parameters;
    for (const Argument &argument : program.arguments())
        if (state.arrays().count(argument.name) > 0) parameters[argument.name] = state[argument.name];
    Binding predict = Binding::allocate(context, program, {{"b", digits.count}}, parameters);
    predict["images"].set(digits.images);
    predict.run();
    const std::vector<int32_t> predictions = predict["prediction"].get<int32_t>();
    int right = 0;
    for (int i = 0; i < digits.count; i++) right += predictions[i] == digits.labels[i];
    return static_cast<float>(right) / digits.count;
}

void set_batch(const Binding &binding, const Digits &digits, const int *order) {
    std::vector<int32_t> labels(binding["labels"].size());
    std::vector<float> images;
    for (size_t i = 0; i < labels.size(); i++) {
        labels[i] = digits.labels[order[i]];
        const auto image = digits.images.begin() + size_t(order[i]) * digits.pixels;
        images.insert(images.end(), image, image + digits.pixels);
    }
    binding["images"].set(images);
    binding["labels"].set(labels);
}

// Adds the scalings of the reported tensors, if the recipe keeps any.
void add_scalings(const State &state, int step, std::vector<Scaling> &scalings) {
    for (const std::string &tensor : reported) {
        if (state.arrays().count(tensor + ".scale") == 0) continue;
        const std::vector<float> history = state[tensor + ".amax_history"].get();
        const float largest = *std::max_element(history.begin(), history.end());
        scalings.push_back({step, tensor, history[0], largest, state[tensor + ".scale"].item()});
    }
}

Result train(const Context &context, const Program &program, const Options &options, const Digits &data, const Digits &test) {
    State state = first_state(context, program, options.seed);
    Binding binding = Binding::allocate(context, program, {}, state);
    Result result{program.policy(), 0, 0, 0, state.bytes(), 1e30, {}};
    const int batch = static_cast<int>(binding["labels"].size());
    std::mt19937 random(static_cast<uint32_t>(options.seed));
    std::vector<int> order(data.count);
    std::iota(order.begin(), order.end(), 0);
    int step = 0;
    for (int epoch = 0; epoch < options.epochs; epoch++) {
        for (size_t i = order.size() - 1; i > 0; i--) std::swap(order[i], order[random() % (i + 1)]);
        float sum = 0;
        int batches = 0;
        for (; (batches + 1) * batch <= data.count; batches++) {
            set_batch(binding, data, &order[batches * batch]);
            if (step == 0) binding.fit_scales(); // otherwise all scales of f8_delayed are 1 in the first step
            const auto start = std::chrono::steady_clock::now();
            binding.run();
            const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
            result.step_ms = std::min(result.step_ms, time.count());
            sum += binding["loss"].item();
            if (step++ == 0) result.first_loss = sum;
            // The steps 1, 2, 4, 8 and so on: scales change most in the first steps.
            if ((step & (step - 1)) == 0) add_scalings(state, step, result.scalings);
        }
        result.final_loss = sum / batches;
    }
    result.accuracy = accuracy(context, state, test);
    return result;
}

void print(const std::vector<Result> &results) {
    std::printf("%-12s %13s %10s %10s %11s %8s\n", "recipe", "test accuracy", "first loss", "final loss", "state bytes", "step ms");
    for (const Result &result : results)
        std::printf("%-12s %13.4f %10.4f %10.4f %11zu %8.3f\n", result.recipe.c_str(), result.accuracy, result.first_loss,
                    result.final_loss, result.state_bytes, result.step_ms);
    for (const Result &result : results) {
        if (result.scalings.empty()) continue;
        std::printf("\n%s: scales and histories after some steps\n%-16s %5s %13s %13s %13s\n", result.recipe.c_str(), "tensor", "step",
                    "amax", "history max", "next scale");
        for (const std::string &tensor : reported)
            for (const Scaling &scaling : result.scalings)
                if (scaling.tensor == tensor)
                    std::printf("%-16s %5d %13.6f %13.6f %13.4e\n", tensor.c_str(), scaling.step, scaling.amax, scaling.largest,
                                scaling.scale);
    }
}

Options parse(int argc, char **argv) {
    Options options;
    const std::map<std::string, int *> numbers = {
        {"--epochs", &options.epochs}, {"--threads", &options.threads}, {"--seed", &options.seed}};
    for (int i = 1; i < argc; i += 2) {
        const auto number = numbers.find(argv[i]);
        if (number == numbers.end())
            throw std::invalid_argument("unknown option '" + std::string(argv[i]) + "'. Options: --epochs N, --threads N, --seed N");
        const char *text = i + 1 < argc ? argv[i + 1] : "";
        char *end = nullptr;
        *number->second = static_cast<int>(std::strtol(text, &end, 10));
        if (*text == 0 || *end != 0 || *number->second < 1)
            throw std::invalid_argument(number->first + " must be a positive integer, got '" + text + "'");
    }
    return options;
}

} // namespace

int main(int argc, char **argv) {
    try {
        const Options options = parse(argc, argv);
        const Digits data = load_digits(DIGITS_FOLDER "/data", "train"), test = load_digits(DIGITS_FOLDER "/data", "test");
        const Context context(options.threads);
        std::vector<Result> results;
        for (const scalide_program *program :
             {digits_f32_program(), digits_f8_current_program(), digits_f8_delayed_program(), digits_f8_block_program()})
            results.push_back(train(context, program, options, data, test));
        print(results);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "digits_fp8: %s\n", error.what());
        return 1;
    }
}

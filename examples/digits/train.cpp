// Trains a digit classifier with the generated libraries, one after the other, and prints how they did. With --runs, each training writes
// its losses and the statistics of its tensors, from which `scalide report` makes a page.
#include "data.h"
#include "digits_bf16.h"
#include "digits_f16_scaled.h"
#include "digits_f32.h"
#include "digits_f8_master.h"
#include "digits_f8_scaled.h"
#include "digits_predict.h"
#include "history.h"
#include "run_record.h"
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <scalide/scalide.hpp>
#include <stdexcept>
#include <unistd.h>

using namespace scalide::runtime;

namespace {

struct Options {
    std::string data = DIGITS_FOLDER "/data", json, runs, only, generation;
    int epochs = 20, batch = 64, threads = 0, seed = 0;
    float rate = 0.1f, loss_factor = 1;
};

// Weights come from a normal distribution of standard deviation 1/sqrt(inputs). Biases stay 0.
void draw_weights(State &state, int seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (const std::string &name : state.names()) {
        Array parameter = state[name];
        if (parameter.shape().size() != 2) continue;
        std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(parameter.shape()[0])));
        std::vector<float> values(parameter.size());
        for (float &value : values) value = normal(random);
        parameter.set(values);
    }
}

// Predicts in f32, whatever the parameters are stored in.
class Judge {
public:
    Judge(const Context &context, const Digits &test)
        : test_(test), predict_(Binding::allocate(context, digits_predict_program(), {{"b", test.count}})) {
        predict_["images"].set(test.images);
    }

    double accuracy(const State &state) {
        for (const char *name : {"w1", "b1", "w2", "b2", "w3", "b3"}) predict_[name].set(state[name].get());
        predict_.run();
        const std::vector<int32_t> predictions = predict_["prediction"].get<int32_t>();
        int right = 0;
        for (int i = 0; i < test_.count; i++) right += predictions[i] == test_.labels[i];
        return static_cast<double>(right) / test_.count;
    }

private:
    const Digits &test_;
    Binding predict_;
};

// A training step for one batch size.
class Trainer {
public:
    Trainer(const Context &context, const Program &program, const State &state, int batch, const Options &options)
        : labels_(batch), binding_(Binding::allocate(context, program, {{"b", batch}}, state)) {
        binding_["rate"].set(options.rate / options.loss_factor);
        binding_["loss_factor"].set(options.loss_factor);
        if (!options.runs.empty()) statistics_.emplace(binding_);
    }

    void fill(const Digits &digits, const int *order) {
        images_.resize(labels_.size() * digits.pixels);
        for (size_t i = 0; i < labels_.size(); i++) {
            labels_[i] = digits.labels[order[i]];
            std::copy_n(digits.images.begin() + size_t(order[i]) * digits.pixels, digits.pixels, images_.begin() + i * digits.pixels);
        }
    }

    // Runs a step on the batch; returns its mean loss.
    float run(int64_t step) {
        binding_["images"].set(images_);
        binding_["labels"].set(labels_);
        if (statistics_)
            statistics_->run(step);
        else
            binding_.run();
        return binding_["loss"].item();
    }

    // The statistics of a step that has collected them, else null.
    Statistics *collected(int64_t step) { return statistics_ && statistics_->step() == step ? &*statistics_ : nullptr; }

    int batch() const { return static_cast<int>(labels_.size()); }
    int kernels() const { return static_cast<int>(binding_.step_count()); }

private:
    std::vector<float> images_;
    std::vector<int32_t> labels_;
    Binding binding_;
    std::optional<Statistics> statistics_;
};

void show_progress(const History &history, int epochs, double images_per_second) {
    if (!isatty(STDERR_FILENO)) return;
    const int done = static_cast<int>(history.loss.size()), width = 20, filled = width * done / epochs;
    std::fprintf(stderr, "\r%-10s [%s%s] epoch %d/%d  loss %.4f  accuracy %.4f  %.0f images/s%s", history.name.c_str(),
                 std::string(filled, '#').c_str(), std::string(width - filled, '.').c_str(), done, epochs, history.loss.back(),
                 history.accuracy.back(), images_per_second, done == epochs ? "\n" : "");
}

History train(const Program &program, const Options &options, const Context &context, const Digits &data, Judge &judge) {
    State state(context, program);
    draw_weights(state, options.seed);
    Trainer whole(context, program, state, options.batch, options);
    // The last batch of an epoch is smaller: the same library, bound to another batch size.
    Trainer rest(context, program, state, std::max(data.count % options.batch, 1), options);
    RunRecord record(options.runs, program.policy());
    History history{program.policy(), {}, {}, state.bytes(), whole.kernels(), 1e30};
    std::mt19937 random(static_cast<uint32_t>(options.seed + 1));
    std::vector<int> order(data.count);
    std::iota(order.begin(), order.end(), 0);
    int64_t step = 0;
    for (int epoch = 0; epoch < options.epochs; epoch++) {
        for (size_t i = order.size() - 1; i > 0; i--) std::swap(order[i], order[random() % (i + 1)]);
        double loss = 0, seconds = 0;
        for (int at = 0; at < data.count; at += options.batch, step++) {
            Trainer &trainer = at + options.batch <= data.count ? whole : rest;
            trainer.fill(data, &order[at]);
            const auto start = std::chrono::steady_clock::now();
            const float mean = trainer.run(step);
            const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            Statistics *statistics = trainer.collected(step);
            // The table has the time of a step that does what every step does: a whole batch, without statistics.
            if (&trainer == &whole && !statistics) history.step_ms = std::min(history.step_ms, time * 1e3);
            record.write(step, "loss", mean);
            record.write(step, statistics);
            loss += mean * trainer.batch();
            seconds += time;
        }
        history.loss.push_back(loss / data.count);
        history.accuracy.push_back(judge.accuracy(state));
        record.write(step - 1, "accuracy", history.accuracy.back());
        show_progress(history, options.epochs, data.count / seconds);
    }
    record.close();
    return history;
}

// Lines of a policy, seconds from an empty cache, seconds from a full one.
void read_generation(const std::string &file, std::vector<History> &histories) {
    std::ifstream in(file);
    std::string name;
    double cold, warm;
    while (in >> name >> cold >> warm) {
        for (History &history : histories) {
            if (history.name != name) continue;
            history.cold_seconds = cold;
            history.warm_seconds = warm;
        }
    }
}

const char *usage = "usage: digits_train [--data FOLDER] [--epochs N] [--batch N] [--seed N] [--threads N] [--rate R] [--loss-factor F]\n"
                    "                    [--only POLICY] [--json FILE] [--runs FOLDER] [--generation FILE]\n";

template<typename Number>
void read_number(const std::string &option, const std::string &text, Number least, Number &number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !(number >= least))
        throw std::invalid_argument(option + " must be a number that is at least " + std::to_string(static_cast<int>(least)) + ", got '" +
                                    text + "'.");
}

Options parse(int argc, char **argv) {
    Options options;
    const std::map<std::string, std::string *> texts = {{"--data", &options.data},
                                                        {"--json", &options.json},
                                                        {"--runs", &options.runs},
                                                        {"--only", &options.only},
                                                        {"--generation", &options.generation}};
    const std::map<std::string, std::pair<int *, int>> integers = {{"--epochs", {&options.epochs, 1}},
                                                                   {"--batch", {&options.batch, 1}},
                                                                   {"--threads", {&options.threads, 0}},
                                                                   {"--seed", {&options.seed, 0}}};
    const std::map<std::string, float *> reals = {{"--rate", &options.rate}, {"--loss-factor", &options.loss_factor}};
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (texts.count(name) + integers.count(name) + reals.count(name) == 0)
            throw std::invalid_argument("unknown option '" + name + "'.");
        if (i + 1 == argc) throw std::invalid_argument(name + " must have a value.");
        const std::string value = argv[i + 1];
        if (texts.count(name) > 0) *texts.at(name) = value;
        if (integers.count(name) > 0) read_number(name, value, integers.at(name).second, *integers.at(name).first);
        if (reals.count(name) > 0) read_number(name, value, 0.0f, *reals.at(name));
    }
    return options;
}

void run(const Options &options) {
    const Digits data = load_digits(options.data, "train"), test = load_digits(options.data, "test");
    if (options.batch > data.count)
        throw std::invalid_argument("--batch must be at most " + std::to_string(data.count) + ", the number of images, got " +
                                    std::to_string(options.batch) + ".");
    const Context context(options.threads, Program(digits_predict_program()).device());
    Judge judge(context, test);
    std::vector<History> histories;
    for (const Program program :
         {digits_f32_program(), digits_bf16_program(), digits_f16_scaled_program(), digits_f8_scaled_program(), digits_f8_master_program()})
        if (options.only.empty() || options.only == program.policy()) histories.push_back(train(program, options, context, data, judge));
    if (histories.empty())
        throw std::invalid_argument("--only must be f32, bf16, f16_scaled, f8_scaled or f8_master, got '" + options.only + "'.");
    if (!options.generation.empty()) read_generation(options.generation, histories);
    print_table(histories);
    if (!options.json.empty()) write_json(histories, options.json);
}

} // namespace

int main(int argc, char **argv) {
    try {
        run(parse(argc, argv));
    } catch (const std::invalid_argument &error) {
        std::fprintf(stderr, "digits_train: %s\n%s", error.what(), usage);
        return 2;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "digits_train: %s\n", error.what());
        return 1;
    }
}

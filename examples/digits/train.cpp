// Trains a digit classifier with the generated libraries, one after the other, and reports how they did.
#include "data.h"
#include "digits_bf16.h"
#include "digits_f16_scaled.h"
#include "digits_f16_scaled_traceable.h"
#include "digits_f32.h"
#include "digits_f8_master.h"
#include "digits_f8_master_traceable.h"
#include "digits_f8_scaled.h"
#include "digits_f8_scaled_traceable.h"
#include "digits_predict.h"
#include "report.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <scalide/scalide.hpp>
#include <stdexcept>
#include <unistd.h>

using namespace scalide::runtime;

namespace {

struct Variant {
    const char *name;
    Program program, traceable; // `traceable` stores what a trace shows
};

struct Options {
    std::string data = DIGITS_FOLDER "/data", json, html, only, generation;
    int epochs = 20, batch = 64, threads = 0;
    unsigned seed = 0;
    float rate = 0.1f, loss_factor = 1;
};

// Weights come from a normal distribution of standard deviation 1/sqrt(inputs). Biases stay 0.
void draw_weights(State &state, unsigned seed) {
    std::mt19937 random(seed);
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
    }

    void fill(const Digits &digits, const int *order) {
        images_.resize(labels_.size() * digits.pixels);
        for (size_t i = 0; i < labels_.size(); i++) {
            labels_[i] = digits.labels[order[i]];
            std::copy_n(digits.images.begin() + size_t(order[i]) * digits.pixels, digits.pixels, images_.begin() + i * digits.pixels);
        }
    }

    // One step on the batch; returns its mean loss.
    float step() {
        copy_batch();
        binding_.run();
        return binding_["loss"].item();
    }

    // Looks into a step that changes nothing.
    StepTrace traced_step(const State &state) {
        copy_batch();
        binding_["rate"].set(0.0f);
        StepTrace trace;
        trace.add("images", binding_["images"]);
        for (const std::string &name : state.names()) trace.add(name, state[name]);
        binding_.run_traced([&](const scalide_traced &buffer, const scalide_array &array) { trace.add(buffer, array); });
        return trace;
    }

    int kernels() const { return static_cast<int>(binding_.step_count()); }

private:
    void copy_batch() {
        binding_["images"].set(images_);
        binding_["labels"].set(labels_);
    }

    std::vector<float> images_;
    std::vector<int32_t> labels_;
    Binding binding_;
};

void show_progress(const History &history, int epochs, double images_per_second) {
    if (!isatty(STDERR_FILENO)) return;
    const int done = static_cast<int>(history.loss.size()), width = 20, filled = width * done / epochs;
    std::fprintf(stderr, "\r%-10s [%s%s] epoch %d/%d  loss %.4f  accuracy %.4f  %.0f images/s%s", history.name.c_str(),
                 std::string(filled, '#').c_str(), std::string(width - filled, '.').c_str(), done, epochs, history.loss.back(),
                 history.accuracy.back(), images_per_second, done == epochs ? "\n" : "");
}

History train(const Variant &variant, const Options &options, const Context &context, const Digits &data, Judge &judge) {
    State state(context, variant.program);
    draw_weights(state, options.seed);
    Trainer trainer(context, variant.program, state, options.batch, options);
    // The last batch of an epoch is smaller: the same library, bound to another batch size.
    const int rest = data.count % options.batch;
    Trainer traced(context, variant.traceable, state, options.batch, options);
    Trainer last(context, variant.program, state, std::max(rest, 1), options);
    History history{variant.name, {}, {}, {}, {}, state.bytes(), trainer.kernels(), 1e30};
    std::mt19937 random(options.seed + 1);
    std::vector<int> order(data.count);
    std::iota(order.begin(), order.end(), 0);
    for (int epoch = 0; epoch < options.epochs; epoch++) {
        for (size_t i = order.size() - 1; i > 0; i--) std::swap(order[i], order[random() % (i + 1)]);
        double loss = 0, seconds = 0;
        int at = 0;
        for (; at + options.batch <= data.count; at += options.batch) {
            trainer.fill(data, &order[at]);
            const auto start = std::chrono::steady_clock::now();
            loss += trainer.step() * options.batch;
            const double step = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            seconds += step;
            history.step_ms = std::min(history.step_ms, step * 1e3);
        }
        if (rest > 0) {
            last.fill(data, &order[at]);
            loss += last.step() * rest;
        }
        history.loss.push_back(loss / data.count);
        history.accuracy.push_back(judge.accuracy(state));
        traced.fill(data, order.data());
        const StepTrace trace = traced.traced_step(state);
        history.scales.push_back(trace.scales);
        history.codes.push_back(trace.codes);
        show_progress(history, options.epochs, at / seconds);
    }
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
                    "                    [--only POLICY] [--json FILE] [--html FILE]\n";

Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 == argc) throw std::invalid_argument(name + " must have a value");
        const std::string value = argv[i + 1];
        if (name == "--data")
            options.data = value;
        else if (name == "--json")
            options.json = value;
        else if (name == "--html")
            options.html = value;
        else if (name == "--only")
            options.only = value;
        else if (name == "--generation")
            options.generation = value;
        else if (name == "--epochs")
            options.epochs = std::max(1, std::stoi(value));
        else if (name == "--batch")
            options.batch = std::max(1, std::stoi(value));
        else if (name == "--threads")
            options.threads = std::stoi(value);
        else if (name == "--seed")
            options.seed = static_cast<unsigned>(std::stoul(value));
        else if (name == "--rate")
            options.rate = std::stof(value);
        else if (name == "--loss-factor")
            options.loss_factor = std::stof(value);
        else
            throw std::invalid_argument("unknown option " + name);
    }
    return options;
}

void run(const Options &options) {
    const Digits data = load_digits(options.data, "train"), test = load_digits(options.data, "test");
    const Context context(options.threads, Program(digits_predict_program()).device());
    Judge judge(context, test);
    std::vector<History> histories;
    for (const Variant &variant :
         {Variant{"f32", digits_f32_program(), digits_f32_program()}, Variant{"bf16", digits_bf16_program(), digits_bf16_program()},
          Variant{"f16_scaled", digits_f16_scaled_program(), digits_f16_scaled_traceable_program()},
          Variant{"f8_scaled", digits_f8_scaled_program(), digits_f8_scaled_traceable_program()},
          Variant{"f8_master", digits_f8_master_program(), digits_f8_master_traceable_program()}}) {
        if (options.only.empty() || options.only == variant.name) histories.push_back(train(variant, options, context, data, judge));
    }
    if (histories.empty()) throw std::invalid_argument("--only must be f32, bf16, f16_scaled, f8_scaled or f8_master, got " + options.only);
    if (!options.generation.empty()) read_generation(options.generation, histories);
    print_table(histories);
    if (!options.json.empty()) write_file(options.json, to_json(histories));
    if (!options.html.empty()) write_file(options.html, to_html(histories, DIGITS_FOLDER "/report.html"));
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

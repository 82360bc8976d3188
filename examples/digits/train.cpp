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
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <scalide/plan.h>
#include <stdexcept>
#include <unistd.h>

namespace {

struct Variant {
    const char *name;
    const scalide_program *program, *traceable; ///< `traceable` stores what a trace shows
};

struct Options {
    std::string data = DIGITS_FOLDER "/data", json, html, only, generation;
    int epochs = 20, batch = 64, threads = 0;
    unsigned seed = 0;
    float rate = 0.1f, loss_factor = 1;
};

const std::vector<int64_t> widths{64, 128, 128, 10};

// Predicts in f32, whatever the parameters are stored in.
class Judge {
public:
    Judge(scalide_context *context, const Digits &test) : context_(context), test_(test), predictions_(test.count) {}

    double accuracy(const std::vector<Parameter> &parameters) {
        const int64_t image_shape[] = {test_.count, test_.pixels}, count[] = {test_.count};
        std::vector<Memory> memory;
        std::vector<scalide_array> arrays;
        const auto add = [&](const std::vector<float> &values, int32_t rank, const int64_t *shape) {
            memory.emplace_back(context_, values.size() * sizeof(float)).set(values.data());
            arrays.push_back(scalide_dense_array(memory.back().at(), nullptr, SCALIDE_F32, rank, shape));
        };
        add(test_.images, 2, image_shape);
        for (const Parameter &parameter : parameters) add(parameter.values(), parameter.info.rank, parameter.shape.data());
        const Memory predicted(context_, predictions_.size() * sizeof(int32_t));
        arrays.push_back(scalide_dense_array(predicted.at(), nullptr, SCALIDE_I32, 1, count));
        scalide_binding *binding = nullptr;
        check(scalide_bind(context_, digits_predict_program(), arrays.data(), arrays.size(), &binding), context_);
        const Binding owner(binding, scalide_binding_destroy);
        check(scalide_run(binding), context_);
        predicted.get(predictions_.data());
        int right = 0;
        for (int i = 0; i < test_.count; i++) right += predictions_[i] == test_.labels[i];
        return static_cast<double>(right) / test_.count;
    }

private:
    scalide_context *context_;
    const Digits &test_;
    std::vector<int32_t> predictions_;
};

void fill(Trainer &trainer, const Digits &digits, const int *order) {
    for (size_t i = 0; i < trainer.labels.size(); i++) {
        trainer.labels[i] = digits.labels[order[i]];
        std::copy_n(digits.images.begin() + size_t(order[i]) * digits.pixels, digits.pixels, trainer.images.begin() + i * digits.pixels);
    }
}

void show_progress(const History &history, int epochs, double images_per_second) {
    if (!isatty(STDERR_FILENO)) return;
    const int done = static_cast<int>(history.loss.size()), width = 20, filled = width * done / epochs;
    std::fprintf(stderr, "\r%-10s [%s%s] epoch %d/%d  loss %.4f  accuracy %.4f  %.0f images/s%s", history.name.c_str(),
                 std::string(filled, '#').c_str(), std::string(width - filled, '.').c_str(), done, epochs, history.loss.back(),
                 history.accuracy.back(), images_per_second, done == epochs ? "\n" : "");
}

History train(const Variant &variant, const Options &options, scalide_context *context, const Digits &data, Judge &judge) {
    std::vector<Parameter> parameters = make_parameters(context, variant.program, widths, options.seed);
    Trainer trainer(context, variant.program, parameters, options.batch, data.pixels);
    // The last batch of an epoch is smaller: the same library, bound to another batch size.
    const int rest = data.count % options.batch;
    Trainer traced(context, variant.traceable, parameters, options.batch, data.pixels);
    Trainer last(context, variant.program, parameters, std::max(rest, 1), data.pixels);
    History history{variant.name, {}, {}, {}, {}, 0, variant.program->step_count, 1e30};
    for (const Parameter &parameter : parameters) history.state_bytes += parameter.bytes();
    std::mt19937 random(options.seed + 1);
    std::vector<int> order(data.count);
    std::iota(order.begin(), order.end(), 0);
    for (int epoch = 0; epoch < options.epochs; epoch++) {
        for (size_t i = order.size() - 1; i > 0; i--) std::swap(order[i], order[random() % (i + 1)]);
        double loss = 0, seconds = 0;
        int at = 0;
        for (; at + options.batch <= data.count; at += options.batch) {
            fill(trainer, data, &order[at]);
            const auto start = std::chrono::steady_clock::now();
            loss += trainer.step(options.rate / options.loss_factor, options.loss_factor) * options.batch;
            const double step = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            seconds += step;
            history.step_ms = std::min(history.step_ms, step * 1e3);
        }
        if (rest > 0) {
            fill(last, data, &order[at]);
            loss += last.step(options.rate / options.loss_factor, options.loss_factor) * rest;
        }
        history.loss.push_back(loss / data.count);
        history.accuracy.push_back(judge.accuracy(parameters));
        fill(traced, data, order.data());
        StepTrace trace = traced.traced_step(0, options.loss_factor);
        for (const Parameter &parameter : parameters) {
            if (parameter.info.scaled) trace.scales[parameter.info.name] = parameter.scale();
        }
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
    const Context context = make_context(options.threads, scalide_program_device(digits_predict_program()));
    Judge judge(context.get(), test);
    std::vector<History> histories;
    for (const Variant &variant :
         {Variant{"f32", digits_f32_program(), digits_f32_program()}, Variant{"bf16", digits_bf16_program(), digits_bf16_program()},
          Variant{"f16_scaled", digits_f16_scaled_program(), digits_f16_scaled_traceable_program()},
          Variant{"f8_scaled", digits_f8_scaled_program(), digits_f8_scaled_traceable_program()},
          Variant{"f8_master", digits_f8_master_program(), digits_f8_master_traceable_program()}}) {
        if (options.only.empty() || options.only == variant.name) histories.push_back(train(variant, options, context.get(), data, judge));
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

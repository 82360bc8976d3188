// Trains a digit classifier on all processes that mpirun has started. Each process computes with its part of each batch.
#include "data.h"
#include "policies.h"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <scalide/groups.hpp>
#include <scalide/scalide.hpp>
#include <stdexcept>

using namespace scalide::runtime;

namespace {

struct Options {
    std::string policy = "f32", save, load;
    int epochs = 10, batch = 60, threads = 1;
};

Program program_of(const std::string &policy) {
    std::string names;
    for (const scalide_program *each : digits_programs) {
        const Program program(each);
        if (program.policy() == policy) return program;
        names += (names.empty() ? "" : ", ") + program.policy();
    }
    throw std::invalid_argument("--policy must be one of " + names + ", got '" + policy + "'");
}

// All ranks draw the same numbers.
void draw_weights(const State &state) {
    std::mt19937 random(0);
    for (const char *name : {"w1", "w2"}) {
        Array parameter = state[name];
        std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(parameter.shape()[0])));
        std::vector<float> values(parameter.size());
        for (float &value : values) value = normal(random);
        parameter.set(values);
    }
}

// A hash of the bits of all parameters (FNV-1a): equal on all ranks.
uint64_t hash_of(const State &state) {
    uint64_t hash = 14695981039346656037u;
    for (const char *name : {"w1", "b1", "w2", "b2"})
        for (const float value : state[name].get()) {
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            hash = (hash ^ bits) * 1099511628211u;
        }
    return hash;
}

void train(const Options &options) {
    const Digits digits = load_digits(DIGITS_FOLDER, "train");
    const Context context(options.threads);
    join_mpi(context, "data");
    const int ranks = scalide::runtime::ranks(context, "data"), rank = scalide::runtime::rank(context, "data");
    if (options.batch % ranks != 0)
        throw std::invalid_argument("--batch must be a multiple of the number of ranks, " + std::to_string(ranks) + ", got " +
                                    std::to_string(options.batch));
    const int rows = options.batch / ranks;
    State state(context, program_of(options.policy));
    options.load.empty() ? draw_weights(state) : state.load(options.load);
    Binding step = Binding::allocate(context, state.program(), {{"b", rows}}, state);
    step["rate"].set(0.1f);
    std::mt19937 random(1); // all ranks draw the same order
    std::vector<int> order(digits.count);
    std::iota(order.begin(), order.end(), 0);
    for (int epoch = 1; epoch <= options.epochs; epoch++) {
        for (size_t i = order.size() - 1; i > 0; i--) std::swap(order[i], order[random() % (i + 1)]);
        double loss = 0;
        int steps = 0;
        for (int at = rank * rows; at + rows <= digits.count - digits.count % options.batch; at += options.batch, steps++) {
            std::vector<float> images;
            std::vector<int32_t> labels;
            for (int i = at; i < at + rows; i++) {
                const auto image = digits.images.begin() + size_t(order[i]) * digits.pixels;
                images.insert(images.end(), image, image + digits.pixels);
                labels.push_back(digits.labels[order[i]]);
            }
            step["images"].set(images);
            step["labels"].set(labels);
            step.run(); // waits for the other ranks where they exchange gradients
            loss += step["loss"].item();
        }
        if (rank == 0) std::printf("epoch %d: loss %.6f\n", epoch, loss / steps);
    }
    if (rank == 0 && !options.save.empty()) state.save(options.save); // all ranks have the same state
    std::printf("rank %d of %d: parameters %016llx\n", rank, ranks, static_cast<unsigned long long>(hash_of(state)));
}

Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
        int *number = name == "--epochs"    ? &options.epochs
                      : name == "--batch"   ? &options.batch
                      : name == "--threads" ? &options.threads
                                            : nullptr;
        std::string *text = name == "--policy" ? &options.policy
                            : name == "--save" ? &options.save
                            : name == "--load" ? &options.load
                                               : nullptr;
        if (!number && !text)
            throw std::invalid_argument("unknown option '" + name +
                                        "'. Options: --policy NAME, --epochs N, --batch N, --threads N, --save FILE, --load FILE");
        if (text) *text = value;
        char *end = nullptr;
        if (number) *number = static_cast<int>(std::strtol(value.c_str(), &end, 10));
        if (value.empty() || (number && (*end != 0 || *number < 1)))
            throw std::invalid_argument(name + (number ? " must be a positive integer, got '" : " must not be empty, got '") + value + "'");
    }
    return options;
}

} // namespace

int main(int argc, char **argv) {
    try {
        train(parse(argc, argv));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "data_parallel: %s\n", error.what());
        return 1;
    }
}

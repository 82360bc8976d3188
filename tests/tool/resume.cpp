// Trains from the latest checkpoint to a step, and writes the final state. The process kills itself after step `killed`.
// Usage: resume FOLDER FINAL KILLED
#include "scalide/checkpoints.hpp"
#include "step.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace scalide::runtime;

namespace {

constexpr int64_t batch = 16, steps = 20, saved = 10;

std::vector<float> numbers(size_t count, float size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> made(count);
    for (float &number : made) number = size * (static_cast<float>(random() % 2001) / 1000 - 1);
    return made;
}

int train(const char *folder, const char *final_file, int64_t killed) {
    const Context context(1);
    State state(context, step_program());
    state["w"].set(numbers(64 * 32, 0.2F, 1));
    state["v"].set(numbers(32 * 16, 0.2F, 2));
    std::vector<uint32_t> key = {3, 4};
    const Checkpoints checkpoints(folder);
    int64_t first = 0;
    if (checkpoints.latest() != SCALIDE_LATEST_STEP) first = checkpoints.restore(state, {{"key", Array(key)}});
    Binding step = Binding::allocate(context, step_program(), {{"b", batch}}, state);
    for (int64_t now = first + 1; now <= steps; ++now) {
        std::mt19937 random(key[0] ^ key[1]);
        key = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
        step["x"].set(numbers(batch * 64, 1, key[0]));
        step["y"].set(numbers(batch * 16, 1, key[1]));
        step.run();
        if (now == saved) checkpoints.save(now, state, {{"key", Array(key)}}, {{"data", "drawn"}});
        if (now == killed) raise(SIGKILL);
    }
    state.save(final_file, {{"loss", std::to_string(step["loss"].item())}});
    if (checkpoints.metadata()["data"] != "drawn" || checkpoints.metadata()["scalide.policy"] != step.program().policy()) return 2;
    std::printf("%lld\n", static_cast<long long>(first));
    return 0;
}

} // namespace

int main(int count, char **words) {
    try {
        return count == 4 ? train(words[1], words[2], std::atoi(words[3])) : 3;
    } catch (const Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

// runtime::Statistics of scalide.hpp. Usage: statistics BATCH
#include "counted.h"
#include "plain.h"
#include "scalide/scalide.hpp"
#include "statistics_reference.h"
#include <cstdlib>
#include <string>
#include <vector>

using namespace scalide::runtime;

namespace {

constexpr int64_t inner = 24, outer = 16, moved = 3;

std::vector<float> numbers(int64_t count, uint32_t seed) {
    std::vector<float> made(static_cast<size_t>(count));
    draw(made.data(), count, seed);
    return made;
}

/// Sets arrays by name, and compares x as an argument, x in FP8 and y with the reference.
void check_batch(const Context &context, int64_t batch) {
    Binding binding = Binding::allocate(context, counted_program(), {{"b", batch}});
    binding["w"].set(numbers(inner * outer, 3));
    Statistics statistics(binding);
    check_number("step", static_cast<double>(statistics.step()), -1, 0);
    check_number("program", statistics.program() == counted_program(), 1, 0);
    const std::vector<scalide_statistic_info> infos = statistics.tensors();
    check_number("tensors", static_cast<double>(infos.size()), 6, 0);
    std::vector<float> kept; // y of the newest step that collected it
    for (int64_t step = 0; step < 6; ++step) {
        std::vector<float> x = numbers(batch * inner, static_cast<uint32_t>(step));
        if (!x.empty()) x.front() = 2000;
        if (!x.empty() && step == 4) x.back() = -INFINITY;
        binding["x"].set(x);
        statistics.run(step);
        if (step % infos[5].every == 0) kept = binding["y"].get();
        const std::vector<scalide_statistic> rows = statistics.read();
        const auto compare = [&](size_t tensor, const std::vector<float> &data, bool is_rounded, const number_format &format) {
            scalide_statistic wanted = reference_of(data.data(), static_cast<int64_t>(data.size()), 1, is_rounded, &format, &infos[tensor]);
            wanted.step = step / infos[tensor].every * infos[tensor].every;
            const std::string what = "batch " + std::to_string(batch) + ", step " + std::to_string(step) + ", " + infos[tensor].tensor;
            check_row(what.c_str(), &rows.at(tensor), wanted, &infos[tensor]);
        };
        compare(0, x, false, format_f32);
        compare(3, x, true, format_e4m3);
        compare(5, kept, false, format_f32);
        check_number("elements of m", static_cast<double>(rows.at(2).elements), static_cast<double>(batch * moved), 0);
    }
}

/// An object that was moved from is empty, and the new one has the numbers.
void check_moves(const Context &context) {
    Binding binding = Binding::allocate(context, counted_program(), {{"b", 2}});
    Statistics first(binding);
    first.run(8);
    Statistics second = std::move(first);
    check_number("step after a move", static_cast<double>(second.step()), 8, 0);
    check_number("rows after a move", static_cast<double>(second.read().at(0).step), 8, 0);
}

void check_errors(const Context &context) {
    Binding binding = Binding::allocate(context, plain_program(), {{"b", 2}});
    try {
        Statistics statistics(binding);
        check_text("message", "", "an error");
    } catch (const Error &error) {
        check_number("status", error.status(), SCALIDE_UNSUPPORTED, 0);
        check_text("message", error.what(),
                   "plain: the program was built without statistics. Build it with --statistics, or with a policy that has rows "
                   "'statistics'.");
    }
}

} // namespace

int main(int count, char **words) {
    if (count != 2) return 2;
    try {
        const Context context(2);
        check_batch(context, std::atoi(words[1]));
        check_moves(context);
        check_errors(context);
    } catch (const Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return failures == 0 ? 0 : 1;
}

#include "history.h"
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace {

std::string format(const char *pattern, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

template<typename List, typename Function>
std::string json_list(const List &list, Function to_text) {
    std::string text = "[";
    for (const auto &item : list) text += (text.size() > 1 ? ", " : "") + to_text(item);
    return text + "]";
}

std::string number(double value) { return format("%.9g", value); }

std::string history_json(const History &history) {
    return format("{\"policy\": \"%s\", \"test_accuracy\": %.6f, \"final_loss\": %.9g, \"state_bytes\": %zu, \"step_ms\": %.6f, "
                  "\"kernels\": %d, \"generation_cold_s\": %.3f, \"generation_warm_s\": %.3f, ",
                  history.name.c_str(), history.accuracy.back(), history.loss.back(), history.state_bytes, history.step_ms, history.kernels,
                  history.cold_seconds, history.warm_seconds) +
           "\"loss\": " + json_list(history.loss, number) + ", \"accuracy\": " + json_list(history.accuracy, number) + "}";
}

} // namespace

void print_table(const std::vector<History> &histories) {
    std::printf("%-10s %13s %10s %12s %9s %8s %10s %10s\n", "policy", "test accuracy", "final loss", "state bytes", "step ms", "kernels",
                "cold s", "warm s");
    for (const History &history : histories) {
        std::printf("%-10s %13.4f %10.4f %12zu %9.3f %8d %10.2f %10.2f\n", history.name.c_str(), history.accuracy.back(),
                    history.loss.back(), history.state_bytes, history.step_ms, history.kernels, history.cold_seconds, history.warm_seconds);
    }
}

void write_json(const std::vector<History> &histories, const std::string &file) {
    const std::string part = file + ".part";
    std::ofstream out(part, std::ios::binary);
    out << json_list(histories, history_json) << "\n";
    out.close();
    if (!out || std::rename(part.c_str(), file.c_str()) != 0) {
        std::remove(part.c_str());
        throw std::runtime_error("cannot write " + file);
    }
}

#include "report.h"
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace {

std::string format(const char *pattern, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

template<typename List, typename Function>
std::string json_list(const List &list, Function to_text, const char *brackets) {
    std::string text(1, brackets[0]);
    for (const auto &item : list) text += (text.size() > 1 ? ", " : "") + to_text(item);
    return text + brackets[1];
}

std::string number(double value) { return format("%.9g", value); }

std::string codes_json(const std::map<std::string, StepTrace::Codes> &codes) {
    return json_list(
        codes,
        [](const auto &entry) {
            const auto &[name, c] = entry;
            const double n = c.count ? static_cast<double>(c.count) : 1;
            const std::string underflowed = c.underflowed ? format("%.6f", static_cast<double>(*c.underflowed) / n) : "null";
            return format("\"%s\": {\"underflowed\": %s, \"subnormal\": %.6f, \"saturated\": %.6f}", name.c_str(), underflowed.c_str(),
                          c.subnormal / n, c.largest / n);
        },
        "{}");
}

std::string scales_json(const std::map<std::string, double> &scales) {
    return json_list(
        scales, [](const auto &entry) { return "\"" + entry.first + "\": " + number(entry.second); }, "{}");
}

std::string history_json(const History &history) {
    return format("{\"policy\": \"%s\", \"test_accuracy\": %.6f, \"final_loss\": %.9g, \"state_bytes\": %zu, \"step_ms\": %.6f, "
                  "\"kernels\": %d, \"generation_cold_s\": %.3f, \"generation_warm_s\": %.3f, ",
                  history.name.c_str(), history.accuracy.back(), history.loss.back(), history.state_bytes, history.step_ms, history.kernels,
                  history.cold_seconds, history.warm_seconds) +
           "\"loss\": " + json_list(history.loss, number, "[]") + ", \"accuracy\": " + json_list(history.accuracy, number, "[]") +
           ", \"scales\": " + json_list(history.scales, scales_json, "[]") + ", \"codes\": " + json_list(history.codes, codes_json, "[]") +
           "}";
}

} // namespace

std::string to_json(const std::vector<History> &histories) { return json_list(histories, history_json, "[]") + "\n"; }

void write_file(const std::string &file, const std::string &text) {
    const std::string part = file + ".part";
    std::ofstream out(part, std::ios::binary);
    out << text;
    out.close();
    if (!out || std::rename(part.c_str(), file.c_str()) != 0) {
        std::remove(part.c_str());
        throw std::runtime_error("cannot write " + file);
    }
}

std::string to_html(const std::vector<History> &histories, const std::string &page) {
    std::ifstream in(page, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::string mark = "__HISTORIES__";
    const size_t at = text.find(mark);
    if (at == std::string::npos) throw std::runtime_error(page + ": the page must contain the mark " + mark);
    return text.replace(at, mark.size(), to_json(histories));
}

void print_table(const std::vector<History> &histories) {
    std::printf("%-10s %13s %10s %12s %9s %8s %10s %10s\n", "policy", "test accuracy", "final loss", "state bytes", "step ms", "kernels",
                "cold s", "warm s");
    for (const History &history : histories) {
        std::printf("%-10s %13.4f %10.4f %12zu %9.3f %8d %10.2f %10.2f\n", history.name.c_str(), history.accuracy.back(),
                    history.loss.back(), history.state_bytes, history.step_ms, history.kernels, history.cold_seconds, history.warm_seconds);
    }
}

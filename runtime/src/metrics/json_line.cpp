#include "metrics/json_line.h"
#include "files/json_text.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace scalide {

namespace {

/// Finds whether a line is a whole JSON object: its last character is a brace that is in no string.
struct LineScan {
    bool in_string = false, escaped = false, ends = false;

    void take(char character) {
        ends = !in_string && character == '}';
        const bool quotes = character == '"' && !escaped;
        escaped = in_string && character == '\\' && !escaped;
        in_string ^= quotes;
    }
};

/// Finds the beginning of the last line of a file. Returns false if it fails.
bool find_last_line(const File &file, uint64_t size, uint64_t *begin) {
    char block[4096];
    for (uint64_t end = size; end > 0;) {
        const uint64_t bytes = end < sizeof(block) ? end : sizeof(block);
        if (!file.read_at(end - bytes, block, bytes)) return false;
        for (uint64_t i = bytes; i-- > 0;) {
            if (block[i] != '\n') continue;
            *begin = end - bytes + i + 1;
            return true;
        }
        end -= bytes;
    }
    *begin = 0;
    return true;
}

bool scan_line(const File &file, uint64_t begin, uint64_t end, LineScan *scan) {
    char block[4096];
    while (begin < end) {
        const uint64_t bytes = end - begin < sizeof(block) ? end - begin : sizeof(block);
        if (!file.read_at(begin, block, bytes)) return false;
        for (uint64_t i = 0; i < bytes; ++i) scan->take(block[i]);
        begin += bytes;
    }
    return true;
}

} // namespace

/// Prints the shortest of 15, 16 and 17 digits that reads back as the same number, as a JSON number with a point or an exponent. The
/// decimal sign of the host's locale becomes a point.
void print_number(Text &text, double value) {
    if (!std::isfinite(value)) {
        text << (std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    char digits[64];
    for (int precision = 15; precision <= 17; ++precision) {
        std::snprintf(digits, sizeof(digits), "%.*g", precision, value);
        if (std::strtod(digits, nullptr) == value) break;
    }
    bool was_sign = false, is_whole = true; // a decimal sign may have several bytes
    for (const char *digit = digits; *digit; ++digit) {
        const bool is_sign = !std::strchr("0123456789+-e", *digit);
        if (!is_sign) text << *digit;
        if (is_sign && !was_sign) text << '.';
        was_sign = is_sign;
        is_whole &= !is_sign && *digit != 'e';
    }
    if (is_whole) text << ".0";
}

void print_line(Text &text, double time, int64_t step, const scalide_metric *values, size_t count) {
    text << "{\"step\": " << step << ", \"time\": ";
    print_number(text, time);
    for (size_t i = 0; i < count; ++i) {
        print_escaped(text << ", \"", values[i].name) << "\": ";
        print_number(text, values[i].value);
    }
    text << "}\n";
}

size_t whole_lines(const char *memory, size_t bytes, uint64_t *lines) {
    size_t whole = 0;
    for (size_t i = 0; i < bytes; ++i) {
        if (memory[i] != '\n') continue;
        whole = i + 1;
        ++*lines;
    }
    return whole;
}

bool heal_last_line(const File &file) {
    uint64_t size = 0, begin = 0;
    if (!file.size(&size) || !find_last_line(file, size, &begin)) return false;
    if (begin == size) return true;
    LineScan scan;
    if (!scan_line(file, begin, size, &scan)) return false;
    return scan.ends ? file.write("\n", 1) : file.truncate(begin);
}

} // namespace scalide

#include "metrics/statistics_line.h"
#include "files/json_text.h"
#include "metrics/json_line.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace scalide {

namespace {

/// The numbers of a format between which its window of magnitudes lies.
struct Window {
    double largest, smallest_normal, smallest;
};

Window window_of(int32_t dtype) {
    switch (dtype) {
#define SCALIDE_WINDOW(id, name, exponent, mantissa, bias, sign, infinity, subnormals, negative_zero, nan, largest, ties)                  \
    case SCALIDE_##id:                                                                                                                     \
        return {std::ldexp(double(((largest) & ((1u << (mantissa)) - 1)) | 1u << (mantissa)),                                              \
                           int((largest) >> (mantissa)) - (bias) - (mantissa)),                                                            \
                std::ldexp(1.0, 1 - (bias)), std::ldexp(1.0, 1 - (bias) - (mantissa))};
        SCALIDE_FORMATS(SCALIDE_WINDOW)
#undef SCALIDE_WINDOW
    default: return {0, 0, 0};
    }
}

constexpr const char *kind_words[] = {"amax", "rms", "zeros", "saturated", "subnormal", "non_finite", "histogram"};

void print_text(Text &text, const char *key, const char *value) {
    text << "\"" << key << "\": ";
    if (!value) {
        text << "null, ";
        return;
    }
    print_escaped(text << '"', value) << "\", ";
}

/// Writes what a tensor is, and where it is computed.
void print_place(Text &text, const scalide_statistic_info &info) {
    print_text(text, "tensor", info.tensor);
    print_text(text, "use", info.use);
    print_text(text, "operator", info.op);
    print_text(text, "format", scalide_dtype_name(info.dtype));
    print_text(text, "scope", info.scope);
    print_text(text, "direction", info.direction);
    print_text(text, "source", info.location);
}

void print_tensor(Text &text, const scalide_program &program, size_t index) {
    scalide_statistic_info info;
    scalide_describe_statistic(&program, index, &info);
    const Window window = window_of(info.dtype);
    text << '{';
    print_place(text, info);
    print_text(text, "policy", info.policy);
    text << "\"every\": " << info.every << ", \"collect\": [";
    const char *separator = "";
    for (uint32_t kind = 0; kind < 7; ++kind) {
        if (!(info.collects & 1u << kind)) continue;
        text << separator << '"' << kind_words[kind] << '"';
        separator = ", ";
    }
    text << "], \"first_exponent\": " << info.first_exponent << ", \"octaves\": " << info.octaves << ", \"largest\": ";
    print_number(text, window.largest);
    print_number(text << ", \"smallest_normal\": ", window.smallest_normal);
    print_number(text << ", \"smallest\": ", window.smallest);
    text << '}';
}

/// A number of a row. A count is negative, and another number NaN, if it is not collected.
struct Column {
    const char *name;
    double scalide_statistic::*number;
    int64_t scalide_statistic::*count;
};
constexpr Column columns[] = {
    {"elements", nullptr, &scalide_statistic::elements},   {"amax", &scalide_statistic::amax, nullptr},
    {"scale", &scalide_statistic::scale, nullptr},         {"rms", &scalide_statistic::rms, nullptr},
    {"zeros", nullptr, &scalide_statistic::zeros},         {"saturated", nullptr, &scalide_statistic::saturated},
    {"subnormal", nullptr, &scalide_statistic::subnormal}, {"non_finite", nullptr, &scalide_statistic::non_finite},
    {"first", nullptr, &scalide_statistic::first}};

/// Counts of the tensor itself, which have no meaning on a curve.
constexpr bool is_curve(const Column &column) {
    return column.count != &scalide_statistic::first && column.count != &scalide_statistic::elements;
}

bool has_value(const Column &column, const scalide_statistic &row) {
    return column.number ? !std::isnan(row.*column.number) : row.*column.count >= 0;
}

double value_of(const Column &column, const scalide_statistic &row) {
    return column.number ? row.*column.number : static_cast<double>(row.*column.count);
}

int64_t newest_step(const scalide_program &program, const scalide_statistic *rows) {
    int64_t newest = -1;
    for (size_t i = 0; i < scalide_statistics_count(&program); ++i) newest = std::max(newest, rows[i].step);
    return newest;
}

bool has_histogram(const scalide_statistic &row) { return row.histogram[0] >= 0; }

void print_histogram(Text &text, const scalide_statistic &row) {
    const char *separator = "[";
    for (const int32_t count : row.histogram) {
        text << separator << count;
        separator = ", ";
    }
    text << ']';
}

} // namespace

void print_statistics_header(Text &text, const scalide_program &program) {
    text << "{\"scalide\": \"statistics\", \"version\": 1, ";
    print_text(text, "program", program.name);
    print_text(text, "hash", program.hash);
    print_text(text, "numerics", program.numerics);
    print_text(text, "target", program.target);
    text << "\"tensors\": [";
    for (size_t i = 0; i < scalide_statistics_count(&program); ++i) {
        if (i > 0) text << ", ";
        print_tensor(text, program, i);
    }
    text << "]}\n";
}

void print_statistics_line(Text &text, double time, int64_t step, const scalide_program &program, const scalide_statistic *rows) {
    const size_t count = scalide_statistics_count(&program);
    const int64_t newest = newest_step(program, rows);
    text << "{\"step\": " << step << ", \"time\": ";
    print_number(text, time);
    for (const Column &column : columns) {
        text << ", \"" << column.name << "\": [";
        for (size_t i = 0; i < count; ++i) {
            if (i > 0) text << ", ";
            if (rows[i].step != newest || !has_value(column, rows[i])) {
                text << "null";
            } else if (column.number) {
                print_number(text, rows[i].*column.number);
            } else {
                text << rows[i].*column.count;
            }
        }
        text << ']';
    }
    text << ", \"histogram\": [";
    for (size_t i = 0; i < count; ++i) {
        if (i > 0) text << ", ";
        if (rows[i].step == newest && has_histogram(rows[i])) {
            print_histogram(text, rows[i]);
        } else {
            text << "null";
        }
    }
    text << "]}\n";
}

bool print_first_non_finite(Text &text, double time, int64_t step, const scalide_program &program, const scalide_statistic *rows) {
    const int64_t newest = newest_step(program, rows);
    const scalide_statistic *end = rows + scalide_statistics_count(&program);
    const scalide_statistic *row = std::find_if(rows, end, [&](const auto &each) { return each.step == newest && each.non_finite > 0; });
    if (row == end) return false;
    scalide_statistic_info info;
    scalide_describe_statistic(&program, static_cast<size_t>(row - rows), &info);
    print_number(text << "{\"step\": " << step << ", \"time\": ", time);
    text << ", \"non_finite\": {";
    print_place(text, info);
    text << "\"count\": " << row->non_finite << ", \"first\": " << row->first << "}}\n";
    return true;
}

void put_statistics(Bytes &bytes, double time, int64_t step, const scalide_program &program, const scalide_statistic *rows) {
    const int64_t newest = newest_step(program, rows);
    put_summary(bytes, time, step, [&](Summary &summary) {
        for (size_t i = 0; i < scalide_statistics_count(&program); ++i) {
            if (rows[i].step != newest) continue;
            scalide_statistic_info info;
            scalide_describe_statistic(&program, i, &info);
            const auto tag = [&](const char *kind) { return Tag{{kind, "/", info.tensor, " ", scalide_dtype_name(info.dtype)}}; };
            for (const Column &column : columns)
                if (is_curve(column) && has_value(column, rows[i])) summary.scalar(tag(column.name), value_of(column, rows[i]));
            if (has_histogram(rows[i])) summary.histogram(tag("log2"), rows[i].histogram, info.first_exponent, info.octaves);
        }
    });
}

} // namespace scalide

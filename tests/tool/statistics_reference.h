/* The statistics of an array, computed in double from their definitions in scalide/statistics.h. C99, and C++17. */
#ifndef STATISTICS_REFERENCE_H
#define STATISTICS_REFERENCE_H

#include "scalide/statistics.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A number format. The smallest normal number is 2^least_exponent. */
typedef struct {
    int mantissa_bits, least_exponent;
    double largest;
    int has_infinity;
} number_format;

static const number_format format_f32 = {23, -126, 3.4028234663852886e38, 1}, format_f16 = {10, -14, 65504, 1},
                           format_e4m3 = {3, -6, 448, 0}, format_e5m2 = {2, -14, 57344, 1};

static int failures = 0;

static void check_number(const char *what, double got, double wanted, double tolerance) {
    const int is_equal = isnan(wanted) ? isnan(got) : fabs(got - wanted) <= tolerance * fabs(wanted);
    if (is_equal) return;
    fprintf(stderr, "%s must be %.17g, got %.17g\n", what, wanted, got);
    failures++;
}

static void check_text(const char *what, const char *got, const char *wanted) {
    if (got && strcmp(got, wanted) == 0) return;
    fprintf(stderr, "%s must be \"%s\", got \"%s\"\n", what, wanted, got ? got : "NULL");
    failures++;
}

/* The nearest number of a format without a largest one; ties go to the even mantissa. */
static double rounded(double number, const number_format *format) {
    if (number == 0 || !isfinite(number)) return number;
    const int exponent = ilogb(number) > format->least_exponent ? ilogb(number) : format->least_exponent;
    return ldexp(rint(ldexp(number, format->mantissa_bits - exponent)), exponent - format->mantissa_bits);
}

static int bin_of(double magnitude, const scalide_statistic_info *info) {
    int bin = 0;
    for (int i = 1; i < SCALIDE_HISTOGRAM_BINS; ++i)
        if (magnitude >= ldexp(1.0, info->first_exponent + (i - 1) * info->octaves)) bin = i;
    return bin;
}

/* Returns the statistics of `count` elements of data, which times `scale` is the tensor. `is_rounded`: the data is rounded to the format.
 */
static scalide_statistic reference_of(const float *data, int64_t count, double scale, int is_rounded, const number_format *format,
                                      const scalide_statistic_info *info) {
    scalide_statistic row = {0, count, 0, NAN, 0, 0, 0, 0, 0, -1, {0}};
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
        const double number = data[i], stored = rounded(number, format);
        if (!isfinite(number)) {
            if (row.non_finite++ == 0) row.first = i;
            continue;
        }
        if (fabs(number) * scale > row.amax) row.amax = fabs(number) * scale;
        squares += number * number * scale * scale;
        row.zeros += number != 0 && stored == 0;
        row.saturated += fabs(stored) > format->largest;
        row.subnormal += stored != 0 && fabs(stored) < ldexp(1.0, format->least_exponent);
        if (number != 0) row.histogram[bin_of(fabs(number), info)]++;
    }
    const int64_t counted = info->collects & SCALIDE_COLLECTS_NON_FINITE ? count - row.non_finite : count;
    row.rms = counted > 0 ? sqrt(squares / (double)counted) : 0;
    if (!is_rounded) row.zeros = row.saturated = -1;
    return row;
}

static double wanted_count(int is_collected, int64_t count) { return is_collected ? (double)count : -1; }

/* Compares a row with the reference, and the numbers that the row of the policy does not collect with "not collected". */
static void check_row(const char *what, const scalide_statistic *got, scalide_statistic wanted, const scalide_statistic_info *info) {
    const uint32_t collects = info->collects;
    char name[200];
#define CHECK_MEMBER(member, number, tolerance)                                                                                            \
    snprintf(name, sizeof(name), "%s: %s", what, #member);                                                                                 \
    check_number(name, (double)got->member, number, tolerance)
    CHECK_MEMBER(step, (double)wanted.step, 0);
    CHECK_MEMBER(elements, (double)wanted.elements, 0);
    CHECK_MEMBER(amax, collects & SCALIDE_COLLECTS_AMAX ? wanted.amax : NAN, 1e-7);
    CHECK_MEMBER(rms, collects & SCALIDE_COLLECTS_RMS ? wanted.rms : NAN, 1e-5);
    CHECK_MEMBER(zeros, wanted_count(collects & SCALIDE_COLLECTS_ZEROS, wanted.zeros), 0);
    CHECK_MEMBER(saturated, wanted_count(collects & SCALIDE_COLLECTS_SATURATED, wanted.saturated), 0);
    CHECK_MEMBER(subnormal, wanted_count(collects & SCALIDE_COLLECTS_SUBNORMAL, wanted.subnormal), 0);
    CHECK_MEMBER(non_finite, wanted_count(collects & SCALIDE_COLLECTS_NON_FINITE, wanted.non_finite), 0);
    CHECK_MEMBER(first, wanted_count(collects & SCALIDE_COLLECTS_NON_FINITE, wanted.first), 0);
    for (int bin = 0; bin < SCALIDE_HISTOGRAM_BINS; ++bin) {
        CHECK_MEMBER(histogram[bin], wanted_count(collects & SCALIDE_COLLECTS_HISTOGRAM, wanted.histogram[bin]), 0);
    }
#undef CHECK_MEMBER
}

/* Numbers between -4 and 4 of many magnitudes, which depend on `seed` only. */
static void draw(float *numbers, int64_t count, uint32_t seed) {
    for (int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        const double fraction = (double)(seed >> 8) / (1 << 24) - 0.5;
        numbers[i] = (float)ldexp(fraction, 3 - (int)(seed % 19));
    }
}

#endif

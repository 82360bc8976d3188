#pragma once
#include "base/text.h"
#include "files/file.h"
#include "scalide/metrics.h"

namespace scalide {

/// Prints a JSON number that reads back as the same double; NaN and infinities as strings.
void print_number(Text &text, double value);
/// Prints `{"step": 12, "time": 1767225600.25, "loss": 0.5}` and a newline.
void print_line(Text &text, double time, int64_t step, const scalide_metric *values, size_t count);
/// Returns the size of the whole lines at the beginning of `bytes` bytes, and their number.
size_t whole_lines(const char *memory, size_t bytes, uint64_t *lines);
/// Repairs the last line of a file, which a killed process may have left without its end. A line that is complete except for the newline
/// gets the newline, and a torn line is removed. Returns false if it fails; errno has the error.
bool heal_last_line(const File &file);

} // namespace scalide

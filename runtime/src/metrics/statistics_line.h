#pragma once
#include "base/text.h"
#include "metrics/event_record.h"
#include "scalide/plan.h"
#include "scalide/statistics.h"

namespace scalide {

/// Prints the line that describes the tensors of a program, and a newline.
void print_statistics_header(Text &text, const scalide_program &program);
/// Prints the statistics of a step, and a newline. Rows of earlier steps become null.
void print_statistics_line(Text &text, double time, int64_t step, const scalide_program &program, const scalide_statistic *rows);
/// Prints the line of the event that a tensor has an infinity or a NaN in this step, of the first such tensor in the order of the program.
/// Returns false, and prints nothing, if there is none.
bool print_first_non_finite(Text &text, double time, int64_t step, const scalide_program &program, const scalide_statistic *rows);
/// Puts a record of TensorBoard with the same statistics.
void put_statistics(Bytes &bytes, double time, int64_t step, const scalide_program &program, const scalide_statistic *rows);

} // namespace scalide

#pragma once
#include "scalide/metrics.h"
#include "scalide/statistics.h"
#include <cstddef>
#include <cstdint>

/// Records of an event file of TensorBoard. The formats are those of TensorFlow: tensorflow/core/lib/io/record_writer.h (a record: length,
/// checksum of the length, data, checksum of the data), tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
namespace scalide {

/// Bytes that are written into memory. Bytes that do not fit are counted only.
struct Bytes {
    unsigned char *memory;
    size_t capacity, size = 0;

    void put(unsigned char byte) {
        if (size < capacity) memory[size] = byte;
        ++size;
    }
};

/// A name of a value in a record: the concatenation of its parts.
struct Tag {
    const char *parts[5];
};

/// The values of a record, which are written after their size is known.
class Summary {
public:
    explicit Summary(Bytes &bytes) : bytes_(bytes) {}
    void scalar(const Tag &tag, double value);
    /// Counts of exponents: bin i has those from first_exponent + (i - 1) * octaves on, for SCALIDE_HISTOGRAM_BINS bins.
    void histogram(const Tag &tag, const int32_t *counts, int32_t first_exponent, int32_t octaves);

private:
    Bytes &bytes_;
};

/// Puts a record whose values `fill(Summary &)` puts. It calls `fill` several times.
void put_summary_record(Bytes &bytes, double time, int64_t step, void (*fill)(const void *user, Summary &summary), const void *user);
template<typename Fill>
void put_summary(Bytes &bytes, double time, int64_t step, const Fill &fill) {
    const auto call = [](const void *user, Summary &summary) { (*static_cast<const Fill *>(user))(summary); };
    put_summary_record(bytes, time, step, call, &fill);
}

/// The first record of a file.
void put_file_version(Bytes &bytes, double time);
/// A record with the scalars of a step.
void put_scalars(Bytes &bytes, double time, int64_t step, const scalide_metric *values, size_t count);
/// Returns the size of the whole records at the beginning of `bytes` bytes, and their number.
size_t whole_records(const char *memory, size_t bytes, uint64_t *records);

} // namespace scalide

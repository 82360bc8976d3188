#pragma once
#include "scalide/metrics.h"
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

/// The first record of a file.
void put_file_version(Bytes &bytes, double time);
/// A record with the scalars of a step.
void put_scalars(Bytes &bytes, double time, int64_t step, const scalide_metric *values, size_t count);
/// Returns the size of the whole records at the beginning of `bytes` bytes, and their number.
size_t whole_records(const char *memory, size_t bytes, uint64_t *records);

} // namespace scalide

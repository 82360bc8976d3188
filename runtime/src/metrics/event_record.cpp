#include "metrics/event_record.h"
#include <array>
#include <cstring>

namespace scalide {

namespace {

// Fields of the messages: number << 3 | type, where the type is 0 (varint), 1 (8 bytes), 2 (length and bytes) or 5 (4 bytes).
constexpr unsigned char event_wall_time = 1 << 3 | 1, event_step = 2 << 3 | 0, event_file_version = 3 << 3 | 2, event_summary = 5 << 3 | 2;
constexpr unsigned char summary_value = 1 << 3 | 2, value_tag = 1 << 3 | 2, value_simple_value = 2 << 3 | 5, value_histogram = 5 << 3 | 2;
constexpr unsigned char histogram_min = 1 << 3 | 1, histogram_max = 2 << 3 | 1, histogram_count = 3 << 3 | 1, histogram_sum = 4 << 3 | 1,
                        histogram_sum_squares = 5 << 3 | 1, histogram_limits = 6 << 3 | 2, histogram_counts = 7 << 3 | 2;
constexpr size_t head_bytes = 12, checksum_bytes = 4; // of a record

constexpr std::array<uint32_t, 256> make_crc_table() {
    std::array<uint32_t, 256> table = {};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t remainder = i;
        for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82f63b78u : 0); // Castagnoli, reflected
        table[i] = remainder;
    }
    return table;
}

/// CRC-32C, rotated and shifted by a constant, so that a checksum of data with checksums is no trivial number.
uint32_t masked_checksum(const unsigned char *data, size_t size) {
    static constexpr std::array<uint32_t, 256> table = make_crc_table();
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; ++i) crc = table[(crc ^ data[i]) & 0xff] ^ crc >> 8;
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

void put_little_endian(Bytes &bytes, uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.put(static_cast<unsigned char>(value >> (8 * i)));
}

void put_varint(Bytes &bytes, uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes.put(static_cast<unsigned char>(value | 0x80));
    bytes.put(static_cast<unsigned char>(value));
}

size_t varint_bytes(uint64_t value) {
    size_t count = 1;
    while (value >= 0x80) value >>= 7, ++count;
    return count;
}

/// The size of a field with a length and bytes.
size_t field_bytes(size_t length) { return 1 + varint_bytes(length) + length; }

void put_text(Bytes &bytes, unsigned char field, const char *text) {
    bytes.put(field);
    put_varint(bytes, std::strlen(text));
    for (; *text; ++text) bytes.put(static_cast<unsigned char>(*text));
}

uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void put_double(Bytes &bytes, unsigned char field, double value) {
    bytes.put(field);
    put_little_endian(bytes, bits_of(value), 8);
}

size_t length_of(const Tag &tag) {
    size_t length = 0;
    for (const char *part : tag.parts) length += part ? std::strlen(part) : 0;
    return length;
}

void put_tag(Bytes &bytes, const Tag &tag) {
    bytes.put(value_tag);
    put_varint(bytes, length_of(tag));
    for (const char *part : tag.parts)
        for (const char *character = part ? part : ""; *character; ++character) bytes.put(static_cast<unsigned char>(*character));
}

constexpr size_t double_bytes = 1 + sizeof(double), list_bytes = sizeof(double) * SCALIDE_HISTOGRAM_BINS;

/// The numbers of a histogram: the limits are exponents, and each exponent counts as the middle of its bin.
struct Moments {
    double count = 0, sum = 0, sum_squares = 0, least = 0, most = 0;

    Moments(const int32_t *counts, int32_t first_exponent, int32_t octaves) {
        for (int i = 0; i < SCALIDE_HISTOGRAM_BINS; ++i) {
            if (counts[i] == 0) continue;
            const double limit = first_exponent + i * octaves, middle = limit - 0.5 * octaves;
            if (count == 0) least = limit - octaves;
            most = limit;
            count += counts[i];
            sum += counts[i] * middle;
            sum_squares += counts[i] * middle * middle;
        }
    }
};

/// Puts a record around the data that `put_data` puts.
template<typename PutData>
void put_record(Bytes &bytes, const PutData &put_data) {
    Bytes measure = {nullptr, 0};
    put_data(measure);
    const size_t begin = bytes.size;
    const bool fits = begin + head_bytes + measure.size + checksum_bytes <= bytes.capacity;
    put_little_endian(bytes, measure.size, 8);
    put_little_endian(bytes, fits ? masked_checksum(bytes.memory + begin, 8) : 0, 4);
    put_data(bytes);
    put_little_endian(bytes, fits ? masked_checksum(bytes.memory + begin + head_bytes, measure.size) : 0, 4);
}

} // namespace

void put_file_version(Bytes &bytes, double time) {
    put_record(bytes, [&](Bytes &data) {
        put_double(data, event_wall_time, time);
        put_text(data, event_file_version, "brain.Event:2");
    });
}

void Summary::scalar(const Tag &tag, double number) {
    const auto value = static_cast<float>(number);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bytes_.put(summary_value);
    put_varint(bytes_, field_bytes(length_of(tag)) + 1 + sizeof(float));
    put_tag(bytes_, tag);
    bytes_.put(value_simple_value);
    put_little_endian(bytes_, bits, 4);
}

void Summary::histogram(const Tag &tag, const int32_t *counts, int32_t first_exponent, int32_t octaves) {
    const Moments moments(counts, first_exponent, octaves);
    const size_t size = 5 * double_bytes + 2 * field_bytes(list_bytes);
    bytes_.put(summary_value);
    put_varint(bytes_, field_bytes(length_of(tag)) + field_bytes(size));
    put_tag(bytes_, tag);
    bytes_.put(value_histogram);
    put_varint(bytes_, size);
    put_double(bytes_, histogram_min, moments.least);
    put_double(bytes_, histogram_max, moments.most);
    put_double(bytes_, histogram_count, moments.count);
    put_double(bytes_, histogram_sum, moments.sum);
    put_double(bytes_, histogram_sum_squares, moments.sum_squares);
    bytes_.put(histogram_limits);
    put_varint(bytes_, list_bytes);
    for (int i = 0; i < SCALIDE_HISTOGRAM_BINS; ++i) put_little_endian(bytes_, bits_of(first_exponent + i * octaves), 8);
    bytes_.put(histogram_counts);
    put_varint(bytes_, list_bytes);
    for (int i = 0; i < SCALIDE_HISTOGRAM_BINS; ++i) put_little_endian(bytes_, bits_of(counts[i]), 8);
}

void put_summary_record(Bytes &bytes, double time, int64_t step, void (*fill)(const void *user, Summary &summary), const void *user) {
    Bytes measure = {nullptr, 0};
    Summary measured(measure);
    fill(user, measured);
    put_record(bytes, [&](Bytes &data) {
        put_double(data, event_wall_time, time);
        data.put(event_step);
        put_varint(data, static_cast<uint64_t>(step));
        data.put(event_summary);
        put_varint(data, measure.size);
        Summary summary(data);
        fill(user, summary);
    });
}

void put_scalars(Bytes &bytes, double time, int64_t step, const scalide_metric *values, size_t count) {
    put_summary(bytes, time, step, [=](Summary &summary) {
        for (size_t i = 0; i < count; ++i) summary.scalar({{values[i].name}}, values[i].value);
    });
}

size_t whole_records(const char *memory, size_t bytes, uint64_t *records) {
    size_t whole = 0;
    while (bytes - whole >= head_bytes) {
        uint64_t length = 0;
        for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(memory[whole + static_cast<size_t>(i)]);
        const uint64_t size = head_bytes + length + checksum_bytes;
        if (size > bytes - whole) break;
        whole += size;
        ++*records;
    }
    return whole;
}

} // namespace scalide

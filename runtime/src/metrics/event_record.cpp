#include "metrics/event_record.h"
#include <array>
#include <cstring>

namespace scalide {

namespace {

// Fields of the messages: number << 3 | type, where the type is 0 (varint), 1 (8 bytes), 2 (length and bytes) or 5 (4 bytes).
constexpr unsigned char event_wall_time = 1 << 3 | 1, event_step = 2 << 3 | 0, event_file_version = 3 << 3 | 2, event_summary = 5 << 3 | 2;
constexpr unsigned char summary_value = 1 << 3 | 2, value_tag = 1 << 3 | 2, value_simple_value = 2 << 3 | 5;
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

void put_double(Bytes &bytes, unsigned char field, double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bytes.put(field);
    put_little_endian(bytes, bits, 8);
}

size_t value_bytes(const scalide_metric &metric) { return field_bytes(std::strlen(metric.name)) + 1 + sizeof(float); }

void put_value(Bytes &bytes, const scalide_metric &metric) {
    const auto value = static_cast<float>(metric.value);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bytes.put(summary_value);
    put_varint(bytes, value_bytes(metric));
    put_text(bytes, value_tag, metric.name);
    bytes.put(value_simple_value);
    put_little_endian(bytes, bits, 4);
}

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

void put_scalars(Bytes &bytes, double time, int64_t step, const scalide_metric *values, size_t count) {
    size_t summary = 0;
    for (size_t i = 0; i < count; ++i) summary += field_bytes(value_bytes(values[i]));
    put_record(bytes, [&](Bytes &data) {
        put_double(data, event_wall_time, time);
        data.put(event_step);
        put_varint(data, static_cast<uint64_t>(step));
        data.put(event_summary);
        put_varint(data, summary);
        for (size_t i = 0; i < count; ++i) put_value(data, values[i]);
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

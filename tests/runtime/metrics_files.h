#pragma once
#include "scalide/scalide.hpp"
#include "support/folder.h"
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

/// What metrics wrote: lines, and records of event files.
namespace scalide::test {

inline std::string content(const std::filesystem::path &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::string lines_of(const Folder &folder) { return content(folder.file("metrics.jsonl")); }

inline void put(const Folder &folder, const std::string &text) { std::ofstream(folder.file("metrics.jsonl"), std::ios::binary) << text; }

/// The lines without their times.
inline std::vector<std::string> untimed(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line); lines.push_back(line)) {
        const size_t begin = line.find("\"time\": "), end = line.find(", ", begin);
        if (begin != std::string::npos) line.erase(begin, (end == std::string::npos ? line.size() - 1 : end + 2) - begin);
    }
    return lines;
}

inline std::filesystem::path event_file(const Folder &folder) {
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
        if (entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0) return entry.path();
    ADD_FAILURE() << "there is no event file";
    return {};
}

/// CRC-32C bit by bit, as RFC 3720 defines it, and the mask of TensorFlow.
inline uint32_t masked_checksum(const std::string &data) {
    uint32_t crc = ~0u;
    for (const char byte : data) {
        crc ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

inline uint64_t little_endian(const std::string &bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

/// The data of each record of an event file. All checksums must be right, and nothing may follow the last record.
inline std::vector<std::string> records(const std::string &file) {
    std::vector<std::string> found;
    size_t at = 0;
    while (at < file.size()) {
        const std::string head = file.substr(at, 8);
        const uint64_t length = little_endian(head);
        EXPECT_EQ(little_endian(file.substr(at + 8, 4)), masked_checksum(head));
        found.push_back(file.substr(at + 12, length));
        EXPECT_EQ(found.back().size(), length) << "a torn record";
        EXPECT_EQ(little_endian(file.substr(at + 12 + length, 4)), masked_checksum(found.back()));
        at += 16 + length;
    }
    return found;
}

inline std::string message_of(const std::function<void()> &call) {
    try {
        call();
    } catch (const runtime::Error &error) {
        return error.what();
    }
    return "";
}

} // namespace scalide::test

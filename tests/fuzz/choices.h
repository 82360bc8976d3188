#pragma once
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace scalide {

/// Decodes the bytes of a fuzzer into decisions, one after the other. After the last byte, all are 0.
class Choices {
public:
    Choices(const uint8_t *data, size_t size) : at_(data), end_(data + size) {}

    bool empty() const { return at_ == end_; }
    uint8_t byte() { return empty() ? uint8_t(0) : *at_++; }
    /// Returns a number in [0, count), count <= 256.
    size_t below(size_t count) { return byte() % count; }
    bool coin() { return byte() % 2 != 0; }
    /// Returns a small number, or one at a limit of a type.
    int64_t number() {
        constexpr std::array<int64_t, 20> limits = {-1,        -2,        -64,       63,         64,        65,
                                                    1023,      1024,      INT8_MIN,  INT16_MAX,  INT32_MAX, INT32_MIN,
                                                    1ll << 31, 1ll << 32, 1ll << 40, -1ll << 40, 1ll << 62, (1ll << 62) / 3,
                                                    INT64_MAX, INT64_MIN};
        const uint8_t choice = byte();
        return choice >= 256 - limits.size() ? limits[choice - (256 - limits.size())] : choice % 16;
    }

private:
    const uint8_t *at_, *end_;
};

/// A condition that a target must satisfy. A violation is a finding.
inline void expect(bool condition, const char *words) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: expected that %s\n", words);
    std::abort();
}

} // namespace scalide

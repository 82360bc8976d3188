#pragma once
#include <cstdint>
#include <string>
#include <vector>

// Images as rows of pixels in [0, 1], and their labels.
struct Digits {
    int count = 0, pixels = 0;
    std::vector<float> images;
    std::vector<int32_t> labels;
};

// Reads the two IDX files `<folder>/digits-<part>-images.idx3-ubyte` and `-labels.idx1-ubyte`. Throws std::runtime_error.
Digits load_digits(const std::string &folder, const std::string &part);

#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// The text of the licenses that Debian installs: what the model trains on, and what it never trains on.
struct Text {
    std::string trained, held_out;
};

// Reads the files of the folder in the order of their names, each paragraph once. One paragraph of 20 is held out. Throws if the text is
// shorter than `least` bytes.
Text read_text(const std::string &folder, size_t least);

// Returns `batch` windows of `length` bytes that begin at random places.
std::vector<int32_t> random_windows(const std::string &text, std::mt19937_64 &random, int batch, int length);
// Returns the windows of one batch of a division of the text without gaps, or no windows after its end.
std::vector<int32_t> windows_of(const std::string &text, int number, int batch, int length);

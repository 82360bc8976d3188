#include "data.h"
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace {

constexpr float brightest = 16; // of this data set, whose pixels are counts from 0 to 16

std::vector<unsigned char> read(const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file);
    return {std::istreambuf_iterator<char>(in), {}};
}

uint32_t big_endian(const std::vector<unsigned char> &bytes, size_t at) {
    return uint32_t(bytes[at]) << 24 | uint32_t(bytes[at + 1]) << 16 | uint32_t(bytes[at + 2]) << 8 | bytes[at + 3];
}

} // namespace

Digits load_digits(const std::string &folder, const std::string &part) {
    const std::string stem = folder + "/digits-" + part;
    const std::vector<unsigned char> images = read(stem + "-images.idx3-ubyte"), labels = read(stem + "-labels.idx1-ubyte");
    if (images.size() < 16 || big_endian(images, 0) != 0x803 || labels.size() < 8 || big_endian(labels, 0) != 0x801) {
        throw std::runtime_error(stem + ": these files are not IDX files of images and labels");
    }
    Digits digits;
    digits.count = static_cast<int>(big_endian(images, 4));
    digits.pixels = static_cast<int>(big_endian(images, 8) * big_endian(images, 12));
    if (images.size() != 16 + size_t(digits.count) * digits.pixels || labels.size() != 8 + size_t(digits.count)) {
        throw std::runtime_error(stem + ": the length of the file does not match its header");
    }
    for (size_t i = 16; i < images.size(); i++) digits.images.push_back(static_cast<float>(images[i]) / brightest);
    for (size_t i = 8; i < labels.size(); i++) digits.labels.push_back(labels[i]);
    return digits;
}

#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace scalide::test {

/// One array of an .npz file: NumPy's type word ("<f4", "|u1" ...), shape, and the bytes in C order. A complex array is
/// one of real pairs, with a last axis of extent 2.
struct NpyArray {
    std::string descr;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;

    /// Returns the elements. Throws std::runtime_error if T has another size.
    template<typename T>
    std::span<const T> as() const {
        if (std::stoul(descr.substr(2)) != sizeof(T)) throw std::runtime_error("npz: elements are " + descr);
        return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
    }
};

/// Reads .npz files whose members are stored uncompressed. Throws std::runtime_error for any other file.
class Npz {
public:
    explicit Npz(const std::filesystem::path &path);
    /// Returns the array `name` (without .npy).
    NpyArray read(const std::string &name) const;
    bool contains(const std::string &name) const { return members_.contains(name); }

private:
    struct Member {
        uint64_t header = 0, size = 0; ///< offset of the local header, bytes of data
    };
    std::filesystem::path path_;
    std::map<std::string, Member> members_;
};

} // namespace scalide::test

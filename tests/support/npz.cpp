#include "support/npz.h"
#include <cstring>
#include <fstream>
#include <regex>

namespace scalide::test {

namespace {

// Sizes and signatures of the ZIP format (APPNOTE 6.3.x, sections 4.3.7, 4.3.12, 4.3.16).
constexpr uint32_t end_signature = 0x06054b50, entry_signature = 0x02014b50, local_signature = 0x04034b50;
constexpr size_t end_size = 22, entry_size = 46, local_size = 30;

template<typename T>
T load(const std::vector<char> &bytes, size_t offset) {
    if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("npz: truncated");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

std::vector<char> read_bytes(const std::filesystem::path &path, uint64_t offset, uint64_t size) {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes(size);
    in.seekg(static_cast<std::streamoff>(offset));
    if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) throw std::runtime_error("npz: cannot read " + path.string());
    return bytes;
}

std::vector<int64_t> parse_shape(const std::string &words) {
    std::vector<int64_t> shape;
    static const std::regex number("[0-9]+");
    for (std::sregex_iterator it(words.begin(), words.end(), number), end; it != end; ++it) shape.push_back(std::stoll(it->str()));
    return shape;
}

// "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
NpyArray parse_header(const std::string &header) {
    static const std::regex form("'descr': '([^']+)'.*'fortran_order': False.*'shape': \\(([^)]*)\\)");
    std::smatch match;
    if (!std::regex_search(header, match, form)) throw std::runtime_error("npz: unknown array header " + header);
    NpyArray array{match[1], parse_shape(match[2]), {}};
    static const std::map<std::string, std::string> parts{{"<c8", "<f4"}, {"<c16", "<f8"}};
    if (const auto complex = parts.find(array.descr); complex != parts.end()) {
        array.descr = complex->second;
        array.shape.push_back(2);
    }
    return array;
}

} // namespace

Npz::Npz(const std::filesystem::path &path) : path_(path) {
    auto file_size = std::filesystem::file_size(path);
    if (file_size < end_size) throw std::runtime_error("npz: truncated");
    std::vector<char> end = read_bytes(path, file_size - end_size, end_size);
    if (load<uint32_t>(end, 0) != end_signature) throw std::runtime_error("npz: no directory at the end of " + path.string());
    auto count = load<uint16_t>(end, 10);
    std::vector<char> directory = read_bytes(path, load<uint32_t>(end, 16), load<uint32_t>(end, 12));
    for (size_t at = 0, i = 0; i < count; i++) {
        if (load<uint32_t>(directory, at) != entry_signature) throw std::runtime_error("npz: broken directory");
        if (load<uint16_t>(directory, at + 10) != 0) throw std::runtime_error("npz: compressed members are not supported");
        auto name_size = load<uint16_t>(directory, at + 28);
        std::string name(directory.data() + at + entry_size, name_size);
        members_[name.substr(0, name.rfind(".npy"))] = {load<uint32_t>(directory, at + 42), load<uint32_t>(directory, at + 24)};
        at += entry_size + name_size + load<uint16_t>(directory, at + 30) + load<uint16_t>(directory, at + 32);
    }
}

NpyArray Npz::read(const std::string &name) const {
    auto found = members_.find(name);
    if (found == members_.end()) throw std::runtime_error("npz: no array " + name + " in " + path_.string());
    const Member &member = found->second;
    std::vector<char> local = read_bytes(path_, member.header, local_size);
    if (load<uint32_t>(local, 0) != local_signature) throw std::runtime_error("npz: broken member " + name);
    uint64_t data = member.header + local_size + load<uint16_t>(local, 26) + load<uint16_t>(local, 28);
    std::vector<char> bytes = read_bytes(path_, data, member.size);
    // .npy version 1: magic (6), version (2), header length (2), header
    size_t start = 10 + load<uint16_t>(bytes, 8);
    if (start > bytes.size()) throw std::runtime_error("npz: truncated");
    NpyArray array = parse_header(std::string(bytes.begin() + 10, bytes.begin() + static_cast<std::ptrdiff_t>(start)));
    array.bytes.resize(bytes.size() - start);
    std::memcpy(array.bytes.data(), bytes.data() + start, array.bytes.size());
    return array;
}

} // namespace scalide::test

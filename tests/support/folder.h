#pragma once
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace scalide::test {

/// A temporary folder that the destructor removes.
struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "scalide-test-XXXXXX").string();
        if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
        path = name;
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string file(const std::string &name) const { return (path / name).string(); }

    std::filesystem::path path;
};

} // namespace scalide::test

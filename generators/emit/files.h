#pragma once
#include <filesystem>
#include <string>

namespace scalide {

/// The whole file. Throws UserError naming the file and the system's words.
std::string read_file(const std::filesystem::path &file);

/// Writes the file under a temporary name beside it and renames: it is there whole or not at all. Folders are made. Throws UserError.
void write_file(const std::filesystem::path &file, const std::string &text);

/// Renames, or copies and renames across file systems. Throws UserError.
void move_file(const std::filesystem::path &from, const std::filesystem::path &to);

/// A folder of our own for files in the making, removed at the end of its life. Folders that a killed process left under the same
/// parent are removed first.
class WorkFolder {
public:
    explicit WorkFolder(const std::filesystem::path &parent);
    ~WorkFolder();
    WorkFolder(const WorkFolder &) = delete;
    std::filesystem::path operator/(const std::string &name) const { return path_ / name; }
    const std::filesystem::path &path() const { return path_; }

private:
    std::filesystem::path path_;
};

} // namespace scalide

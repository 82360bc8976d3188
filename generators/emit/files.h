#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace scalide {

/// The whole file. Throws UserError naming the file and the system's words.
std::string read_file(const std::filesystem::path &file);

/// Writes the file under a temporary name beside it and renames: it is there whole or not at all. Folders are made. Throws UserError.
void write_file(const std::filesystem::path &file, const std::string &text);

/// Renames, or copies and renames across file systems. Throws UserError.
void move_file(const std::filesystem::path &from, const std::filesystem::path &to);

/// A file in the making, which goes at the end unless it was moved to its place.
struct PartFile {
    std::filesystem::path path;

    explicit PartFile(std::filesystem::path file) : path(std::move(file)) {}
    PartFile(const PartFile &) = delete;
    PartFile &operator=(const PartFile &) = delete;
    ~PartFile();
};

/// A folder of our own for files in the making, removed at the end of its life. Folders that a killed process left under the same
/// parent are removed first. A process has one at a time.
class WorkFolder {
public:
    explicit WorkFolder(const std::filesystem::path &parent);
    ~WorkFolder();
    WorkFolder(const WorkFolder &) = delete;
    std::filesystem::path operator/(const std::string &name) const { return path_ / name; }
    const std::filesystem::path &path() const { return path_; }
    /// Moves files of these names to `folder`, where they replace those of an older build: all of them, or none when it throws UserError.
    /// Builds that do so at the same time come one after the other: the files there are of one build. (Of two, each whole, where the
    /// process is killed in between.) Lack of memory is seen before the first is moved.
    void publish(const std::vector<std::string> &names, const std::filesystem::path &folder) const;

private:
    std::filesystem::path path_;
};

/// Removes the folder that lives: for who ends the process without destructors.
void remove_work_folder() noexcept;

} // namespace scalide

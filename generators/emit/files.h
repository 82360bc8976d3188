#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace scalide {

/// Returns the whole file. Throws UserError with the file name and the system's message.
std::string read_file(const std::filesystem::path &file);

/// Writes a temporary file in the same folder and renames it, so the file is complete or absent. Creates missing folders. Throws UserError.
void write_file(const std::filesystem::path &file, const std::string &text);

/// Renames a file. Across file systems, it copies first. Throws UserError.
void move_file(const std::filesystem::path &from, const std::filesystem::path &to);

/// A file that is being written. The destructor removes it, unless it was moved to its final path.
struct PartFile {
    std::filesystem::path path;

    explicit PartFile(std::filesystem::path file) : path(std::move(file)) {}
    PartFile(const PartFile &) = delete;
    PartFile &operator=(const PartFile &) = delete;
    ~PartFile();
};

/// A temporary folder of this process for files that are being written. The destructor removes it. The constructor first removes folders
/// under the same parent that killed processes left. A process may have only one at a time.
class WorkFolder {
public:
    explicit WorkFolder(const std::filesystem::path &parent);
    ~WorkFolder();
    WorkFolder(const WorkFolder &) = delete;
    std::filesystem::path operator/(const std::string &name) const { return path_ / name; }
    const std::filesystem::path &path() const { return path_; }
    /// Moves files of these names to `folder`, where they replace the files of an older build. It moves all of them, or none if it throws
    /// UserError. Concurrent builds take turns, so all files are from one build. A killed process may leave files of two builds, each file
    /// complete. The function allocates its memory before it moves the first file.
    void publish(const std::vector<std::string> &names, const std::filesystem::path &folder) const;

private:
    std::filesystem::path path_;
};

/// Removes the current WorkFolder. For code that ends the process without destructors.
void remove_work_folder() noexcept;

} // namespace scalide

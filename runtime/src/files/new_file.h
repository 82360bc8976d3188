#pragma once
#include "files/file.h"
#include <initializer_list>

namespace scalide {

/// A text in memory of its own, released at the end of the scope. NULL: out of memory.
class OwnedText {
public:
    OwnedText() = default;
    /// Joins the parts.
    OwnedText(std::initializer_list<const char *> parts);
    OwnedText(OwnedText &&other) noexcept : text_(std::exchange(other.text_, nullptr)) {}
    OwnedText &operator=(OwnedText &&other) noexcept {
        std::swap(text_, other.text_);
        return *this;
    }
    ~OwnedText();

    const char *get() const { return text_; }
    explicit operator bool() const { return text_ != nullptr; }

private:
    char *text_ = nullptr;
};

/// Returns the path of the folder that contains `path`: `.` if the path has no `/`.
OwnedText folder_of(const char *path);
/// Returns `<path>.<process>.<number>.tmp`, a name that no other file of this process gets.
OwnedText temporary_name(const char *path);
/// True if `name` is `<text>.<process>.<number>.tmp`.
bool is_temporary_name(const char *name);

/// Writes the entries of a folder to the disk. File systems that cannot do this count as success.
bool flush_folder(const char *folder);

/// A file that appears under its path when it is complete. Until then it has a temporary name in the same folder, and an old file stays.
class NewFile {
public:
    explicit NewFile(const char *path);
    NewFile(const NewFile &) = delete;
    NewFile &operator=(const NewFile &) = delete;
    /// Removes the temporary file.
    ~NewFile();

    bool write(const void *memory, uint64_t bytes) { return failure_ == Failure::none && (file_.write(memory, bytes) || fail()); }
    /// Writes the file to the disk and gives it its name. Then writes the folder to the disk, unless the caller does this for several
    /// files.
    bool publish(bool flushes_folder = true);
    /// Writes why an operation has failed.
    scalide_status explain(const FileMessage &message) const;

private:
    enum class Failure : uint8_t { none, memory, target, system, published };
    bool fail();

    const char *path_;
    OwnedText temporary_, folder_;
    File file_;
    Failure failure_ = Failure::none;
    int error_ = 0;
};

} // namespace scalide

#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace scalide {

/// Returns the hexadecimal 128-bit hash (XXH3) of a text.
std::string hash_text(const std::string &text);

/// A folder of files that are named by a hash of their inputs (kernels `<key>.o`, facts about kernels, archives). Its size is limited: the
/// least recently used files are removed first. Several processes may use it at the same time, because files are added by rename. Each file
/// ends with the hash of its name and content, which linkers ignore. A file that was truncated, overwritten or renamed is therefore not
/// found. The hash does not protect against an attacker who can compute it; only the permissions of the folder do. The constructor throws
/// UserError if this process cannot write the folder, if everybody can, or if another user owns it.
class ObjectCache {
public:
    explicit ObjectCache(std::filesystem::path folder, uint64_t limit_bytes = uint64_t(1) << 30);

    /// Returns $XDG_CACHE_HOME/scalide, ~/.cache/scalide, or without a home a folder in the temporary folder.
    static std::filesystem::path default_folder();

    /// Returns the content of the file of this name and marks the file as used. Returns nothing if there is no such file, or if its hash is
    /// wrong; such a file is removed.
    std::optional<std::string> read(const std::string &name) const;
    /// Returns the path of the file if `read` would return its content; otherwise an empty path.
    std::filesystem::path find(const std::string &name) const;
    /// A new file is added in two steps. part_of() returns the unique path at which to write it, and insert() renames it. The part is
    /// removed in every case, also if insert() throws.
    std::filesystem::path part_of(const std::string &name) const;
    std::filesystem::path insert(const std::string &name, const std::filesystem::path &part) const;
    /// Does both steps for content in memory.
    void insert_content(const std::string &name, const std::string &content) const;

    struct Usage {
        uint64_t kernels = 0, bytes = 0, limit = 0;
    };
    Usage usage() const;
    /// True if this object has added a file. Builds that add nothing need not trim: to list a large cache takes longer than the build.
    bool has_grown() const { return has_grown_; }
    /// Throws UserError if the disk has no room for another kernel.
    void check_room() const;
    /// Removes the least recently used files until the limit holds, and files that killed builds left.
    void trim() const;
    /// Removes all files and returns their number.
    uint64_t clear() const;

private:
    void append_to(const std::filesystem::path &part, const std::string &content) const;

    std::filesystem::path folder_;
    uint64_t limit_;
    mutable bool has_grown_ = false; ///< adding a file is const, because it changes the folder and nothing of this object
};

} // namespace scalide

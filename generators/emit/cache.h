#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace scalide {

/// Hexadecimal 128-bit hash (XXH3) of a text.
std::string hash_text(const std::string &text);

/// A folder of files named by what they were made from (kernels `<key>.o`, facts about them, archives), with a limit on its size: the
/// least recently used ones go first. Safe for several processes at once: files come in by rename. Each ends with the hash of its name and
/// content (which linkers do not look at), so that one that was cut, overwritten or renamed is not found. Against those who compute hashes
/// only the folder helps: one that cannot be written, that everybody can write or that is another user's is a UserError.
class ObjectCache {
public:
    explicit ObjectCache(std::filesystem::path folder, uint64_t limit_bytes = uint64_t(1) << 30);

    /// $XDG_CACHE_HOME/scalide, ~/.cache/scalide, or a folder in the temporary one when there is no home.
    static std::filesystem::path default_folder();

    /// The content of the file of this name, which is marked as used; nothing when there is none, or one with another hash, which is
    /// removed.
    std::optional<std::string> read(const std::string &name) const;
    /// The file itself, where `read` would have it; else an empty path.
    std::filesystem::path find(const std::string &name) const;
    /// Where a new file of this name is to be written (a name of its own, unused), and the step that puts it in place: the part is gone
    /// then, also when it throws.
    std::filesystem::path part_of(const std::string &name) const;
    std::filesystem::path insert(const std::string &name, const std::filesystem::path &part) const;
    /// Both steps for a content at hand.
    void insert_content(const std::string &name, const std::string &content) const;

    struct Usage {
        uint64_t kernels = 0, bytes = 0, limit = 0;
    };
    Usage usage() const;
    /// Throws UserError when the disk has no room for another kernel.
    void check_room() const;
    /// Removes the least recently used files until the limit holds, and what killed builds left.
    void trim() const;
    /// Removes every file; returns how many.
    uint64_t clear() const;

private:
    void append_to(const std::filesystem::path &part, const std::string &content) const;

    std::filesystem::path folder_;
    uint64_t limit_;
};

} // namespace scalide

#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace scalide {

/// Hexadecimal 128-bit hash (XXH3) of a text.
std::string hash_text(const std::string &text);

/// A folder of files named by what they were made from (kernels `<key>.o`, facts about them, archives), with a limit on its size: the
/// least recently used ones go first. Safe for several processes at once: files come in by rename. A folder that cannot be written is a
/// UserError.
class ObjectCache {
public:
    explicit ObjectCache(std::filesystem::path folder, uint64_t limit_bytes = uint64_t(1) << 30);

    /// $XDG_CACHE_HOME/scalide, ~/.cache/scalide, or a folder in the temporary one when there is no home.
    static std::filesystem::path default_folder();

    /// The file of this name and marks it as used; an empty path when there is none.
    std::filesystem::path find(const std::string &name) const;
    /// Where a new file of this name is to be written (a name of its own, unused), and the step that puts it in place.
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
    std::filesystem::path folder_;
    uint64_t limit_;
};

} // namespace scalide

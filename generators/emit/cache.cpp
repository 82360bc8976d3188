#include "emit/cache.h"
#include "emit/files.h"
#include "emit/process.h"
#include "expr/error.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace scalide {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

struct Entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes;
};

constexpr const char *choose_another = "Choose another folder with --cache";
constexpr size_t seal_size = 32; // of hash_text
constexpr std::string_view part_extension = ".part", object_extension = ".o";

std::vector<Entry> list(const fs::path &folder) {
    std::vector<Entry> entries;
    std::error_code error;
    for (const fs::directory_entry &file : fs::directory_iterator(folder, error)) {
        const uint64_t bytes = file.file_size(error);
        if (!error) entries.push_back({file.path(), file.last_write_time(error), bytes});
    }
    return entries;
}

bool is_part(const Entry &entry) { return entry.path.extension() == part_extension; }

std::string seal_of(const std::string &name, std::string_view content) { return hash_text(name + '\n' + std::string(content)); }

[[noreturn]] void refuse_room(const fs::path &folder, const std::string &reason) {
    throw UserError(failed_action("store compiled kernels in the cache folder " + folder.string(), reason,
                                  "Free space on the disk, or choose another folder with --cache"));
}

// Whoever can write the folder controls the code that is linked into libraries.
void check_owner(const fs::path &folder) {
    struct stat status = {};
    if (stat(folder.c_str(), &status) != 0) return;
    const bool is_own = status.st_uid == geteuid() || status.st_uid == 0, is_open = (status.st_mode & S_IWOTH) != 0;
    if (is_own && !is_open) return;
    const std::string name = folder.string();
    throw UserError(failed_action("use the cache folder " + name, is_open ? "every user can write it" : "it belongs to another user",
                                  is_open ? "Run 'chmod o-w " + name + "', or choose another folder with --cache" : choose_another));
}

/// Removes something else at the path of an entry: a pipe, a device, an empty folder. A folder with files is not removed.
void remove_damaged(const fs::path &entry) {
    std::error_code error;
    fs::remove(entry, error);
    if (!error) return;
    throw UserError(failed_action("replace " + entry.string() + " in the cache", "it is a folder, not a compiled kernel",
                                  "Remove it, or choose another folder with --cache"));
}

// Machines may share a cache, but a process number is valid on one machine only.
std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

// True if the process that wrote `<key>.<host>.<process>.part` is gone. For another machine, the file counts as orphaned after an hour,
// which is far longer than any kernel takes to compile. For this machine, only the process list counts, because clocks can change.
bool is_orphan(const Entry &part) {
    const fs::path owner = part.path.stem();
    if (owner.stem().string().ends_with("." + host_name())) return !is_running(std::atoi(owner.extension().c_str() + 1));
    return fs::file_time_type::clock::now() - part.used > 1h;
}

} // namespace

std::string hash_text(const std::string &text) {
    const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
    char words[33];
    std::snprintf(words, sizeof words, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return words;
}

ObjectCache::ObjectCache(fs::path folder, uint64_t limit_bytes) : folder_(std::move(folder)), limit_(limit_bytes) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error || access(folder_.c_str(), W_OK) != 0) {
        throw UserError(
            failed_action("write the cache folder " + folder_.string(), error ? error.message() : std::strerror(errno), choose_another));
    }
    check_owner(folder_);
}

fs::path ObjectCache::default_folder() {
    if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "scalide";
    if (const char *home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "scalide";
    return fs::temp_directory_path() / "scalide-cache";
}

std::optional<std::string> ObjectCache::read(const std::string &name) const {
    const fs::path file = folder_ / name;
    std::error_code error;
    if (!fs::exists(file, error)) return {};
    if (!fs::is_regular_file(file, error)) { // reading a pipe would block
        remove_damaged(file);
        return {};
    }
    std::string content = read_file(file);
    const size_t size = content.size() - std::min(content.size(), seal_size);
    if (content.substr(size) != seal_of(name, std::string_view(content).substr(0, size))) {
        fs::remove(file, error);
        return {};
    }
    fs::last_write_time(file, fs::file_time_type::clock::now(), error);
    content.resize(size);
    return content;
}

fs::path ObjectCache::find(const std::string &name) const { return read(name) ? folder_ / name : fs::path(); }

fs::path ObjectCache::part_of(const std::string &name) const {
    return folder_ / (name + "." + host_name() + "." + std::to_string(getpid()) + std::string(part_extension));
}

fs::path ObjectCache::insert(const std::string &name, const fs::path &part) const {
    const PartFile gone_at_the_end(part);
    append_to(part, seal_of(name, read_file(part)));
    fs::path file = folder_ / name;
    move_file(part, file);
    has_grown_ = true;
    return file;
}

void ObjectCache::insert_content(const std::string &name, const std::string &content) const {
    const PartFile part(part_of(name));
    append_to(part.path, content);
    insert(name, part.path);
}

void ObjectCache::append_to(const fs::path &part, const std::string &content) const {
    std::ofstream out(part, std::ios::binary | std::ios::app);
    out << content;
    out.close();
    if (!out) refuse_room(folder_, std::strerror(errno));
}

void ObjectCache::check_room() const {
    constexpr size_t largest_object = size_t(1) << 18;
    const fs::path file = part_of("room");
    std::ofstream out(file, std::ios::binary);
    out << std::string(largest_object, '\0');
    out.close();
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    fs::remove(file, ignored);
    if (!out) refuse_room(folder_, reason);
}

ObjectCache::Usage ObjectCache::usage() const {
    Usage usage{0, 0, limit_};
    for (const Entry &entry : list(folder_)) {
        usage.kernels += entry.path.extension() == object_extension;
        usage.bytes += is_part(entry) ? 0 : entry.bytes;
    }
    return usage;
}

void ObjectCache::trim() const {
    std::error_code ignored;
    std::vector<Entry> entries = list(folder_);
    std::erase_if(entries, [&](const Entry &entry) {
        if (!is_part(entry)) return false;
        if (is_orphan(entry)) fs::remove(entry.path, ignored);
        return true;
    });
    uint64_t bytes = 0;
    for (const Entry &entry : entries) bytes += entry.bytes;
    if (bytes <= limit_) return;
    std::ranges::sort(entries, {}, &Entry::used);
    for (const Entry &entry : entries) {
        if (bytes <= limit_) return;
        if (fs::remove(entry.path, ignored)) bytes -= entry.bytes;
    }
}

uint64_t ObjectCache::clear() const {
    uint64_t removed = 0;
    std::error_code ignored;
    for (const Entry &entry : list(folder_)) removed += fs::remove(entry.path, ignored);
    return removed;
}

} // namespace scalide

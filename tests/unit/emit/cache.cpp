#include "emit/cache.h"
#include "emit/files.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace scalide;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// A folder of its own that goes at the end.
struct Folder {
    Folder() {
        std::string name = (fs::temp_directory_path() / "scalide-cache-XXXXXX").string();
        path = mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path); }
    fs::path path;
};

/// An object of so many bytes that was used so many minutes ago.
void add(const ObjectCache &cache, const std::string &key, size_t bytes, int minutes) {
    const fs::path part = cache.part_of(key);
    write_file(part, std::string(bytes, 'o'));
    fs::last_write_time(cache.insert(key, part), fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
}

pid_t process_that_is_gone() {
    const pid_t process = fork();
    if (process == 0) _exit(0);
    waitpid(process, nullptr, 0);
    return process;
}

} // namespace

TEST(emit, cache_keeps_to_its_limit) {
    const Folder folder;
    const ObjectCache cache(folder.path, 250);
    add(cache, "old.o", 100, 30);
    add(cache, "older.o", 100, 40);
    add(cache, "new.a", 100, 10);
    EXPECT_EQ(cache.usage().bytes, 300u);
    EXPECT_FALSE(cache.find("older.o").empty()) << "now it is the last that was used";
    cache.trim();
    EXPECT_EQ(cache.usage().kernels, 1u) << "an archive counts in bytes";
    EXPECT_EQ(cache.usage().bytes, 200u);
    EXPECT_TRUE(cache.find("old.o").empty());
    EXPECT_FALSE(cache.find("older.o").empty());
    EXPECT_FALSE(cache.find("new.a").empty());
}

TEST(emit, cache_removes_what_killed_builds_left) {
    const Folder folder;
    const ObjectCache cache(folder.path);
    const fs::path ours = cache.part_of("key");
    const std::string own = std::to_string(getpid()), gone = std::to_string(process_that_is_gone());
    std::string other_process = ours.string(), other_machine = ours.string();
    other_process.replace(other_process.rfind(own), own.size(), gone);
    other_machine.replace(other_machine.rfind("." + own), 1 + own.size(), "-elsewhere." + gone);
    const std::string long_ago = other_machine + ".part";
    for (const fs::path &file : {ours, fs::path(other_process), fs::path(other_machine), fs::path(long_ago)}) write_file(file, "half");
    fs::last_write_time(long_ago, fs::file_time_type::clock::now() - 2h);
    cache.trim();
    EXPECT_TRUE(fs::exists(ours)) << "still being written";
    EXPECT_FALSE(fs::exists(other_process));
    EXPECT_TRUE(fs::exists(other_machine)) << "process numbers of another machine say nothing";
    EXPECT_FALSE(fs::exists(long_ago));
    EXPECT_EQ(cache.clear(), 2u);
}

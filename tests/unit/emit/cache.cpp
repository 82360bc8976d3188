#include "emit/cache.h"
#include "emit/files.h"
#include "expr/error.h"
#include "support/folder.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace scalide;
using scalide::test::Folder;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// An object of so many bytes that was used so many minutes ago.
void add(const ObjectCache &cache, const std::string &key, size_t bytes, int minutes) {
    const fs::path part = cache.part_of(key);
    write_file(part, std::string(bytes - hash_text("").size(), 'o'));
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

TEST(emit, cache_finds_only_what_was_put_there) {
    const Folder folder;
    const ObjectCache cache(folder.path);
    const std::string content = "an object of some bytes";
    const auto put = [&] { cache.insert_content("key.o", content); };
    EXPECT_FALSE(cache.has_grown());
    put();
    EXPECT_TRUE(cache.has_grown()) << "only such builds list the folder";
    EXPECT_EQ(cache.read("key.o"), content);
    const std::string whole = read_file(folder.path / "key.o");
    std::vector<std::string> others{"", "short", whole.substr(0, whole.size() - 1), whole + "x", content};
    for (size_t i = 0; i < whole.size(); i++) (others.emplace_back(whole))[i] ^= 1;
    for (const std::string &other : others) {
        write_file(folder.path / "key.o", other);
        EXPECT_EQ(cache.find("key.o"), fs::path()) << other;
        EXPECT_FALSE(fs::exists(folder.path / "key.o")) << "it is made anew";
    }
    put();
    fs::rename(folder.path / "key.o", folder.path / "other.o");
    EXPECT_EQ(cache.read("other.o"), std::nullopt) << "another kernel's";
}

TEST(emit, cache_is_no_folder_of_everybody) {
    const Folder folder;
    fs::permissions(folder.path, fs::perms::others_write, fs::perm_options::add);
    try {
        const ObjectCache cache(folder.path);
        ADD_FAILURE() << "taken";
    } catch (const UserError &error) {
        EXPECT_NE(std::string(error.what()).find("every user can write it. Run 'chmod o-w "), std::string::npos) << error.what();
    }
    fs::permissions(folder.path, fs::perms::others_write, fs::perm_options::remove);
    EXPECT_NO_THROW(ObjectCache{folder.path});
    if (geteuid() != 0) return;
    ASSERT_EQ(chown(folder.path.c_str(), 12345, 12345), 0);
    EXPECT_THROW(ObjectCache{folder.path}, UserError) << "of another user";
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
    for (const fs::path &file : {ours, fs::path(long_ago)}) fs::last_write_time(file, fs::file_time_type::clock::now() - 2h);
    cache.trim();
    EXPECT_TRUE(fs::exists(ours)) << "still being written, though the clock jumped";
    EXPECT_FALSE(fs::exists(other_process));
    EXPECT_TRUE(fs::exists(other_machine)) << "process numbers of another machine say nothing";
    EXPECT_FALSE(fs::exists(long_ago));
    EXPECT_EQ(cache.clear(), 2u);
}

#include "emit/files.h"
#include "emit/process.h"
#include "expr/error.h"
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace scalide {

namespace fs = std::filesystem;

namespace {

constexpr const char *part_prefix = ".scalide-part-";

[[noreturn]] void fail(const fs::path &file, const std::string &requirement, const std::string &got) {
    throw UserError({{file.string()}, "", requirement, got, "Check the path, its permissions and the room on the disk"});
}

void make_folder(const fs::path &folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail(folder, "must be a folder that can be written", error.message());
}

// Names end in the process that made them: a folder whose process is gone was left by a kill.
void remove_stale_folders(const fs::path &parent) {
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(parent, error)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(part_prefix)) continue;
        if (!is_running(std::atoi(name.c_str() + std::strlen(part_prefix)))) fs::remove_all(entry.path(), error);
    }
}

} // namespace

std::string read_file(const fs::path &file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail(file, "must be a readable file", std::strerror(errno));
    std::ostringstream text;
    text << in.rdbuf();
    if (in.bad()) fail(file, "must be a readable file", std::strerror(errno));
    return std::move(text).str();
}

void write_file(const fs::path &file, const std::string &text) {
    if (file.has_parent_path()) make_folder(file.parent_path());
    const fs::path part = file.string() + part_prefix + std::to_string(getpid());
    std::ofstream out(part, std::ios::binary);
    out << text;
    out.close();
    if (!out) {
        const std::string reason = std::strerror(errno);
        std::error_code error;
        fs::remove(part, error);
        fail(file, "must be a file that can be written", reason);
    }
    move_file(part, file);
}

void move_file(const fs::path &from, const fs::path &to) {
    std::error_code error;
    if (fs::exists(to, error) && !fs::is_regular_file(to, error)) fail(to, "must be a regular file", "a folder or a device");
    fs::rename(from, to, error);
    if (error == std::errc::cross_device_link) {
        const fs::path part = to.string() + part_prefix + std::to_string(getpid());
        fs::copy_file(from, part, fs::copy_options::overwrite_existing, error);
        if (!error) fs::rename(part, to, error);
        std::error_code ignored;
        fs::remove(error ? part : from, ignored);
    }
    if (error) fail(to, "must be a file that can be written", error.message());
}

WorkFolder::WorkFolder(const fs::path &parent) : path_(parent / (part_prefix + std::to_string(getpid()))) {
    make_folder(parent);
    remove_stale_folders(parent);
    make_folder(path_);
}

WorkFolder::~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

} // namespace scalide

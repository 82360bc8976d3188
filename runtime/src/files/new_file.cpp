#include "files/new_file.h"
#include "base/memory.h"
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace scalide {

namespace {

std::atomic<uint64_t> files_begun{0};

bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// Steps over `.<digits>` at the end of the text of this length. Returns the new length, or 0.
size_t without_number(const char *text, size_t length) {
    size_t end = length;
    while (end > 0 && is_digit(text[end - 1])) --end;
    return end < length && end > 0 && text[end - 1] == '.' ? end - 1 : 0;
}

} // namespace

OwnedText::OwnedText(std::initializer_list<const char *> parts) {
    size_t capacity = 1;
    for (const char *part : parts) capacity += std::strlen(part);
    text_ = static_cast<char *>(allocate(capacity));
    if (!text_) return;
    Text text(text_, capacity);
    for (const char *part : parts) text << part;
}

OwnedText::~OwnedText() { release(text_); }

OwnedText folder_of(const char *path) {
    size_t length = std::strlen(path);
    while (length > 0 && path[length - 1] != '/') --length;
    if (length == 0) return {"."};
    OwnedText folder({path});
    if (folder) const_cast<char *>(folder.get())[length] = 0;
    return folder;
}

OwnedText temporary_name(const char *path) {
    char ending[64];
    Text(ending, sizeof(ending)) << '.' << int64_t(getpid()) << '.' << files_begun.fetch_add(1) << ".tmp";
    return {path, ending};
}

bool is_temporary_name(const char *name) {
    const size_t length = std::strlen(name);
    if (length < 4 || std::strcmp(name + length - 4, ".tmp") != 0) return false;
    const size_t of_process = without_number(name, length - 4);
    return of_process > 0 && without_number(name, of_process) > 0;
}

bool flush_folder(const char *folder) {
    const File opened(folder, O_RDONLY | O_DIRECTORY);
    if (!opened.is_open()) return errno == EACCES; // a folder may be writable, but not readable
    return opened.flush() || errno == EINVAL;
}

NewFile::NewFile(const char *path) : path_(path), temporary_(temporary_name(path)), folder_(folder_of(path)) {
    if (!temporary_ || !folder_) {
        failure_ = Failure::memory;
    } else if (!is_replaceable(path)) {
        failure_ = Failure::target;
    } else {
        file_ = File(temporary_.get(), O_WRONLY | O_CREAT | O_EXCL);
        if (!file_.is_open()) fail();
    }
}

NewFile::~NewFile() {
    file_.close();
    if (temporary_ && failure_ != Failure::published && failure_ != Failure::target) unlink(temporary_.get());
}

bool NewFile::fail() {
    error_ = errno;
    failure_ = Failure::system;
    return false;
}

bool NewFile::publish(bool flushes_folder) {
    if (failure_ != Failure::none) return false;
    if (!file_.flush() || !file_.close() || std::rename(temporary_.get(), path_) != 0) return fail();
    failure_ = Failure::published;
    if (!flushes_folder || flush_folder(folder_.get())) return true;
    error_ = errno;
    return false;
}

scalide_status NewFile::explain(const FileMessage &message) const {
    Text text = message.begin();
    switch (failure_) {
    case Failure::memory: text << "out of memory: cannot allocate the name of a temporary file."; return SCALIDE_OUT_OF_MEMORY;
    case Failure::target: text << "cannot write this file: it is a folder or a device. Choose another path."; break;
    case Failure::published:
        text << "the file is written, but its folder cannot be flushed: ";
        print_system_error(text, error_) << "A power failure may lose the file. Check the disk.";
        break;
    default:
        text << "cannot write this file: ";
        print_system_error(text, error_) << "Nothing was changed. Check the folder and the free space.";
    }
    return SCALIDE_FILE_ERROR;
}

} // namespace scalide

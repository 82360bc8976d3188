#include "metrics/record_file.h"
#include <algorithm>
#include <cerrno>
#include <utility>

namespace scalide {

RecordFile::RecordFile(File file, const char *path, Whole whole, char *memory, size_t capacity)
    : file_(std::move(file)), path_(path), whole_(whole), queue_(memory), block_(memory + capacity), capacity_(capacity) {}

void RecordFile::add(size_t bytes) {
    queued_ += bytes;
    ++queued_records_;
}

bool RecordFile::take_queue() {
    if (begin_ == taken_) {
        std::swap(queue_, block_);
        begin_ = 0;
        taken_ = std::exchange(queued_, 0);
        records_ = std::exchange(queued_records_, 0);
    }
    return begin_ < taken_;
}

/// Removes the part of a record that a failed write left. `errno` keeps the error of that write, unless the removal fails.
bool RecordFile::remove_torn() {
    if (torn_ == 0) return true;
    const int error = errno;
    uint64_t size = 0;
    if (!file_.size(&size) || !file_.truncate(size - std::min(torn_, size))) return false;
    errno = error;
    torn_ = 0;
    return true;
}

bool RecordFile::write() {
    if (!remove_torn()) return false;
    const uint64_t wanted = taken_ - begin_, written = file_.append(block_ + begin_, wanted);
    uint64_t records = 0;
    const size_t whole = whole_(block_ + begin_, written, &records);
    begin_ += whole;
    records_ -= records;
    torn_ = written - whole;
    if (written == wanted) return true;
    remove_torn();
    return false;
}

} // namespace scalide

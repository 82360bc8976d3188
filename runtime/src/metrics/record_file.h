#pragma once
#include "files/file.h"
#include <cstddef>
#include <cstdint>

namespace scalide {

/// A file to which a thread appends records, and a queue of records for it. Two blocks of memory take turns: callers fill one, the thread
/// writes the other. A record that cannot be written stays until it is written.
class RecordFile {
public:
    /// Returns the size of the whole records at the beginning of a block, and their number.
    using Whole = size_t (*)(const char *memory, size_t bytes, uint64_t *records);

    RecordFile() = default;
    /// `memory` has 2 * capacity bytes.
    RecordFile(File file, const char *path, Whole whole, char *memory, size_t capacity);

    const char *path() const { return path_; }

    // The next functions need the lock of the owner.

    /// Memory for further records: `room` bytes. Call `add` with what was used.
    char *end() const { return queue_ + queued_; }
    size_t room() const { return capacity_ - queued_; }
    size_t capacity() const { return capacity_; }
    void add(size_t bytes);
    /// Gives the queue to the thread, if all of the last block is written. Returns true if the thread has something to write.
    bool take_queue();

    // The next functions are for the thread, or for its owner after the end of the thread.

    /// The number of records that are in no file.
    uint64_t unwritten() const { return queued_records_ + records_; }
    /// Writes the block. If it fails, errno has the error, and the file ends with a whole record unless that fails, too.
    bool write();
    bool flush() const { return file_.flush(); }
    bool close() { return file_.close(); }

private:
    bool remove_torn();

    File file_;
    const char *path_ = "";
    Whole whole_ = nullptr;
    char *queue_ = nullptr, *block_ = nullptr;
    size_t capacity_ = 0, queued_ = 0, begin_ = 0, taken_ = 0;
    uint64_t queued_records_ = 0, records_ = 0;
    uint64_t torn_ = 0; ///< bytes of a part of a record at the end of the file
};

} // namespace scalide

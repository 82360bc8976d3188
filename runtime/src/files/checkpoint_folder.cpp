#include "files/checkpoint_folder.h"
#include "base/memory.h"
#include "files/folder.h"
#include "files/safetensors_shards.h"
#include <algorithm>
#include <cstring>
#include <new>
#include <sys/stat.h>

namespace scalide {

namespace {

constexpr char file_ending[] = ".safetensors";

bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// A decimal number: mantissa * 10^exponent.
struct Decimal {
    int64_t mantissa = 0, exponent = 0;
    bool has_digits = false;

    bool add(char digit) {
        has_digits = true;
        return !__builtin_mul_overflow(mantissa, int64_t(10), &mantissa) &&
               !__builtin_add_overflow(mantissa, int64_t(digit - '0'), &mantissa);
    }
    /// Returns false if the number is no integer up to `most_steps`.
    bool round(int64_t *value) const {
        int64_t number = mantissa;
        for (int64_t i = exponent; i < 0 && number != 0; ++i, number /= 10)
            if (number % 10 != 0) return false;
        for (int64_t i = exponent; i > 0 && number != 0; --i)
            if (__builtin_mul_overflow(number, int64_t(10), &number)) return false;
        *value = number;
        return has_digits && number <= most_steps;
    }
};

/// Reads an unsigned float. Returns the end of it, or NULL.
const char *parse_float(const char *at, Decimal *number) {
    for (; is_digit(*at); ++at)
        if (!number->add(*at)) return nullptr;
    if (*at == '.') {
        for (++at; is_digit(*at); ++at, --number->exponent)
            if (!number->add(*at)) return nullptr;
    }
    if (*at != 'e' && *at != 'E') return at;
    ++at;
    const bool is_negative = *at == '-';
    at += is_negative || *at == '+';
    Decimal exponent;
    for (; is_digit(*at); ++at)
        if (exponent.mantissa > 1000 || !exponent.add(*at)) return nullptr;
    number->exponent += is_negative ? -exponent.mantissa : exponent.mantissa;
    return exponent.has_digits ? at : nullptr;
}

/// Returns 1 for a checkpoint, otherwise 0. Folders of other programs, such as Orbax, are no checkpoints. -1: errno has an error.
int is_checkpoint(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0) return errno == ENOENT ? 0 : -1; // another process may remove it
    return S_ISDIR(facts.st_mode) ? has_shards(path) : S_ISREG(facts.st_mode);
}

} // namespace

const char *CheckpointOptions::take(const scalide_checkpoint_options *given) {
    if (!given) return nullptr;
    if (given->struct_size != sizeof(*given)) return "struct_size must be sizeof(scalide_checkpoint_options)";
    if (given->prefix) prefix = given->prefix;
    if (std::strchr(prefix, '/')) return "prefix must be a name without '/'";
    if (given->keep < 0) return "keep must be at least 1";
    if (given->keep_every_n_steps < 0) return "keep_every_n_steps must be at least 1";
    if (given->format < 0 || given->format >= SCALIDE_CHECKPOINT_FORMAT_COUNT) return "format must be a scalide_checkpoint_format";
    keep = given->keep > 0 ? given->keep : 1;
    keep_every_n_steps = given->keep_every_n_steps;
    overwrite = given->overwrite != 0;
    format = given->format;
    if (given->shard_bytes > 0) shard_bytes = given->shard_bytes;
    return nullptr;
}

bool parse_checkpoint_name(const char *name, const char *prefix, int64_t *step) {
    const size_t length = std::strlen(prefix);
    if (std::strncmp(name, prefix, length) != 0) return false;
    Decimal number;
    const char *end = parse_float(name + length, &number);
    if (!end) return false;
    if (*end != 0 && end[-1] == '.') --end; // the point of `10.safetensors` is no part of the number
    if (*end != 0 && std::strcmp(end, file_ending) != 0) return false;
    return number.round(step);
}

CheckpointList::~CheckpointList() {
    for (uint64_t i = 0; i < count_; ++i) rows_[i].~FoundCheckpoint();
    release(rows_);
}

bool CheckpointList::add(int64_t step, const char *name) {
    OwnedText owned({name});
    if (!owned) return false;
    if (count_ == capacity_) {
        const uint64_t more = capacity_ > 0 ? 2 * capacity_ : 16;
        auto *rows = static_cast<FoundCheckpoint *>(allocate(more * sizeof(FoundCheckpoint)));
        if (!rows) return false;
        for (uint64_t i = 0; i < count_; ++i) {
            new (rows + i) FoundCheckpoint(std::move(rows_[i]));
            rows_[i].~FoundCheckpoint();
        }
        release(rows_);
        rows_ = rows;
        capacity_ = more;
    }
    new (rows_ + count_++) FoundCheckpoint{step, std::move(owned)};
    return true;
}

scalide_status CheckpointList::read(const FileMessage &message, const char *prefix) {
    FolderReader reader(message.path);
    int error = reader.is_open() ? 0 : errno;
    if (error == ENOENT) return SCALIDE_OK;
    bool good = true;
    for (const char *name = reader.next(); name && good && error == 0; name = reader.next()) {
        int64_t step;
        if (!parse_checkpoint_name(name, prefix, &step)) continue;
        const OwnedText path({message.path, "/", name});
        const int is_one = path ? is_checkpoint(path.get()) : 0;
        error = is_one < 0 ? errno : 0;
        good = path && (is_one != 1 || add(step, name));
    }
    if (!good) {
        message.begin() << "out of memory: cannot allocate the list of checkpoints.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    if (error != 0 || reader.error() != 0) {
        Text text = message.begin() << "cannot read this folder: ";
        print_system_error(text, error != 0 ? error : reader.error()) << "Check the path.";
        return SCALIDE_FILE_ERROR;
    }
    std::sort(rows_, rows_ + count_, [](const FoundCheckpoint &a, const FoundCheckpoint &b) {
        return a.step != b.step ? a.step < b.step : std::strcmp(a.name.get(), b.name.get()) < 0;
    });
    return SCALIDE_OK;
}

const FoundCheckpoint *CheckpointList::find(int64_t step) const {
    const FoundCheckpoint *found = nullptr;
    for (uint64_t i = 0; i < count_; ++i)
        if (rows_[i].step == step) found = rows_ + i;
    return found;
}

} // namespace scalide

#pragma once
#include "files/new_file.h"
#include "scalide/checkpoints.h"

namespace scalide {

/// The default prefix of Flax, and a size of shards that other programs read.
constexpr char default_prefix[] = "checkpoint_";
constexpr uint64_t default_shard_bytes = 2'000'000'000;
/// Steps are integers that a double has: Flax reads names as doubles.
constexpr int64_t most_steps = int64_t(1) << 53;

/// Checked options, with the defaults filled in.
struct CheckpointOptions {
    const char *prefix = default_prefix;
    int64_t keep = 1, keep_every_n_steps = 0;
    bool overwrite = false;
    int32_t format = SCALIDE_CHECKPOINT_SAFETENSORS;
    uint64_t shard_bytes = default_shard_bytes;

    /// Returns what is wrong with the options of the caller, or NULL.
    const char *take(const scalide_checkpoint_options *given);
};

/// One checkpoint of a folder.
struct FoundCheckpoint {
    int64_t step;
    OwnedText name;
};

/// The checkpoints of a folder, in the order of their steps. A step has several, if a save was killed while it changed the format.
class CheckpointList {
public:
    CheckpointList() = default;
    CheckpointList(const CheckpointList &) = delete;
    CheckpointList &operator=(const CheckpointList &) = delete;
    ~CheckpointList();

    /// A folder that does not exist has none. If this fails, the message is written.
    scalide_status read(const FileMessage &message, const char *prefix);
    uint64_t count() const { return count_; }
    const FoundCheckpoint &operator[](uint64_t i) const { return rows_[i]; }
    const FoundCheckpoint *latest() const { return count_ > 0 ? rows_ + count_ - 1 : nullptr; }
    const FoundCheckpoint *find(int64_t step) const;

private:
    bool add(int64_t step, const char *name);

    FoundCheckpoint *rows_ = nullptr;
    uint64_t count_ = 0, capacity_ = 0;
};

/// Reads `<prefix><number>` or `<prefix><number>.safetensors`. The number may have a form such as 1e5 or 10.0; it is a step if it is an
/// integer from 0 to `most_steps`.
bool parse_checkpoint_name(const char *name, const char *prefix, int64_t *step);

} // namespace scalide

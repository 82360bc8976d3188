#pragma once
#include "files/safetensors_write.h"

/// Folders of safetensors files with the names and the index of Hugging Face: `model-00001-of-00002.safetensors`, ...,
/// `model.safetensors.index.json`.
namespace scalide {

/// Writes the entries of a prepared content to an existing, empty folder, which the caller flushes. A file has at most `shard_bytes` bytes
/// of data, but at least one tensor. If this returns false, the message and `failure` are written.
bool write_shards(Writing &writing, const char *folder, uint64_t shard_bytes);

/// Returns 1 if the folder has a file with the name of a shard, otherwise 0. -1: errno has an error.
int has_shards(const char *folder);

/// Reads all files of a folder as one content.
scalide_status read_shards(const FileMessage &message, scalide_safetensors **file);

} // namespace scalide

#pragma once
#include "files/safetensors_format.h"

/// Checkpoints in the layout of Flax, with the names of a program: the keys are joined with `.`.
namespace scalide {

/// Writes the tensors of a content. The layout has no place for metadata.
scalide_status write_flax(const FileMessage &message, const char *path, const scalide_safetensors_content &content);

/// Reads the arrays and the Python numbers of a file as tensors. Other leaves are skipped.
scalide_status read_flax(const FileMessage &message, scalide_safetensors **file);

} // namespace scalide

#pragma once
#include "tool/arrays.h"
#include <map>

namespace scalide {

/// The arrays of a checkpoint: a safetensors file, a msgpack file of Flax, or the files that an index
/// (model.safetensors.index.json) lists.
class Checkpoint {
public:
    /// Throws UserError if the file or the index cannot be read.
    explicit Checkpoint(const std::string &path);
    /// Returns the names of all arrays. The two tensors of a scaled array have one name, and so has a tensor with published scales.
    std::vector<std::string> names() const;
    /// Returns an array. A tensor `x` of 8 bits with a tensor `x_scale` or `x_scale_inv` is multiplied by these scales: one number, one for
    /// each row or column, or one for each block of 128 x 128. Throws UserError if the scales do not fit.
    HostArray find(const std::string &name);

private:
    const ArrayFile &open(const std::string &file);

    /// Where an array is, and the tensors with its published scales.
    struct Entry {
        std::string file, scales, scales_file;
    };
    std::map<std::string, ArrayFile> files_; ///< those that are open
    std::map<std::string, Entry> entries_;
};

} // namespace scalide

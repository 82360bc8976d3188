#pragma once
#include "base/memory.h"
#include "scalide/msgpack.h"
#include "scalide/safetensors.h"
#include <algorithm>
#include <cstdint>
#include <cstring>

/// The content of one file, or of several files that are read as one.
struct scalide_safetensors {
    scalide_tensor *tensors; ///< in the order of the header
    uint64_t *by_name;       ///< indices of tensors, sorted by name
    scalide_skipped_tensor *skipped;
    scalide_metadata *metadata;
    uint64_t tensor_count, skipped_count, metadata_count;
    void *data;
    uint64_t mapped_bytes;       ///< of a mapped file; 0: the data is a copy
    scalide_safetensors **parts; ///< the files whose tensors these are
    uint64_t part_count;
    scalide_msgpack *flax; ///< the file whose arrays these are
};

namespace scalide {

/// Places a content and the tables of its tensors, of which at most `most_skipped` are skipped.
inline void take_tables(Carver &carver, scalide_safetensors &result, uint64_t most_skipped) {
    carver.take<scalide_safetensors>(1);
    result.tensors = carver.take<scalide_tensor>(result.tensor_count);
    result.by_name = carver.take<uint64_t>(result.tensor_count);
    result.skipped = carver.take<scalide_skipped_tensor>(most_skipped);
}

/// Writes the indices [0, count) to `order`, sorted by name. Equal names keep their order.
template<typename NameOf>
void sort_names(uint64_t *order, uint64_t count, const NameOf &name_of) {
    for (uint64_t i = 0; i < count; ++i) order[i] = i;
    std::sort(order, order + count, [&](uint64_t a, uint64_t b) {
        const int compared = std::strcmp(name_of(a), name_of(b));
        return compared != 0 ? compared < 0 : a < b;
    });
}

} // namespace scalide

// Checkpoints of a training run in C++17: header only, over checkpoints.h. It throws scalide::runtime::Error.
//
//     const Checkpoints checkpoints("run");                      // keeps the latest one
//     if (checkpoints.latest() >= 0) first = checkpoints.restore(state) + 1;
//     for (int64_t step = first; step < steps; ++step) {
//         binding.run();
//         if (step % 100 == 99) checkpoints.save(step, state);
//     }
#ifndef SCALIDE_CHECKPOINTS_HPP
#define SCALIDE_CHECKPOINTS_HPP

#include "scalide/checkpoints.h"
#include "scalide/msgpack.h"
#include "scalide/scalide.hpp"

namespace scalide::runtime {

/// Options of a folder of checkpoints.
struct CheckpointOptions {
    std::string prefix = "checkpoint_"; ///< of the names in the folder
    int64_t keep = 1;                   ///< the number of newest checkpoints that a save leaves
    int64_t keep_every_n_steps = 0;     ///< also leave older checkpoints that are at least so many steps apart; 0: none
    bool overwrite = false;             ///< a save may replace its step, and then removes all later checkpoints
    scalide_checkpoint_format format = SCALIDE_CHECKPOINT_SAFETENSORS;
    uint64_t shard_bytes = 0; ///< the most bytes of arrays in one file; 0: 2 GB
};

/// Reads the arrays of one checkpoint into the memory of the context: a file of safetensors or of Flax, or a folder of shards.
inline NamedArrays read_arrays(const Context &context, const std::string &path) {
    char message[1536] = "";
    scalide_safetensors *opened = nullptr;
    const scalide_status status = scalide_checkpoint_read_path(path.c_str(), &opened, message, sizeof(message));
    if (status != SCALIDE_OK) throw Error(status, message);
    const std::unique_ptr<scalide_safetensors, void (*)(scalide_safetensors *)> file(opened, scalide_safetensors_close);
    NamedArrays arrays;
    for (size_t i = 0; i < scalide_safetensors_count(opened); ++i) {
        std::string name = scalide_safetensors_tensor(opened, i)->name;
        const size_t end = name.size() > 5 ? name.size() - 5 : 0; // of `.data`; `.scale` belongs to it
        scalide_array array = scalide_safetensors_tensor(opened, i)->array, scaled;
        if (end > 0 && (name.compare(end, 5, ".data") == 0 || name.compare(end, 5, "!data") == 0) &&
            scalide_safetensors_find(opened, name.substr(0, end).c_str(), &scaled) == SCALIDE_OK && scaled.data == array.data) {
            array = scaled;
            name.resize(end);
        }
        const Shape shape(array.extent, array.extent + array.rank);
        Array made(context, array.dtype, shape, array.scale != nullptr);
        made.set_bits(array);
        arrays.emplace(name, std::move(made));
    }
    for (auto &named : NamedArrays(arrays))
        if (named.second.is_scaled())
            for (const char *ending : {".scale", "!scale"}) arrays.erase(named.first + ending);
    return arrays;
}

/// Writes arrays in the msgpack layout of Flax. The parts of a name between points are the keys of dicts.
inline void write_flax(const std::string &path, const NamedArrays &arrays) {
    std::vector<Array> host;
    std::vector<scalide_leaf> leaves;
    for (const auto &named : arrays) {
        host.push_back(named.second.host());
        scalide_leaf leaf = {};
        leaf.name = named.first.c_str();
        leaf.array = host.back().descriptor();
        leaves.push_back(leaf);
    }
    char message[1536] = "";
    const scalide_status status = scalide_msgpack_write(path.c_str(), leaves.data(), leaves.size(), '.', 0, message, sizeof(message));
    if (status != SCALIDE_OK) throw Error(status, message);
}

/// Entries of the metadata of a checkpoint.
using Metadata = std::map<std::string, std::string>;

/// A folder with the checkpoints of a run. Kills, full disks and other processes that save leave all older checkpoints: see checkpoints.h.
class Checkpoints {
public:
    explicit Checkpoints(std::string folder, CheckpointOptions options = {}) : folder_(std::move(folder)), options_(std::move(options)) {}

    const std::string &folder() const { return folder_; }
    /// In ascending order.
    std::vector<int64_t> steps() const {
        char message[1536] = "";
        size_t count = 0;
        const scalide_checkpoint_options options = described();
        check(scalide_checkpoint_steps(folder_.c_str(), &options, nullptr, 0, &count, message, sizeof(message)), message);
        std::vector<int64_t> steps(count);
        check(scalide_checkpoint_steps(folder_.c_str(), &options, steps.data(), steps.size(), &count, message, sizeof(message)), message);
        steps.resize(std::min(count, steps.size())); // another process may save or remove checkpoints in between
        return steps;
    }
    /// Returns the largest step, or SCALIDE_LATEST_STEP (-1) if there is no checkpoint.
    int64_t latest() const {
        char message[1536] = "";
        int64_t step = SCALIDE_LATEST_STEP;
        const scalide_checkpoint_options options = described();
        check(scalide_checkpoint_latest(folder_.c_str(), &options, &step, message, sizeof(message)), message);
        return step;
    }

    /// Saves the arrays of a state, with the policy and the hash of its program.
    void save(int64_t step, const State &state, const Metadata &metadata = {}) const { save(step, state, NamedArrays(), metadata); }
    /// Saves further arrays with them, such as a random key.
    void save(int64_t step, const State &state, const NamedArrays &more, const Metadata &metadata = {}) const {
        Metadata entries = metadata;
        entries.insert({{"scalide.policy", state.program().policy()}, {"scalide.program", state.program().hash()}});
        save(step, joined(state, more), entries);
    }
    /// Saves arrays by name.
    void save(int64_t step, const NamedArrays &arrays, const Metadata &metadata = {}) const {
        std::vector<scalide_metadata> entries;
        for (const auto &entry : metadata) entries.push_back({entry.first.c_str(), entry.second.c_str()});
        std::vector<Array> host;
        std::vector<scalide_tensor> tensors;
        for (const auto &named : arrays) {
            host.push_back(named.second.host());
            tensors.push_back({named.first.c_str(), host.back().descriptor()});
        }
        char message[1536] = "";
        const scalide_safetensors_content content = {tensors.data(), tensors.size(), entries.data(), entries.size()};
        const scalide_checkpoint_options options = described();
        check(scalide_checkpoint_save(folder_.c_str(), step, &content, &options, message, sizeof(message)), message);
    }

    /// Reads the arrays of a state bit for bit. Returns the step. Nothing is written unless the checkpoint has exactly these arrays, for
    /// the policy of the program.
    int64_t restore(const State &state, int64_t step = SCALIDE_LATEST_STEP) const { return restore(state, NamedArrays(), step); }
    /// Reads further arrays that were saved with them.
    int64_t restore(const State &state, const NamedArrays &more, int64_t step = SCALIDE_LATEST_STEP) const {
        return restore(joined(state, more), state.program().policy().c_str(), step);
    }
    /// Reads arrays by name.
    int64_t restore(const NamedArrays &arrays, int64_t step = SCALIDE_LATEST_STEP) const { return restore(arrays, nullptr, step); }

    /// Returns the metadata of a checkpoint: the entries of the caller, scalide.step and scalide.version, and those of a program.
    Metadata metadata(int64_t step = SCALIDE_LATEST_STEP) const {
        const File file = open(step, nullptr);
        Metadata found;
        for (size_t i = 0; i < scalide_safetensors_metadata_count(file.get()); ++i) {
            const scalide_metadata *entry = scalide_safetensors_metadata_entry(file.get(), i);
            found[entry->key] = entry->value;
        }
        return found;
    }

private:
    using File = std::unique_ptr<scalide_safetensors, void (*)(scalide_safetensors *)>;

    scalide_checkpoint_options described() const {
        scalide_checkpoint_options options = {};
        options.struct_size = sizeof(options);
        options.prefix = options_.prefix.c_str();
        options.keep = options_.keep;
        options.keep_every_n_steps = options_.keep_every_n_steps;
        options.overwrite = options_.overwrite ? 1 : 0;
        options.format = options_.format;
        options.shard_bytes = options_.shard_bytes;
        return options;
    }
    static void check(scalide_status status, const char *message) {
        if (status != SCALIDE_OK) throw Error(status, *message ? message : scalide_status_string(status));
    }
    static NamedArrays joined(const State &state, const NamedArrays &more) {
        NamedArrays arrays = state.arrays();
        for (const auto &named : more)
            if (!arrays.insert(named).second)
                detail::refuse("the state has an array of the name '" + named.first + "' already. Rename the further array.");
        return arrays;
    }
    File open(int64_t step, int64_t *found) const {
        char message[1536] = "";
        scalide_safetensors *file = nullptr;
        const scalide_checkpoint_options options = described();
        check(scalide_checkpoint_read(folder_.c_str(), step, &options, &file, found, message, sizeof(message)), message);
        return File(file, scalide_safetensors_close);
    }
    int64_t restore(const NamedArrays &arrays, const char *policy, int64_t step) const {
        const File file = open(step, &step);
        std::vector<std::vector<float>> memory; // of copies in host memory: the scale, then the data
        std::vector<scalide_tensor> tensors;
        for (const auto &named : arrays) {
            const scalide_array &array = named.second.descriptor();
            memory.emplace_back(2 + detail::bytes_of(array) / sizeof(float));
            float *data = memory.back().data();
            tensors.push_back(
                {named.first.c_str(), scalide_dense_array(data + 1, array.scale ? data : nullptr, array.dtype, array.rank, array.extent)});
        }
        char message[1536] = "";
        const scalide_status status =
            scalide_checkpoint_restore(file.get(), policy, tensors.data(), tensors.size(), message, sizeof(message));
        if (status != SCALIDE_OK) throw Error(status, folder_ + ", step " + std::to_string(step) + ": " + message);
        size_t next = 0;
        for (const auto &named : arrays) Array(named.second).set_bits(tensors[next++].array);
        return step;
    }

    std::string folder_;
    CheckpointOptions options_;
};

} // namespace scalide::runtime
#endif

#include "scalide/checkpoints.h"
#include "base/memory.h"
#include "files/checkpoint_folder.h"
#include "files/flax_checkpoint.h"
#include "files/folder.h"
#include "files/safetensors_shards.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

using namespace scalide;

namespace {

constexpr char step_key[] = "scalide.step";

/// What a checkpoint gets: tensors, or leaves in the layout of Flax.
struct CheckpointContent {
    scalide_safetensors_content tensors;
    const scalide_leaf *leaves;
    size_t leaf_count;
    char separator;
    bool has_leaves;
};

/// One save.
struct Saving {
    FileMessage message;
    int64_t step;
    const CheckpointContent &content;
    CheckpointOptions options;
    File lock;
    CheckpointList list;

    scalide_status fail_for_memory() const {
        message.begin() << "out of memory: cannot allocate the names of the files.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    scalide_status fail(const char *what, int error) const {
        Text text = message.begin() << what << ": ";
        print_system_error(text, error) << "Nothing was changed. Check the folder and the free space.";
        return SCALIDE_FILE_ERROR;
    }
    OwnedText path_of(const char *name) const { return {message.path, "/", name}; }
    /// The number of the step with a prefix and an ending.
    OwnedText name(const char *ending) const {
        char digits[24];
        Text(digits, sizeof(digits)) << step;
        return {options.prefix, digits, ending};
    }
};

scalide_status refuse(const FileMessage &message, const char *wrong) {
    message.begin() << wrong << '.';
    return SCALIDE_INVALID_ARGUMENT;
}

scalide_status make_folder(const Saving &saving) {
    if (mkdir(saving.message.path, 0777) == 0) {
        const OwnedText parent = folder_of(saving.message.path);
        if (parent) flush_folder(parent.get());
        return SCALIDE_OK;
    }
    const int error = errno;
    struct stat facts;
    if (error == EEXIST && stat(saving.message.path, &facts) == 0 && S_ISDIR(facts.st_mode)) return SCALIDE_OK;
    if (error == EEXIST) {
        saving.message.begin() << "cannot save into this folder: it is a file. Choose another path.";
        return SCALIDE_FILE_ERROR;
    }
    return saving.fail("cannot make this folder", error);
}

/// Locks the folder for the prefix. The system releases the lock when the process ends, so a killed save leaves no lock.
scalide_status take_lock(Saving &saving) {
    const OwnedText path({saving.message.path, "/.", saving.options.prefix, "lock"});
    if (!path) return saving.fail_for_memory();
    saving.lock = File(path.get(), O_RDWR | O_CREAT);
    if (!saving.lock.is_open()) return saving.fail("cannot save into this folder", errno);
    int result = flock(saving.lock.descriptor(), LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR) result = flock(saving.lock.descriptor(), LOCK_EX | LOCK_NB);
    if (result == 0) return SCALIDE_OK;
    if (errno != EWOULDBLOCK) return saving.fail("cannot lock this folder", errno);
    saving.message.begin() << "cannot save into this folder: another process or thread saves checkpoints '" << saving.options.prefix
                           << "*' there. Nothing was changed. Give each run its own folder or prefix.";
    return SCALIDE_FILE_ERROR;
}

/// Removes what killed saves have left. What cannot be removed stays, because it does no harm.
void remove_leftovers(const Saving &saving) {
    const size_t length = std::strlen(saving.options.prefix);
    FolderReader reader(saving.message.path);
    for (const char *name = reader.next(); name; name = reader.next()) {
        if (std::strncmp(name, saving.options.prefix, length) != 0 || !is_temporary_name(name)) continue;
        const OwnedText path = saving.path_of(name);
        if (path) remove_all(path.get());
    }
}

scalide_status guard(const Saving &saving) {
    const FoundCheckpoint *latest = saving.list.latest();
    if (saving.options.overwrite || !latest || latest->step < saving.step) return SCALIDE_OK;
    saving.message.begin() << "step must be greater than the latest checkpoint, which is " << latest->step << ", got " << saving.step
                           << ". Save a later step, or overwrite: this removes the checkpoints after step " << saving.step << '.';
    return SCALIDE_INVALID_ARGUMENT;
}

/// Writes a folder of files under a temporary name and renames it.
scalide_status write_folder(const Saving &saving, Writing &writing, const char *path) {
    const OwnedText temporary = temporary_name(path);
    if (!temporary) return saving.fail_for_memory();
    if (mkdir(temporary.get(), 0777) != 0) return saving.fail("cannot make a folder in this folder", errno);
    if (!write_shards(writing, temporary.get(), saving.options.shard_bytes)) {
        remove_all(temporary.get());
        return writing.failure;
    }
    if (!flush_folder(temporary.get())) {
        const int error = errno;
        remove_all(temporary.get());
        return saving.fail("cannot flush a folder in this folder", error);
    }
    if (std::rename(temporary.get(), path) == 0) return SCALIDE_OK;
    const int error = errno;
    remove_all(temporary.get());
    return saving.fail("cannot rename a folder in this folder", error);
}

uint64_t bytes_of(const Writing &writing) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < writing.entry_count; ++i) bytes += writing.entries[i].bytes;
    return bytes;
}

bool exists(const Saving &saving, const char *name) {
    for (uint64_t i = 0; i < saving.list.count(); ++i)
        if (std::strcmp(saving.list[i].name.get(), name) == 0) return true;
    return false;
}

/// Returns the name of a new folder for the step. A folder cannot be replaced at once, so it gets another form of the number. Saves that
/// were killed may have left several forms.
OwnedText name_of_folder(const Saving &saving) {
    char ending[18] = "";
    for (size_t length = 0;; ++length) {
        OwnedText name = saving.name(ending);
        if (!name || length + 1 >= sizeof(ending) || !exists(saving, name.get())) return name;
        if (length == 0) ending[length++] = '.';
        ending[length] = '0';
    }
}

scalide_status write_safetensors(const Saving &saving, OwnedText *name) {
    Writing writing(saving.message, saving.content.tensors);
    if (!prepare(writing)) return writing.failure;
    const bool is_folder = bytes_of(writing) > saving.options.shard_bytes;
    *name = is_folder ? name_of_folder(saving) : saving.name(".safetensors");
    const OwnedText path = *name ? saving.path_of(name->get()) : OwnedText();
    if (!path) return saving.fail_for_memory();
    if (is_folder) return write_folder(saving, writing, path.get());
    return write_file(writing, path.get(), 0, writing.entry_count) ? SCALIDE_OK : writing.failure;
}

scalide_status write_checkpoint(const Saving &saving, OwnedText *name) {
    const CheckpointContent &content = saving.content;
    if (!content.has_leaves && saving.options.format == SCALIDE_CHECKPOINT_SAFETENSORS) return write_safetensors(saving, name);
    *name = saving.name("");
    const OwnedText path = *name ? saving.path_of(name->get()) : OwnedText();
    if (!path) return saving.fail_for_memory();
    if (!content.has_leaves) return write_flax(saving.message, path.get(), content.tensors);
    return scalide_msgpack_write(path.get(), content.leaves, content.leaf_count, content.separator, 0, saving.message.memory,
                                 saving.message.size);
}

scalide_status remove_checkpoint(const Saving &saving, const FoundCheckpoint &old) {
    const OwnedText path = saving.path_of(old.name.get());
    if (!path) return saving.fail_for_memory();
    struct stat facts;
    if (stat(path.get(), &facts) == 0 && S_ISDIR(facts.st_mode)) { // a folder disappears at once, too
        const OwnedText aside = temporary_name(path.get());
        if (!aside) return saving.fail_for_memory();
        if (std::rename(path.get(), aside.get()) == 0 && remove_all(aside.get())) return SCALIDE_OK;
    } else if (std::remove(path.get()) == 0) {
        return SCALIDE_OK;
    }
    const int error = errno;
    Text text = saving.message.begin() << "step " << saving.step << " is saved, but the checkpoint " << old.name.get()
                                       << " cannot be removed: ";
    print_system_error(text, error) << "Remove it.";
    return error == ENOMEM ? SCALIDE_OUT_OF_MEMORY : SCALIDE_FILE_ERROR;
}

/// Removes the checkpoints that the new one replaces, later ones, and old ones by the rules of `keep`. The list is older than the new one.
scalide_status remove_others(const Saving &saving, const char *name) {
    const CheckpointList &list = saving.list;
    int64_t steps = 1; // different steps up to the new one
    for (uint64_t i = 0; i < list.count(); ++i) steps += list[i].step < saving.step && (i == 0 || list[i].step != list[i - 1].step);
    int64_t place = 0, kept = INT64_MIN;
    for (uint64_t i = 0; i < list.count(); ++i) {
        const int64_t step = list[i].step;
        bool stays = step == saving.step && std::strcmp(list[i].name.get(), name) == 0;
        if (step < saving.step) {
            place += i == 0 || step != list[i - 1].step;
            stays = place > steps - saving.options.keep;
            const bool is_apart = kept == INT64_MIN || step == kept || step - kept >= saving.options.keep_every_n_steps;
            if (!stays && saving.options.keep_every_n_steps > 0 && is_apart) {
                kept = step;
                stays = true;
            }
        }
        const scalide_status status = stays ? SCALIDE_OK : remove_checkpoint(saving, list[i]);
        if (status != SCALIDE_OK) return status;
    }
    return SCALIDE_OK;
}

scalide_status save(Saving &saving) {
    scalide_status status = make_folder(saving);
    if (status == SCALIDE_OK) status = take_lock(saving);
    if (status != SCALIDE_OK) return status;
    remove_leftovers(saving);
    status = saving.list.read(saving.message, saving.options.prefix);
    if (status == SCALIDE_OK) status = guard(saving);
    OwnedText name;
    if (status == SCALIDE_OK) status = write_checkpoint(saving, &name);
    if (status != SCALIDE_OK) return status;
    const bool is_flushed = flush_folder(saving.message.path);
    if (is_flushed) return remove_others(saving, name.get());
    const int error = errno;
    Text text = saving.message.begin() << "step " << saving.step << " is saved, but the folder cannot be flushed: ";
    print_system_error(text, error) << "Older checkpoints stay. Check the disk.";
    return SCALIDE_FILE_ERROR;
}

/// Adds the entry `scalide.step` to the metadata of the caller.
scalide_status with_step(const FileMessage &message, int64_t step, const scalide_safetensors_content &content,
                         const CheckpointOptions &options) {
    for (size_t i = 0; i < content.metadata_count; ++i) {
        if (content.metadata[i].key && std::strcmp(content.metadata[i].key, step_key) == 0)
            return refuse(message, "metadata must not have the key scalide.step, which the function adds. Leave the entry out");
    }
    auto *metadata = static_cast<scalide_metadata *>(allocate((content.metadata_count + 1) * sizeof(scalide_metadata)));
    if (!metadata) {
        message.begin() << "out of memory: cannot allocate the metadata.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    char digits[24];
    Text(digits, sizeof(digits)) << step;
    std::copy_n(content.metadata, content.metadata_count, metadata);
    metadata[content.metadata_count] = {step_key, digits};
    const CheckpointContent whole = {{content.tensors, content.tensor_count, metadata, content.metadata_count + 1}, nullptr, 0, '.', false};
    Saving saving = {message, step, whole, options, File(), {}};
    const scalide_status status = save(saving);
    release(metadata);
    return status;
}

/// Returns what is wrong with a step or the options, or NULL.
const char *check(int64_t step, const scalide_checkpoint_options *options, CheckpointOptions *checked) {
    const char *wrong = checked->take(options);
    return !wrong && (step < 0 || step > most_steps) ? "step must be from 0 to 2^53" : wrong;
}

scalide_status fail_to_find(const FileMessage &message, const CheckpointList &list, const char *prefix, int64_t step) {
    Text text = message.begin() << "the folder has no checkpoint '" << prefix;
    if (step == SCALIDE_LATEST_STEP) {
        text << "*'. Check the path and the prefix.";
        return SCALIDE_FILE_ERROR;
    }
    text << step << "'. It has ";
    if (list.count() == 0) text << "none";
    constexpr uint64_t most = 20;
    for (uint64_t i = list.count() - std::min(list.count(), most); i < list.count(); ++i)
        text << (i == 0 ? "" : i + most == list.count() ? "..., " : ", ") << list[i].step;
    text << ". Choose one of them.";
    return SCALIDE_FILE_ERROR;
}

/// Finds the path of a checkpoint.
scalide_status find_path(const FileMessage &to, int64_t step, const scalide_checkpoint_options *options, OwnedText *path, int64_t *found) {
    CheckpointOptions checked;
    if (const char *wrong = checked.take(options)) return refuse(to, wrong);
    CheckpointList list;
    const scalide_status status = list.read(to, checked.prefix);
    if (status != SCALIDE_OK) return status;
    const FoundCheckpoint *chosen = step == SCALIDE_LATEST_STEP ? list.latest() : list.find(step);
    if (!chosen) return fail_to_find(to, list, checked.prefix, step);
    *found = chosen->step;
    *path = OwnedText({to.path, "/", chosen->name.get()});
    if (*path) return SCALIDE_OK;
    to.begin() << "out of memory: cannot allocate the name of the file.";
    return SCALIDE_OUT_OF_MEMORY;
}

} // namespace

scalide_status scalide_checkpoint_save(const char *folder, int64_t step, const scalide_safetensors_content *content,
                                       const scalide_checkpoint_options *options, char *message, size_t message_size) {
    if (!folder || !content) return refuse_null(message, message_size, folder ? "content" : "folder");
    if (content->tensor_count > 0 && !content->tensors) return refuse_null(message, message_size, "tensors");
    if (content->metadata_count > 0 && !content->metadata) return refuse_null(message, message_size, "metadata");
    const FileMessage to = {folder, message, message_size};
    CheckpointOptions checked;
    const char *wrong = check(step, options, &checked);
    return wrong ? refuse(to, wrong) : with_step(to, step, *content, checked);
}

scalide_status scalide_checkpoint_save_leaves(const char *folder, int64_t step, const scalide_leaf *leaves, size_t count, char separator,
                                              const scalide_checkpoint_options *options, char *message, size_t message_size) {
    if (!folder || (count > 0 && !leaves)) return refuse_null(message, message_size, folder ? "leaves" : "folder");
    const FileMessage to = {folder, message, message_size};
    CheckpointOptions checked;
    if (const char *wrong = check(step, options, &checked)) return refuse(to, wrong);
    const CheckpointContent content = {{}, leaves, count, separator, true};
    Saving saving = {to, step, content, checked, File(), {}};
    return save(saving);
}

scalide_status scalide_checkpoint_steps(const char *folder, const scalide_checkpoint_options *options, int64_t *steps, size_t capacity,
                                        size_t *count, char *message, size_t message_size) {
    if (!folder || !count) return refuse_null(message, message_size, folder ? "count" : "folder");
    if (capacity > 0 && !steps) return refuse_null(message, message_size, "steps");
    *count = 0;
    CheckpointOptions checked;
    const FileMessage to = {folder, message, message_size};
    if (const char *wrong = checked.take(options)) return refuse(to, wrong);
    CheckpointList list;
    const scalide_status status = list.read(to, checked.prefix);
    if (status != SCALIDE_OK) return status;
    for (uint64_t i = 0; i < list.count(); ++i) {
        if (i > 0 && list[i].step == list[i - 1].step) continue;
        if (*count < capacity) steps[*count] = list[i].step;
        ++*count;
    }
    return SCALIDE_OK;
}

scalide_status scalide_checkpoint_latest(const char *folder, const scalide_checkpoint_options *options, int64_t *step, char *message,
                                         size_t message_size) {
    if (!folder || !step) return refuse_null(message, message_size, folder ? "step" : "folder");
    *step = SCALIDE_LATEST_STEP;
    CheckpointOptions checked;
    const FileMessage to = {folder, message, message_size};
    if (const char *wrong = checked.take(options)) return refuse(to, wrong);
    CheckpointList list;
    const scalide_status status = list.read(to, checked.prefix);
    if (status == SCALIDE_OK && list.latest()) *step = list.latest()->step;
    return status;
}

scalide_status scalide_checkpoint_read_path(const char *path, scalide_safetensors **file, char *message, size_t message_size) {
    if (!file) return refuse_null(message, message_size, "file");
    *file = nullptr;
    if (!path) return refuse_null(message, message_size, "path");
    struct stat facts;
    const FileMessage to = {path, message, message_size};
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) return read_shards(to, file);
    constexpr char ending[] = ".safetensors";
    const size_t length = std::strlen(path), of_ending = sizeof(ending) - 1;
    const bool is_safetensors = length >= of_ending && std::strcmp(path + length - of_ending, ending) == 0;
    return is_safetensors ? scalide_safetensors_read(path, file, message, message_size) : read_flax(to, file);
}

scalide_status scalide_checkpoint_path(const char *folder, int64_t step, const scalide_checkpoint_options *options, char *path,
                                       size_t path_size, int64_t *found, char *message, size_t message_size) {
    if (!folder || !path) return refuse_null(message, message_size, folder ? "path" : "folder");
    const FileMessage to = {folder, message, message_size};
    OwnedText whole;
    int64_t step_of_path = step;
    const scalide_status status = find_path(to, step, options, &whole, &step_of_path);
    if (status != SCALIDE_OK) return status;
    Text text(path, path_size);
    text << whole.get();
    if (text.size() >= path_size) return refuse(to, "path_size must be larger than the path");
    if (found) *found = step_of_path;
    return SCALIDE_OK;
}

scalide_status scalide_checkpoint_read(const char *folder, int64_t step, const scalide_checkpoint_options *options,
                                       scalide_safetensors **file, int64_t *found, char *message, size_t message_size) {
    if (!file) return refuse_null(message, message_size, "file");
    *file = nullptr;
    if (!folder) return refuse_null(message, message_size, "folder");
    OwnedText path;
    int64_t step_of_path = step;
    scalide_status status = find_path({folder, message, message_size}, step, options, &path, &step_of_path);
    if (status == SCALIDE_OK) status = scalide_checkpoint_read_path(path.get(), file, message, message_size);
    if (status == SCALIDE_OK && found) *found = step_of_path;
    return status;
}

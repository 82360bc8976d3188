// Folders of checkpoints: names, order, what is kept, what a failure or a kill leaves, and the state of a binding.
#include "scalide/checkpoints.h"
#include "file_faults.h"
#include "fixture.h"
#include "support/folder.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace scalide::test;
namespace fs = std::filesystem;

namespace {

using Steps = std::vector<int64_t>;

scalide_checkpoint_options options_of(int64_t keep = 1, int64_t every = 0, bool overwrite = false, uint64_t shard_bytes = 0) {
    scalide_checkpoint_options options = {};
    options.struct_size = sizeof(options);
    options.keep = keep;
    options.keep_every_n_steps = every;
    options.overwrite = overwrite ? 1 : 0;
    options.shard_bytes = shard_bytes;
    return options;
}

/// A folder of checkpoints, and the message of the last failure.
struct TrainingRun {
    Folder outer;
    std::string folder = outer.file("run");
    char message[1500] = "";

    /// Saves three arrays, one of them scaled, whose elements are all `value`.
    scalide_status save(int64_t step, float value, const scalide_checkpoint_options &options) {
        std::vector<float> a(50, value), b(3, value);
        std::vector<unsigned char> w(4, static_cast<unsigned char>(value));
        const int64_t counts[] = {50, 3, 4};
        float scale = value;
        const scalide_tensor tensors[] = {{"a", scalide_dense_array(a.data(), nullptr, SCALIDE_F32, 1, counts)},
                                          {"w", scalide_dense_array(w.data(), &scale, SCALIDE_F8_E4M3FN, 1, counts + 2)},
                                          {"b", scalide_dense_array(b.data(), nullptr, SCALIDE_F32, 1, counts + 1)}};
        const scalide_metadata metadata = {"note", "of the test"};
        const scalide_safetensors_content content = {tensors, 3, &metadata, 1};
        message[0] = 0;
        const scalide_status status = scalide_checkpoint_save(folder.c_str(), step, &content, &options, message, sizeof(message));
        EXPECT_EQ(status == SCALIDE_OK, message[0] == 0) << message;
        return status;
    }
    scalide_status save(int64_t step, float value = 1) { return save(step, value, options_of()); }
    Steps steps() {
        int64_t found[50];
        size_t count = 0;
        EXPECT_EQ(scalide_checkpoint_steps(folder.c_str(), nullptr, found, 50, &count, message, sizeof(message)), SCALIDE_OK) << message;
        return {found, found + count};
    }
    /// Returns the value of all elements of a checkpoint; -1 if it cannot be read.
    float value(int64_t step = SCALIDE_LATEST_STEP) {
        scalide_safetensors *file = nullptr;
        if (scalide_checkpoint_read(folder.c_str(), step, nullptr, &file, nullptr, message, sizeof(message)) != SCALIDE_OK) return -1;
        scalide_array a, b, w;
        EXPECT_EQ(scalide_safetensors_find(file, "a", &a), SCALIDE_OK);
        EXPECT_EQ(scalide_safetensors_find(file, "b", &b), SCALIDE_OK);
        EXPECT_EQ(scalide_safetensors_find(file, "w", &w), SCALIDE_OK);
        const float found = static_cast<float *>(a.data)[49];
        EXPECT_EQ(static_cast<float *>(b.data)[2], found);
        EXPECT_EQ(*w.scale, found);
        EXPECT_STREQ(scalide_safetensors_metadata(file, "note"), "of the test");
        scalide_safetensors_close(file);
        return found;
    }
    std::set<std::string> names() const {
        std::set<std::string> found;
        for (const auto &entry : fs::directory_iterator(folder)) found.insert(entry.path().filename());
        return found;
    }
    void touch(const std::string &name) const { std::ofstream(folder + "/" + name) << "x"; }
};

bool contains(const char *message, const std::string &text) { return std::string(message).find(text) != std::string::npos; }

} // namespace

TEST(runtime, a_checkpoint_folder_has_the_names_and_the_order_of_flax) {
    TrainingRun run;
    EXPECT_EQ(run.steps(), Steps());
    const auto keep_all = options_of(100);
    for (const int64_t step : {0, 9, 10, 1000}) ASSERT_EQ(run.save(step, static_cast<float>(step), keep_all), SCALIDE_OK) << run.message;
    fs::rename(run.folder + "/checkpoint_1000.safetensors", run.folder + "/checkpoint_1e3.safetensors");
    ASSERT_EQ(run.save(100000, 7, keep_all), SCALIDE_OK) << run.message;
    for (const char *name : {"checkpoint_", "checkpoint_x.safetensors", "checkpoint_0.5", "checkpoint_-4", "checkpoint_5.tmp", "other_3",
                             "checkpoint_7.msgpack", "checkpoint_99999999999999999999", "checkpoint_1e400"})
        run.touch(name);
    fs::create_directory(run.folder + "/checkpoint_2000000"); // of Orbax
    EXPECT_EQ(run.steps(), (Steps{0, 9, 10, 1000, 100000}));
    int64_t latest = 0;
    EXPECT_EQ(scalide_checkpoint_latest(run.folder.c_str(), nullptr, &latest, nullptr, 0), SCALIDE_OK);
    EXPECT_EQ(latest, 100000);
    EXPECT_EQ(run.value(), 7);
    EXPECT_EQ(run.value(1000), 1000);
    EXPECT_EQ(run.value(11), -1);
    EXPECT_EQ(run.message,
              run.folder + ": the folder has no checkpoint 'checkpoint_11'. It has 0, 9, 10, 1000, 100000. Choose one of them.");
}

TEST(runtime, a_checkpoint_folder_keeps_the_newest_and_every_nth) {
    struct Case {
        int64_t keep, every;
        Steps saved, left;
    };
    const Case cases[] = {{1, 0, {1, 2, 3}, {3}},
                          {2, 0, {1, 2, 3, 4}, {3, 4}},
                          {1, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 4, 7, 9}},
                          {2, 10, {5, 8, 15, 16, 30, 31, 33}, {5, 15, 30, 31, 33}}};
    for (const Case &each : cases) {
        TrainingRun run;
        for (const int64_t step : each.saved) ASSERT_EQ(run.save(step, 1, options_of(each.keep, each.every)), SCALIDE_OK) << run.message;
        EXPECT_EQ(run.steps(), each.left);
    }
}

TEST(runtime, a_checkpoint_folder_refuses_an_older_step_unless_it_overwrites) {
    TrainingRun run;
    const auto keep_all = options_of(100);
    for (const int64_t step : {1, 5, 9, 12}) ASSERT_EQ(run.save(step, static_cast<float>(step), keep_all), SCALIDE_OK);
    for (const int64_t step : {12, 5, 7}) {
        EXPECT_EQ(run.save(step, 100, keep_all), SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(run.message, run.folder + ": step must be greater than the latest checkpoint, which is 12, got " + std::to_string(step) +
                                   ". Save a later step, or overwrite: this removes the checkpoints after step " + std::to_string(step) +
                                   ".");
    }
    EXPECT_EQ(run.steps(), (Steps{1, 5, 9, 12}));
    EXPECT_EQ(run.save(5, 55, options_of(100, 0, true)), SCALIDE_OK) << run.message;
    EXPECT_EQ(run.steps(), (Steps{1, 5}));
    EXPECT_EQ(run.value(5), 55);
    EXPECT_EQ(run.save(3, 33, options_of(100, 0, true)), SCALIDE_OK) << run.message;
    EXPECT_EQ(run.steps(), (Steps{1, 3}));
}

TEST(runtime, a_large_checkpoint_is_a_folder_of_shards) {
    TrainingRun run;
    for (const uint64_t limit : {uint64_t(1), uint64_t(100), uint64_t(205)}) {
        ASSERT_EQ(run.save(3, 3, options_of(5, 0, true, limit)), SCALIDE_OK) << run.message;
        ASSERT_EQ(run.save(3, 4, options_of(5, 0, true, limit)), SCALIDE_OK) << run.message; // over a folder of this step
        ASSERT_EQ(run.save(8, 8, options_of(5, 0, true, limit)), SCALIDE_OK) << run.message;
        EXPECT_EQ(run.steps(), (Steps{3, 8}));
        EXPECT_EQ(run.value(3), 4);
        EXPECT_EQ(run.value(8), 8);
        const size_t shards = limit == 1 ? 3 : 2;
        EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(run.folder + "/checkpoint_8"), fs::directory_iterator())),
                  shards + 1);
    }
    std::ifstream index(run.folder + "/checkpoint_8/model.safetensors.index.json");
    const std::string text{std::istreambuf_iterator<char>(index), {}};
    EXPECT_EQ(text, R"({"metadata":{"total_size":220},"weight_map":{"a":"model-00001-of-00002.safetensors",)"
                    R"("w.data":"model-00002-of-00002.safetensors","w.scale":"model-00002-of-00002.safetensors",)"
                    R"("b":"model-00002-of-00002.safetensors"}})"
                    "\n");
    ASSERT_EQ(run.save(9, 9, options_of(1)), SCALIDE_OK) << run.message; // removes folders
    EXPECT_EQ(run.names(), (std::set<std::string>{".checkpoint_lock", "checkpoint_9.safetensors"}));
    ASSERT_EQ(run.save(9, 10, options_of(1, 0, true, 1)), SCALIDE_OK) << run.message; // changes the form
    EXPECT_EQ(run.names(), (std::set<std::string>{".checkpoint_lock", "checkpoint_9"}));
    fs::remove(run.folder + "/checkpoint_9/model-00002-of-00003.safetensors");
    EXPECT_EQ(run.value(), -1);
    EXPECT_TRUE(contains(run.message, "model-00002-of-00003.safetensors: cannot read this file: No such file")) << run.message;
}

TEST(runtime, every_failing_file_operation_of_a_checkpoint_leaves_the_old_ones) {
    for (const uint64_t limit : {uint64_t(0), uint64_t(100)}) {
        for (const int error : {EIO, ENOSPC}) {
            TrainingRun run;
            ASSERT_EQ(run.save(1, 1, options_of(2, 0, false, limit)), SCALIDE_OK) << run.message;
            ASSERT_EQ(run.save(2, 2, options_of(2, 0, false, limit)), SCALIDE_OK) << run.message;
            scalide_status status = SCALIDE_OK;
            operation_error = error;
            const auto check = [&] {
                const std::string said = run.message;
                const Steps steps = run.steps();
                const bool is_saved = status == SCALIDE_OK || said.find("is saved") != std::string::npos ||
                                      said.find("the file is written") != std::string::npos;
                EXPECT_TRUE(steps == (Steps{1, 2}) || steps == (Steps{2, 3}) || steps == (Steps{1, 2, 3})) << testing::PrintToString(steps);
                if (status == SCALIDE_OK) EXPECT_TRUE(steps == (Steps{2, 3}));
                EXPECT_EQ(steps.back() == 3, is_saved) << said;
                EXPECT_EQ(run.value(), static_cast<float>(steps.back())) << run.message;
                EXPECT_EQ(run.value(2), 2);
                fs::remove_all(run.folder);
                ASSERT_EQ(run.save(1, 1, options_of(2, 0, false, limit)), SCALIDE_OK) << run.message;
                ASSERT_EQ(run.save(2, 2, options_of(2, 0, false, limit)), SCALIDE_OK) << run.message;
            };
            const int operations = fail_each_operation([&] { status = run.save(3, 3, options_of(2, 0, false, limit)); }, check);
            EXPECT_GE(operations, limit ? 40 : 20);
            operation_error = EIO;
        }
    }
}

TEST(runtime, a_save_of_a_checkpoint_that_is_killed_at_any_operation_leaves_the_old_or_the_new_one) {
    for (const uint64_t limit : {uint64_t(0), uint64_t(100)}) {
        for (const int64_t step : {2, 3}) { // over the last checkpoint, and after it
            TrainingRun run;
            const auto options = options_of(2, 0, true, limit);
            const auto restart = [&] {
                fs::remove_all(run.folder);
                ASSERT_EQ(run.save(1, 1, options), SCALIDE_OK) << run.message;
                ASSERT_EQ(run.save(2, 2, options), SCALIDE_OK) << run.message;
            };
            restart();
            const auto check = [&] {
                const Steps steps = run.steps();
                ASSERT_FALSE(steps.empty());
                EXPECT_TRUE(steps.back() == 2 || steps.back() == step);
                const float value = run.value();
                EXPECT_TRUE(value == 2 || value == 30) << value << run.message;
                EXPECT_TRUE(run.value(2) == 2 || (step == 2 && run.value(2) == 30)) << run.message;
                ASSERT_EQ(run.save(4, 4, options_of(1, 0, false, limit)), SCALIDE_OK) << run.message;
                EXPECT_EQ(run.names().size(), 2u) << testing::PrintToString(run.names()); // what is left was removed
                restart();
            };
            EXPECT_GE(die_at_each_operation([&] { run.save(step, 30, options); }, check), limit ? 40 : 20);
        }
    }
}

TEST(runtime, two_processes_cannot_save_checkpoints_at_the_same_time) {
    TrainingRun run;
    ASSERT_EQ(run.save(1), SCALIDE_OK);
    const int lock = open((run.folder + "/.checkpoint_lock").c_str(), O_RDWR);
    ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(run.save(2), SCALIDE_FILE_ERROR);
    EXPECT_EQ(run.message, run.folder + ": cannot save into this folder: another process or thread saves checkpoints 'checkpoint_*' there. "
                                        "Nothing was changed. Give each run its own folder or prefix.");
    EXPECT_EQ(run.steps(), Steps{1});
    close(lock);
    EXPECT_EQ(run.save(2), SCALIDE_OK) << run.message;
    // Many writers: each step is saved once, and nothing is lost.
    for (int process = 0; process < 4; ++process) {
        if (fork() != 0) continue;
        int failures = 0;
        for (int64_t step = 3; step < 40; ++step) {
            const scalide_status status = run.save(step, static_cast<float>(step), options_of(100));
            const bool is_clear = contains(run.message, "another process") || contains(run.message, "step must be greater");
            failures += status != SCALIDE_OK && !is_clear;
        }
        _exit(failures);
    }
    for (int process = 0; process < 4; ++process) {
        int status = 0;
        wait(&status);
        EXPECT_EQ(status, 0);
    }
    const Steps steps = run.steps();
    for (const int64_t step : steps)
        if (step > 2) EXPECT_EQ(run.value(step), static_cast<float>(step)) << run.message;
    EXPECT_GE(steps.size(), 2u);
}

TEST(runtime, folders_without_rights_or_room_are_one_clear_error) {
    TrainingRun run;
    std::ofstream(run.folder) << "x";
    EXPECT_EQ(run.save(1), SCALIDE_FILE_ERROR);
    EXPECT_EQ(run.message, run.folder + ": cannot save into this folder: it is a file. Choose another path.");
    fs::remove(run.folder);
    const std::string folder = run.folder;
    run.folder = folder + "/missing/run";
    EXPECT_EQ(run.save(1), SCALIDE_FILE_ERROR);
    EXPECT_EQ(run.message, run.folder + ": cannot make this folder: No such file or directory. Nothing was changed. Check the folder and "
                                        "the free space.");
    run.folder = folder;
    ASSERT_EQ(run.save(1, 1), SCALIDE_OK);
    fs::permissions(run.folder, fs::perms(0555));
    fs::permissions(run.outer.path, fs::perms(0777));
    const pid_t child = fork(); // root may write everywhere
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
        const bool good = run.save(2) == SCALIDE_FILE_ERROR && contains(run.message, ": Permission denied. Nothing was changed.");
        _exit(good && run.value() == 1 ? 0 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    fs::permissions(run.folder, fs::perms(0755));
    EXPECT_EQ(run.steps(), Steps{1});
}

TEST(runtime, a_full_disk_leaves_the_old_checkpoints) {
    TrainingRun run;
    ASSERT_EQ(run.save(1, 1), SCALIDE_OK);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {100, 100}; // bytes in a file
        setrlimit(RLIMIT_FSIZE, &limit);
        const bool good = run.save(2, 2) == SCALIDE_FILE_ERROR && contains(run.message, "File too large. Nothing was changed.");
        _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(run.names(), (std::set<std::string>{".checkpoint_lock", "checkpoint_1.safetensors"}));
    EXPECT_EQ(run.value(), 1);
}

TEST(runtime, wrong_options_of_a_checkpoint_are_refused) {
    TrainingRun run;
    auto options = options_of(-1);
    EXPECT_EQ(run.save(1, 1, options), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(run.message, run.folder + ": keep must be at least 1.");
    options = options_of(1, -2);
    EXPECT_EQ(run.save(1, 1, options), SCALIDE_INVALID_ARGUMENT);
    options = options_of();
    options.prefix = "a/b";
    EXPECT_EQ(run.save(1, 1, options), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(run.message, run.folder + ": prefix must be a name without '/'.");
    options = options_of();
    options.format = SCALIDE_CHECKPOINT_FORMAT_COUNT;
    EXPECT_EQ(run.save(1, 1, options), SCALIDE_INVALID_ARGUMENT);
    options.struct_size = 3;
    EXPECT_EQ(run.save(1, 1, options), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(run.save(-1, 1), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(run.message, run.folder + ": step must be from 0 to 2^53.");
    EXPECT_FALSE(fs::exists(run.folder));
}

TEST(runtime, a_checkpoint_of_another_program_is_one_error_that_names_all_differences) {
    TrainingRun run;
    ASSERT_EQ(run.save(1, 7), SCALIDE_OK);
    scalide_safetensors *file = nullptr;
    ASSERT_EQ(scalide_checkpoint_read(run.folder.c_str(), 1, nullptr, &file, nullptr, run.message, sizeof(run.message)), SCALIDE_OK);
    float a[50] = {}, w[4] = {}, c = 0;
    const int64_t counts[] = {50, 4};
    const scalide_tensor tensors[] = {{"a", scalide_dense_array(a, nullptr, SCALIDE_F32, 1, counts)},
                                      {"w", scalide_dense_array(w, nullptr, SCALIDE_F32, 1, counts + 1)},
                                      {"c", scalide_dense_array(&c, nullptr, SCALIDE_F32, 0, nullptr)}};
    EXPECT_EQ(scalide_checkpoint_restore(file, nullptr, tensors, 3, run.message, sizeof(run.message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(run.message,
                 "the file must have the arrays of the program. Missing in the file: c. Unknown to the program: b. Different: w "
                 "must be f32[4], got scaled f8_e4m3fn[4]. Convert the file with 'scalide convert', or choose the checkpoint "
                 "of another program.");
    EXPECT_EQ(a[0], 0);
    scalide_safetensors_close(file);
}

TEST(runtime, a_binding_saves_and_restores_what_its_runs_update) {
    TrainingRun run;
    Context context;
    Sample sample;
    Bound binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    const scalide_metadata metadata = {"schedule", "cosine"};
    const scalide_status status = scalide_binding_save(binding.handle, run.folder.c_str(), 4, &metadata, 1, nullptr);
    ASSERT_EQ(status, SCALIDE_OK) << scalide_message(context.handle);
    sample.w = {};
    sample.w_scale = 0;
    int64_t step = 0;
    ASSERT_EQ(scalide_binding_restore(binding.handle, run.folder.c_str(), SCALIDE_LATEST_STEP, nullptr, &step), SCALIDE_OK)
        << scalide_message(context.handle);
    EXPECT_EQ(step, 4);
    EXPECT_EQ(sample.w, (std::array<float, 4>{1, 2, 3, 4}));
    EXPECT_EQ(sample.w_scale, 0.5f);
    scalide_safetensors *file = nullptr;
    ASSERT_EQ(scalide_checkpoint_read(run.folder.c_str(), 4, nullptr, &file, nullptr, nullptr, 0), SCALIDE_OK);
    EXPECT_STREQ(scalide_safetensors_metadata(file, "schedule"), "cosine");
    EXPECT_STREQ(scalide_safetensors_metadata(file, "scalide.step"), "4");
    EXPECT_STREQ(scalide_safetensors_metadata(file, "scalide.program"), scalide_program_hash(sample_program()));
    EXPECT_STREQ(scalide_safetensors_metadata(file, "scalide.policy"), scalide_program_numerics(sample_program()));
    scalide_safetensors_close(file);
    ASSERT_EQ(run.save(5), SCALIDE_OK);
    EXPECT_EQ(scalide_binding_restore(binding.handle, run.folder.c_str(), 5, nullptr, &step), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(scalide_message(context.handle)).rfind(run.folder + ", step 5: the file must have the arrays", 0), 0u)
        << scalide_message(context.handle);
    EXPECT_EQ(sample.w_scale, 0.5f);
    EXPECT_EQ(scalide_binding_restore(binding.handle, run.folder.c_str(), 6, nullptr, &step), SCALIDE_FILE_ERROR);
}

TEST(runtime, a_binding_with_a_view_saves_and_restores_its_elements_only) {
    TrainingRun run;
    Context context;
    Sample sample;
    alignas(64) float memory[] = {1, -1, 2, -1, 3, -1, 4, -1};
    sample.arrays[1].data = memory;
    sample.arrays[1].stride[0] = 2;
    Bound binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_binding_save(binding.handle, run.folder.c_str(), 4, nullptr, 0, nullptr), SCALIDE_OK)
        << scalide_message(context.handle);
    for (float &element : memory) element = 9;
    sample.w_scale = 9;
    ASSERT_EQ(scalide_binding_restore(binding.handle, run.folder.c_str(), 4, nullptr, nullptr), SCALIDE_OK)
        << scalide_message(context.handle);
    EXPECT_EQ(std::vector<float>(memory, memory + 8), (std::vector<float>{1, 9, 2, 9, 3, 9, 4, 9}));
    EXPECT_EQ(sample.w_scale, 0.5f);
}

// device.training.*: a whole FP8 training step with its state, on an emulated CUDA driver and cuBLASLt. Checks the descriptor of each
// matmul, the reads and writes of each launch, and that the step is one graph.
#include "../cublaslt/standin.h"
#include "../support/folder.h"
#include "bind/binding.h"
#include "elementwise.h"
#include "scalide/checkpoints.h"
#include "scalide/plan.h"
#include "standin_driver.h"
#include "training_cuda.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

using namespace scalide::test;

namespace {

constexpr int64_t b = 32;

class training : public testing::Test {
protected:
    training() : context(SCALIDE_CUDA) {
        const struct {
            int32_t dtype;
            std::vector<int64_t> shape;
            bool is_scaled;
        } rows[] = {{SCALIDE_F32, {b, 64}, false},  {SCALIDE_I32, {b}, false},  {SCALIDE_F32, {}, false},
                    {SCALIDE_F16, {64, 128}, true}, {SCALIDE_F16, {128}, true}, {SCALIDE_F16, {128, 16}, true},
                    {SCALIDE_F16, {16}, true},      {SCALIDE_F32, {4}, false},  {SCALIDE_F32, {}, false}};
        for (const auto &row : rows) {
            void *data = take(), *scale = row.is_scaled ? take() : nullptr;
            arrays.push_back(scalide_dense_array(data, static_cast<float *>(scale), row.dtype, static_cast<int32_t>(row.shape.size()),
                                                 row.shape.data()));
        }
        EXPECT_EQ(scalide_bind(context.handle, program, arrays.data(), arrays.size(), &binding), SCALIDE_OK)
            << scalide_message(context.handle);
        void *library = dlopen(std::getenv("SCALIDE_CUBLASLT"), RTLD_NOW);
        read = reinterpret_cast<StandinRead>(dlsym(library, "standin_read"));
        reset_library = reinterpret_cast<StandinReset>(dlsym(library, "standin_reset"));
        reset();
    }
    ~training() override {
        scalide_binding_destroy(binding);
        for (void *memory : taken) scalide_release(context.handle, memory);
    }
    training(const training &) = delete;
    training &operator=(const training &) = delete;

    void *take() {
        void *memory = nullptr;
        EXPECT_EQ(scalide_allocate(context.handle, 4 * 128 * 128, &memory), SCALIDE_OK) << scalide_message(context.handle);
        taken.push_back(memory);
        return memory;
    }
    void reset() const {
        driver.reset(-1, 0);
        reset_library(-1, 2, 0);
    }
    /// The buffer of a step that begins there; "" when there is none.
    std::string buffer_at(const scalide_step &step, uint64_t address) const {
        for (int32_t i = 0; i < step.operand_count; ++i) {
            const scalide_operand &operand = step.operands[i];
            if (operand.kind == SCALIDE_OPERAND_BUFFER && address == reinterpret_cast<uint64_t>(binding->memory[operand.index]))
                return program->buffers[operand.index].name;
        }
        return "";
    }
    bool is_scratch(uint64_t address) const {
        const auto begin = reinterpret_cast<uint64_t>(binding->launches.scratch);
        return address >= begin && address < begin + binding->launches.scratch_bytes;
    }
    std::vector<std::string> names_of_calls() const {
        std::vector<std::string> names;
        for (const std::string &call : driver.calls()) names.push_back(call.substr(0, call.find(' ')));
        return names;
    }
    /// What the products of a run asked, each with its step: addresses are the names of the step's buffers.
    std::string products() const;

    const scalide_program *program = training_cuda_program();
    Context context;
    Standin driver;
    StandinRead read = nullptr;
    StandinReset reset_library = nullptr;
    std::vector<void *> taken;
    std::vector<scalide_array> arrays;
    scalide_binding *binding = nullptr;
};

std::string training::products() const {
    const std::string log = read().log;
    std::string text;
    size_t from = log.find("matmul ");
    for (int32_t i = 0; i < program->step_count; ++i) {
        const scalide_step &step = program->steps[i];
        if (!step.matmul || from == std::string::npos) continue;
        const size_t to = log.find("\nmatmul ", from);
        std::string call = log.substr(from, to == std::string::npos ? to : to + 1 - from);
        from = to == std::string::npos ? to : to + 1;
        for (int32_t k = 0; k < step.operand_count; ++k) {
            if (step.operands[k].kind != SCALIDE_OPERAND_BUFFER) continue;
            char address[32];
            std::snprintf(address, sizeof(address), "%zx", reinterpret_cast<size_t>(binding->memory[step.operands[k].index]));
            call = std::regex_replace(call, std::regex(address), program->buffers[step.operands[k].index].name);
        }
        char workspace[32];
        std::snprintf(workspace, sizeof(workspace), "%zx", reinterpret_cast<size_t>(binding->launches.scratch));
        call = std::regex_replace(call, std::regex(std::string("workspace ") + workspace), "workspace scratch");
        text += std::string("# ") + step.name + "\n" + std::regex_replace(call, std::regex("stream [0-9a-f]+"), "stream");
    }
    return text;
}

} // namespace

/// Compares field by field. SCALIDE_UPDATE_GOLDEN=1 rewrites the file.
TEST_F(training, products_ask_what_the_golden_file_says) {
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK) << scalide_message(context.handle);
    const std::string got = products();
    if (std::getenv("SCALIDE_UPDATE_GOLDEN")) std::ofstream(SCALIDE_TRAINING_GOLDEN) << got;
    std::ifstream golden(SCALIDE_TRAINING_GOLDEN);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(golden), {}), got);
}

/// The driver gets the launches of the plan's steps in their order; each address is that of a buffer of the step, or scratch memory; and a
/// step touches all of its buffers.
TEST_F(training, launches_get_the_arrays_of_their_steps) {
    for (int32_t i = 0; i < binding->launches.used; ++i) {
        const scalide::Launch &row = binding->launches.rows[i];
        if (!row.matmul) driver.arguments(row.argument_count);
    }
    reset();
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    const std::vector<std::string> calls = driver.calls();
    ASSERT_EQ(calls.size(), static_cast<size_t>(binding->launches.used) + 2) << "the context is pushed and popped";
    int32_t at = 0;
    for (int32_t i = 0; i < program->step_count; ++i) {
        const scalide_step &step = program->steps[i];
        std::set<std::string> wanted, touched;
        for (int32_t k = 0; k < step.operand_count; ++k)
            if (step.operands[k].kind == SCALIDE_OPERAND_BUFFER) wanted.insert(program->buffers[step.operands[k].index].name);
        EXPECT_LT(at, binding->launches.ends[i]) << step.name << " launches nothing";
        for (; at < binding->launches.ends[i]; ++at) {
            const scalide::Launch &row = binding->launches.rows[at];
            const std::string &call = calls[static_cast<size_t>(at) + 1];
            if (row.matmul) {
                EXPECT_EQ(call, "cublasLtMatmul") << step.name;
                touched = wanted; // the golden file has its arrays
                continue;
            }
            std::string expected = std::string("cuLaunchKernel ") + row.name + " blocks";
            for (const uint32_t count : row.blocks) expected += " " + std::to_string(count);
            expected += " threads";
            for (const uint32_t count : row.threads) expected += " " + std::to_string(count);
            expected += " shared " + std::to_string(row.shared_bytes) + " arguments";
            for (uint32_t k = 0; k < row.argument_count; ++k) {
                const scalide::LaunchArgument &argument = row.arguments[k];
                expected += " " + std::to_string(argument.value);
                if (!argument.is_address) continue;
                const std::string name = buffer_at(step, argument.value);
                EXPECT_TRUE(!name.empty() || is_scratch(argument.value))
                    << step.name << " launches " << row.name << " on another step's memory";
                touched.insert(name);
            }
            EXPECT_EQ(call, expected) << step.name;
        }
        for (const std::string &name : wanted) EXPECT_TRUE(touched.contains(name)) << step.name << " does not touch " << name;
    }
    EXPECT_EQ(at, binding->launches.used);
}

TEST_F(training, the_whole_step_is_one_graph) {
    const auto launches = static_cast<size_t>(binding->launches.used);
    ASSERT_EQ(scalide_capture(binding), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<std::string> calls = names_of_calls();
    std::erase_if(calls, [](const std::string &call) { return call == "cuCtxPushCurrent" || call == "cuCtxPopCurrent"; });
    const auto begin = std::ranges::find(calls, "cuStreamBeginCapture"), end = std::ranges::find(calls, "cuStreamEndCapture");
    ASSERT_NE(end, calls.end());
    const auto is_launch = [](const std::string &call) { return call == "cuLaunchKernel" || call == "cublasLtMatmul"; };
    EXPECT_EQ(static_cast<size_t>(end - begin) - 1, launches);
    EXPECT_TRUE(std::all_of(begin + 1, end, is_launch)) << "rescaling, histories and scales are on the device";
    EXPECT_EQ(std::count(begin, end, "cublasLtMatmul"), 5);
    for (int run = 0; run < 3; ++run) {
        reset();
        ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
        EXPECT_EQ(names_of_calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuGraphLaunch", "cuCtxPopCurrent"}));
        EXPECT_EQ(read().calls, 0);
    }
}

/// What the step keeps for the next is written where it was read: parameters, their scales and the history.
TEST_F(training, state_stays_in_its_arguments) {
    std::set<std::string> written;
    for (int32_t i = 0; i < program->buffer_count; ++i) {
        const scalide_buffer &buffer = program->buffers[i];
        const bool is_argument = buffer.storage == SCALIDE_STORAGE_DATA || buffer.storage == SCALIDE_STORAGE_SCALE;
        if (is_argument && buffer.first_step >= 0) written.insert(buffer.name);
    }
    const std::set<std::string> state{"w1.data",  "w1.scale", "c1.data",  "c1.scale", "w2.data",
                                      "w2.scale", "c2.data",  "c2.scale", "history",  "loss"};
    EXPECT_EQ(written, state);
}

TEST_F(training, a_checkpoint_has_the_arrays_of_the_device) {
    const Folder folder;
    const std::string run = folder.file("run");
    const scalide_array &w = arrays[3], &history = arrays[7];
    const std::vector<uint16_t> half(64 * 128, 0x3c00), zeros(64 * 128);
    const std::vector<float> amax = {1, 2, 3, 4}, none(4);
    const float scale = 0.25F, one = 1;
    const auto put = [&](const std::vector<uint16_t> &data, float scale_of_w, const std::vector<float> &state) {
        ASSERT_EQ(scalide_copy_in(context.handle, w.data, data.data(), 2 * data.size()), SCALIDE_OK);
        ASSERT_EQ(scalide_copy_in(context.handle, w.scale, &scale_of_w, 4), SCALIDE_OK);
        ASSERT_EQ(scalide_copy_in(context.handle, history.data, state.data(), 16), SCALIDE_OK);
    };
    put(half, scale, amax);
    ASSERT_EQ(scalide_binding_save(binding, run.c_str(), 7, nullptr, 0, nullptr), SCALIDE_OK) << scalide_message(context.handle);
    put(zeros, one, none);
    int64_t step = 0;
    ASSERT_EQ(scalide_binding_restore(binding, run.c_str(), SCALIDE_LATEST_STEP, nullptr, &step), SCALIDE_OK)
        << scalide_message(context.handle);
    EXPECT_EQ(step, 7);
    std::vector<uint16_t> data(64 * 128);
    std::vector<float> state(4);
    float found = 0;
    ASSERT_EQ(scalide_copy_out(context.handle, data.data(), w.data, 2 * data.size()), SCALIDE_OK);
    ASSERT_EQ(scalide_copy_out(context.handle, &found, w.scale, 4), SCALIDE_OK);
    ASSERT_EQ(scalide_copy_out(context.handle, state.data(), history.data, 16), SCALIDE_OK);
    EXPECT_EQ(data, half);
    EXPECT_EQ(found, scale);
    EXPECT_EQ(state, amax);
}

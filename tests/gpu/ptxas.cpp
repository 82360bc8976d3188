#include "card/probe_kernels.h"
#include "devices/convert_kernels.h"
#include "devices/copy_kernels.h"
#include "emit/compile_kernel.h"
#include "emit/device_code.h"
#include "emit/files.h"
#include "emit/host_code.h"
#include "emit/process.h"
#include "emit/wide_accesses.h"
#include "kernels/kernel_text.h"
#include "scalide/scalide.h"
#include "schedules/schedule.h"
#include <gtest/gtest.h>

// Every kernel text under tests/kernels is compiled for CUDA and assembled for every card; none may spill registers to memory but those
// that are listed here with their reason. The same for the kernels with which tests/card probes a card, whose PTX is text of ours, and for
// the kernels of the runtime. Needs ptxas, no card.
namespace scalide {
namespace {

namespace fs = std::filesystem;

/// Spilled bytes, stored and loaded, that a kernel may have on any GPU.
const std::map<std::string, int> known_spills = {};

std::optional<std::string> why_no_ptxas() {
    try {
        find_cuda_tools();
        return std::nullopt;
    } catch (const UserError &error) {
        return error.what();
    }
}

int lines_with(const std::string &word, const std::string &text) {
    int count = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) count += line.find(word) != std::string::npos;
    return count;
}

std::vector<CardUse> assemble_for_cards(const Program &program, std::string &ptx) try {
    const Halide::Target target = parse_target("cuda");
    LoweredKernel kernel = lower(program, target, choose_budgets(target));
    const Tiles tiles = choose_tiles(kernel, target);
    schedule(kernel, tiles, target);
    Halide::Pipeline pipeline = to_pipeline(kernel);
    adapt_host_code(pipeline);
    widen_accesses(pipeline);
    const Halide::Module module = pipeline.compile_to_module(halide_arguments(kernel), "kernel", target);
    check_host_code(module);
    const WorkFolder folder(fs::temp_directory_path() / "scalide_ptxas");
    ptx = ptx_of(module);
    std::vector<CardUse> uses;
    const std::string payload = assemble(module, {find_cuda_tools(), chosen_cards({})}, folder.path(), uses, resident_threads(tiles));
    EXPECT_EQ(ptx_of(with_device_code(module, payload)).substr(0, 4), payload.substr(0, 4));
    return uses;
} catch (const Halide::Error &error) {
    throw std::runtime_error(std::string("Halide: ") + error.what());
}

class PtxasCase : public testing::Test {
public:
    explicit PtxasCase(fs::path path) : path_(std::move(path)) {}

    void TestBody() override {
        if (const auto reason = why_no_ptxas()) GTEST_SKIP() << *reason;
        const std::string name = path_.parent_path().filename().string() + "/" + path_.stem().string();
        const auto known = known_spills.find(name);
        const KernelText text = read_kernel_text(path_);
        std::map<int, int> launches; // by compute capability
        std::string ptx;
        const std::vector<CardUse> uses = assemble_for_cards(text.program, ptx);
        if (const char *kept = std::getenv("SCALIDE_KEEP_KERNELS")) write_file(fs::path(kept) / (path_.stem().string() + ".ptx"), ptx);
        for (const auto &[word, count] : text.ptx) EXPECT_EQ(lines_with(word, ptx), count) << word;
        for (const CardUse &use : uses) {
            launches[use.card]++;
            RecordProperty(use.entry + ".sm_" + std::to_string(use.card), use.registers);
            EXPECT_LE(use.spilled_bytes, known == known_spills.end() ? 0 : known->second) << use.entry << " on sm_" << use.card;
            EXPECT_LE(use.shared_bytes, 48 << 10) << use.entry << " on sm_" << use.card;
        }
        EXPECT_EQ(launches.size(), cuda_cards.size());
        if (text.launches > 0) EXPECT_EQ(launches.at(cuda_cards.front()), text.launches);
    }

private:
    fs::path path_;
};

class ProbeCase : public testing::Test {
public:
    explicit ProbeCase(ProbeKernel kernel) : kernel_(std::move(kernel)) {}

    void TestBody() override {
        if (const auto reason = why_no_ptxas()) GTEST_SKIP() << *reason;
        const WorkFolder folder(fs::temp_directory_path() / "scalide_ptxas");
        const fs::path text = folder.path() / "probe.ptx";
        write_file(text, kernel_.ptx);
        const std::string target = ".target sm_";
        const int least = std::stoi(kernel_.ptx.substr(kernel_.ptx.find(target) + target.size()));
        for (const int card : cuda_cards) {
            if (card < least) continue;
            const ChildResult result = run_command({find_cuda_tools().ptxas.string(), "-v", "-arch=sm_" + std::to_string(card),
                                                    text.string(), "-o", (folder.path() / "probe.cubin").string()},
                                                   {.output_bytes = size_t(1) << 16});
            ASSERT_TRUE(result.ok) << "sm_" << card << ": " << result.output;
            EXPECT_NE(result.output.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos) << "sm_" << card;
        }
    }

private:
    ProbeKernel kernel_;
};

void register_text(const char *suite, const ProbeKernel &kernel) {
    testing::RegisterTest(suite, kernel.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [kernel]() -> ProbeCase * { return new ProbeCase(kernel); });
}

void register_cases() {
    for (const ProbeKernel &kernel : probe_kernels()) register_text("probes", kernel);
    ProbeKernel copies;
    copies.name = "copies";
    copies.ptx = source_of_copy_kernels(SCALIDE_CUDA);
    register_text("runtime", copies);
    ProbeKernel conversions;
    conversions.name = "conversions";
    conversions.ptx = source_of_convert_kernels();
    register_text("runtime", conversions);
    for (const fs::path &path : kernel_texts_for_gpus()) {
        const std::string kind = path.parent_path().filename().string();
        testing::RegisterTest(kind.c_str(), path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [path]() -> PtxasCase * { return new PtxasCase(path); });
    }
}

[[maybe_unused]] const bool registered = (register_cases(), true);

} // namespace
} // namespace scalide

#include "emit/device_code.h"
#include "emit/files.h"
#include "emit/process.h"
#include "emit/ptx.h"
#include "expr/error.h"
#include <regex>

namespace scalide {

namespace fs = std::filesystem;

namespace {

bool is_payload(const Halide::Buffer<> &buffer) { return buffer.name().find("cuda_gpu_source_kernels") != std::string::npos; }

/// Collects from the host code of a module how it launches each entry.
class Launches : public Halide::Internal::IRVisitor {
public:
    explicit Launches(const Halide::Module &module) {
        for (const Halide::Internal::LoweredFunc &function : module.functions()) function.body.accept(this);
    }
    std::map<std::string, int> threads;      ///< threads of a block, if constant
    std::map<std::string, int> shared_bytes; ///< if constant; Halide uses dynamic shared memory, which ptxas does not see

private:
    using IRVisitor::visit;
    void visit(const Halide::Internal::Call *call) override {
        IRVisitor::visit(call);
        if (call->name != "halide_cuda_run") return;
        // The arguments are: state, entry, three extents of the grid, three of a block, bytes of shared memory ...
        const auto *entry = call->args[1].as<Halide::Internal::StringImm>();
        if (!entry) return;
        const auto constant = [&](int index) { return int(as_const_int(Halide::Internal::simplify(call->args[index])).value_or(0)); };
        const int count = constant(5) * constant(6) * constant(7);
        if (count > 0) threads[entry->value] = count;
        shared_bytes[entry->value] = constant(8);
    }
};

std::string run(const std::vector<std::string> &command) {
    constexpr size_t all_output = size_t(1) << 20;                       // ptxas prints a few lines for each entry
    const ChildResult result = run_command(command, {1, 0, all_output}); // the time limit of the kernel's child process applies
    if (!result.ok) throw InternalError("internal error: " + command[0] + ": " + result.reason + "\n" + result.output);
    return result.output;
}

/// Combines the report of `ptxas -v` for each entry with the shared memory of its launches.
std::vector<CardUse> read_uses(const std::string &printed, int card, const Launches &launches) {
    static const std::regex entry(R"(Compiling entry function '(\w+)')"), spill(R"((\d+) bytes spill stores, (\d+) bytes spill loads)"),
        registers(R"(Used (\d+) registers)");
    std::vector<CardUse> uses;
    std::istringstream lines(printed);
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_search(line, match, entry)) uses.push_back({card, match[1], 0, 0, launches.shared_bytes.at(match[1])});
        if (uses.empty()) continue;
        if (std::regex_search(line, match, spill)) uses.back().spilled_bytes = std::stoi(match[1]) + std::stoi(match[2]);
        if (std::regex_search(line, match, registers)) uses.back().registers = std::stoi(match[1]);
    }
    return uses;
}

} // namespace

CudaTools find_cuda_tools() {
    std::vector<fs::path> folders;
    if (const char *home = std::getenv("CUDA_HOME")) folders.emplace_back(fs::path(home) / "bin");
    std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(path, folder, ':');) folders.emplace_back(folder);
    for (const fs::path &folder : folders) {
        std::error_code ignored;
        if (fs::exists(folder / "ptxas", ignored) && fs::exists(folder / "fatbinary", ignored)) {
            return {folder / "ptxas", folder / "fatbinary", run({(folder / "ptxas").string(), "--version"})};
        }
    }
    throw UserError(statement({}, "--target cuda needs the programs ptxas and fatbinary of CUDA 13, on PATH or in $CUDA_HOME/bin",
                              "Install the CUDA toolkit, or 'pip install nvidia-cuda-nvcc' and set CUDA_HOME to its folder nvidia/cu13"));
}

std::vector<int> chosen_cards(const std::vector<std::string> &cards) {
    std::vector<int> chosen;
    std::string known;
    for (const int card : cuda_cards) {
        const std::string name = std::to_string(card);
        if (cards.empty() || std::ranges::find(cards, name) != cards.end()) chosen.push_back(card);
        known += (known.empty() ? "" : card == cuda_cards.back() ? " or " : ", ") + name;
    }
    for (const std::string &name : cards) {
        if (std::ranges::any_of(chosen, [&](int card) { return std::to_string(card) == name; })) continue;
        throw UserError(
            statement({}, "--cuda-arch: unsupported value '" + name + "'",
                      "Use " + known +
                          " (90 means compute capability 9.0). A GPU runs code that was built for a smaller number with the "
                          "same first digits: 8.6 runs 80, and 10.3 runs 100. A GPU of capability 8.9 or later can also compile "
                          "the PTX in the library"));
    }
    return chosen;
}

bool has_device_code(const Halide::Module &module) {
    const std::vector<Halide::Buffer<>> buffers = module.buffers();
    return std::ranges::any_of(buffers, is_payload);
}

std::string ptx_of(const Halide::Module &module) {
    for (const Halide::Buffer<> &buffer : module.buffers()) {
        if (is_payload(buffer)) return reinterpret_cast<const char *>(buffer.data()); // the payload ends with a zero byte
    }
    throw InternalError("internal error: a kernel for CUDA has no device code");
}

std::string assemble(const Halide::Module &module, const CudaAssembly &assembly, const fs::path &folder, std::vector<CardUse> &uses,
                     int resident) {
    const CudaTools &tools = assembly.tools;
    const std::string ptx = ptx_of(module);
    const Launches launches(module);
    const auto text_for = [&](InstructionSet set) {
        const fs::path file = folder / (module.name() + (set == InstructionSet::sm_80 ? ".sm_80.ptx" : ".sm_89.ptx"));
        write_file(file, rewrite_ptx(ptx, set, launches.threads, resident));
        return file.string();
    };
    const std::string oldest = text_for(InstructionSet::sm_80), newest = text_for(InstructionSet::sm_89);
    const fs::path joined = folder / "joined.fatbin";
    std::vector<std::string> join = {tools.fatbinary.string(), "-64", "--create=" + joined.string()};
    for (const int card : assembly.cards) {
        const std::string name = std::to_string(card), cubin = (folder / ("sm_" + name + ".cubin")).string();
        const std::string &text = instruction_set(card) == InstructionSet::sm_80 ? oldest : newest;
        const std::vector<CardUse> here =
            read_uses(run({tools.ptxas.string(), "-O3", "-v", "-arch=sm_" + name, text, "-o", cubin}), card, launches);
        uses.insert(uses.end(), here.begin(), here.end());
        join.push_back("--image3=kind=elf,sm=" + name + ",file=" + cubin);
    }
    join.push_back("--image3=kind=ptx,sm=89,file=" + newest);
    run(join);
    return read_file(joined);
}

Halide::Module with_device_code(const Halide::Module &module, const std::string &payload) {
    Halide::Module result(module.name(), module.target());
    for (const Halide::Internal::LoweredFunc &function : module.functions()) result.append(function);
    for (const Halide::Buffer<> &buffer : module.buffers()) {
        if (!is_payload(buffer)) {
            result.append(buffer);
            continue;
        }
        Halide::Buffer<uint8_t> bytes(int(payload.size()), buffer.name());
        std::ranges::copy(payload, bytes.data());
        result.append(bytes);
    }
    return result;
}

} // namespace scalide

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

/// The number of threads of each entry's blocks, where it is a constant, from the launches in the host code of a module.
class Launches : public Halide::Internal::IRVisitor {
public:
    explicit Launches(const Halide::Module &module) {
        for (const Halide::Internal::LoweredFunc &function : module.functions()) function.body.accept(this);
    }
    std::map<std::string, int> threads;

private:
    using IRVisitor::visit;
    void visit(const Halide::Internal::Call *call) override {
        IRVisitor::visit(call);
        if (call->name != "halide_cuda_run") return;
        // state, entry, three extents of the grid, three of a block ...
        const auto *entry = call->args[1].as<Halide::Internal::StringImm>();
        int64_t count = 1;
        for (int i = 5; i < 8; i++) count *= Halide::Internal::as_const_int(call->args[i]).value_or(0);
        if (entry && count > 0) threads[entry->value] = int(count);
    }
};

std::string run(const std::vector<std::string> &command) {
    const ChildResult result = run_command(command);
    if (!result.ok) throw InternalError("internal error: " + command[0] + ": " + result.reason + "\n" + result.output);
    return result.output;
}

/// What `ptxas -v` says of each entry.
std::vector<CardUse> read_uses(const std::string &printed, int card) {
    static const std::regex entry(R"(Compiling entry function '(\w+)')"), spill(R"((\d+) bytes spill stores, (\d+) bytes spill loads)"),
        registers(R"(Used (\d+) registers)"), shared(R"((\d+) bytes smem)");
    std::vector<CardUse> uses;
    std::istringstream lines(printed);
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_search(line, match, entry)) uses.push_back({card, match[1]});
        if (uses.empty()) continue;
        if (std::regex_search(line, match, spill)) uses.back().spilled_bytes = std::stoi(match[1]) + std::stoi(match[2]);
        if (std::regex_search(line, match, registers)) uses.back().registers = std::stoi(match[1]);
        if (std::regex_search(line, match, shared)) uses.back().shared_bytes = std::stoi(match[1]);
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
            return {folder / "ptxas", folder / "fatbinary"};
        }
    }
    Message message;
    message.subject = "target";
    message.requirement = "cuda needs ptxas and fatbinary of CUDA 13 in $CUDA_HOME/bin or on PATH";
    message.way_out = "Install the CUDA toolkit, or the Python package nvidia-cuda-nvcc, whose folder nvidia/cu13 CUDA_HOME may name";
    throw UserError(message);
}

std::string ptx_of(const Halide::Module &module) {
    for (const Halide::Buffer<> &buffer : module.buffers()) {
        if (is_payload(buffer)) return reinterpret_cast<const char *>(buffer.data()); // ends with a zero byte
    }
    throw InternalError("internal error: a kernel for CUDA has no device code");
}

std::string assemble(const Halide::Module &module, std::span<const int> cards, const CudaTools &tools, const fs::path &folder,
                     std::vector<CardUse> &uses) {
    const std::string ptx = ptx_of(module);
    const std::map<std::string, int> threads = Launches(module).threads;
    const auto text_for = [&](InstructionSet set) {
        const fs::path file = folder / (set == InstructionSet::sm_80 ? "sm_80.ptx" : "sm_89.ptx");
        write_file(file, rewrite_ptx(ptx, set, threads));
        return file.string();
    };
    const std::string oldest = text_for(InstructionSet::sm_80), newest = text_for(InstructionSet::sm_89);
    const fs::path joined = folder / "joined.fatbin";
    std::vector<std::string> join = {tools.fatbinary.string(), "-64", "--create=" + joined.string()};
    for (const int card : cards) {
        const std::string name = std::to_string(card), cubin = (folder / ("sm_" + name + ".cubin")).string();
        const std::string &text = instruction_set(card) == InstructionSet::sm_80 ? oldest : newest;
        const std::vector<CardUse> here = read_uses(run({tools.ptxas.string(), "-O3", "-v", "-arch=sm_" + name, text, "-o", cubin}), card);
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
